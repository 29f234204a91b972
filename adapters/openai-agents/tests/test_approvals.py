import json
import os
import sys
from contextlib import suppress
from itertools import product
from typing import Any

import anyio
import elsewhere
import pytest
from agents import OpenAIResponsesModel
from convnorm_openai_agents import (
    Hooks,
    NormalizingModelProvider,
    ledger_from_state,
    normalize_model,
)
from openai import BadRequestError
from play import DECISIONS, LINKS, SDK, THREE_CALLS, Site, approve, config, operator, run, site

from convnorm.delivery import Link
from convnorm.testing import Reply, call

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("stream", [False, True])
async def test_the_sdk_alone(link: str, stream: bool) -> None:
    """Until 0.14.5 the SDK drops the output of a call beside those that wait for approval."""
    agent = operator()
    async with site("Hello.", THREE_CALLS, "All done.") as here:
        runs = config(here.bare())
        first = await run(agent, "Hello", run_config=runs)
        more = await here.link(link, first)
        waiting = await run(agent, "Clean up", stream=stream, run_config=runs, **more)
        state = await approve(waiting.to_state(), agent, "mixed", serialise=True)
        with suppress(BadRequestError):
            await run(agent, state, stream=stream, run_config=runs, **more)

    broken = SDK < (0, 14, 5) and link != "local"
    assert here.rules == [None, None, "resp-call-output-missing" if broken else None]


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("decision", DECISIONS)
async def test_one_process(link: str, stream: bool, decision: str) -> None:
    """With the provider and its hooks, every output arrives, in the order of the calls."""
    agent = operator()
    async with site("Hello.", THREE_CALLS, "All done.") as here:
        provider = NormalizingModelProvider(inner=here.bare(), on_error="raise")
        options = {"stream": stream, "run_config": config(provider), "hooks": Hooks(provider)}
        first = await run(agent, "Hello", **options)
        more = await here.link(link, first)
        waiting = await run(agent, "Clean up", **options, **more)
        state = await approve(waiting.to_state(), agent, decision, serialise=False)
        done = await run(agent, state, **options, **more)

    assert done.final_output == "All done."
    assert here.rules == [None] * 3
    _all_answered(here.server.requests[-1])


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("stream", [False, True])
async def test_agents_with_models_of_their_own(link: str, stream: bool) -> None:
    """Models as instances need no provider: their keeper is what the hooks tell."""
    async with site("Hello.", THREE_CALLS, "All done.") as here:
        bare = OpenAIResponsesModel("gpt-4.1", here.client)
        model = normalize_model(bare, on_error="raise")
        agent = operator(model=model)
        hooks = Hooks(model.keeper, on_error="raise")
        options = {"stream": stream, "run_config": config(here.bare(), model=None), "hooks": hooks}
        more = await here.link(link, await run(agent, "Hello", **options))
        waiting = await run(agent, "Clean up", **options, **more)
        state = await approve(waiting.to_state(), agent, "mixed", serialise=True)
        await run(agent, state, **options, **more)

    assert here.rules == [None] * 3
    _all_answered(here.server.requests[-1])


FIRST_CALL = Reply(call("run_diagnostic", check_name="net", call_id="call_NET"))
JOBS = {
    False: tuple(product(LINKS, [False, True], ["mixed"])),
    True: tuple(product(LINKS, [False, True], DECISIONS)),
}
"""By whether convnorm is there: links, streamed or not, and decisions."""


@pytest.mark.parametrize("safe", [False, True])
async def test_another_process(safe: bool) -> None:
    """Paused runs go on in a process that has their states as texts, and is told of no link.

    Until 0.14.5 the SDK alone loses an output there. The ledger of a state sends it, and sends none
    again that the server has, such as that of the turn before the pause.
    """
    agent = operator()
    async with site() as here:
        runs = config(here.bare())
        jobs = []
        for link, stream, decision in JOBS[safe]:
            here.server.play("Hello.", FIRST_CALL, THREE_CALLS)
            first = await run(agent, "Hello", run_config=runs)
            more = await here.link(link, first)
            waiting = await run(agent, "Clean up", stream=stream, run_config=runs, **more)
            text = waiting.to_state().to_string()
            jobs.append({"text": text, "decision": decision, "stream": stream})
        paused = len(here.server.requests)
        here.server.play(*["All done."] * len(JOBS[safe]))
        ends = await in_another_process(here, jobs, safe=safe)

    broken = [not safe and SDK < (0, 14, 5) and link != "local" for link, _, _ in JOBS[safe]]
    assert ends == [None if lost else "All done." for lost in broken]
    for (link, _, _), lost, request in zip(
        JOBS[safe], broken, here.server.requests[paused:], strict=True
    ):
        assert request.rule == ("resp-call-output-missing" if lost else None)
        outputs = [item["call_id"] for item in request.body["input"] if "output" in item]
        assert outputs.count("call_NET") == (link == "local")
        if not lost:
            _all_answered(request)


async def in_another_process(here: Site, jobs: list[dict[str, Any]], *, safe: bool) -> Any:
    """How runs end in a process of their own."""
    told = {"base_url": here.server.base_url, "safe": safe, "jobs": jobs}
    path = os.pathsep.join(sys.path)
    done = await anyio.run_process(
        [sys.executable, elsewhere.__file__],
        input=json.dumps(told).encode(),
        stderr=None,
        env={**os.environ, "PYTHONPATH": path},
    )
    return json.loads(done.stdout)


async def test_the_response_before_a_run() -> None:
    """What a run was started behind is not in its state, and is not taken for nothing."""
    agent = operator()
    async with site("Hello.", THREE_CALLS) as here:
        first = await run(agent, "Hello", run_config=config(here.bare()))
        more = await here.link("previous_response_id", first)
        waiting = await run(agent, "Clean up", run_config=config(here.bare()), **more)
        state = waiting.to_state()
        last = Link(waiting.last_response_id)
        ledgers = [ledger_from_state(state), ledger_from_state(state, **more)]

    assert [ledger.whole(last) for ledger in ledgers] == [False, False]
    before = [exchange.previous_response_id for exchange in ledgers[1].responses.values()]
    assert before == [first.last_response_id]
    assert [list(ledger.outputs) for ledger in ledgers] == [["call_DIAG"]] * 2


def _all_answered(request: Any) -> None:
    seen = [item for item in request.seen if item.get("call_id") != "call_NET"]
    outputs = [item for item in seen if item.get("type") == "function_call_output"]
    assert sorted(item["call_id"] for item in outputs) == [
        "call_CLEANUP1",
        "call_CLEANUP2",
        "call_DIAG",
    ]
    diagnosis = next(item for item in outputs if item["call_id"] == "call_DIAG")
    assert diagnosis["output"] == "disk is well"
