"""Call ids that a model uses again: the SDK takes such calls for one, each in its own way."""

from contextlib import suppress
from typing import Any

import pytest
from agents import Agent, ModelBehaviorError, SQLiteSession
from agents.run_config import CallModelData, ModelInputData
from convnorm_openai_agents import (
    Hooks,
    NormalizingModelProvider,
    NormalizingSession,
    ledger_from_state,
)
from convnorm_openai_agents.call_ids import again, original
from openai import BadRequestError
from play import LINKS, SDK, Site, add, approve, config, operator, run, site

from convnorm.testing import Reply, call

pytestmark = pytest.mark.anyio

AGENT = Agent[Any](name="adder", tools=[add])


def counted(*numbers: int) -> Reply:
    """An answer whose calls all have the same id."""
    return Reply(*(call("add", a=number, b=0, call_id="call_0") for number in numbers))


SCRIPTS: dict[str, tuple[tuple[Any, ...], list[str]]] = {
    # name: what the model says, and what its calls return
    "in two answers": ((counted(1), counted(2), "Done."), ["1", "2"]),
    "for the same call": ((counted(1), counted(1), "Done."), ["1", "1"]),
    "in one answer": ((counted(1, 2), "Done."), ["1", "2"]),
    "in every answer": ((counted(1), counted(2, 3), counted(4), "Done."), ["1", "2", "3", "4"]),
}
KINDS = (*LINKS, "chat")


def outputs(here: Site) -> list[Any]:
    """What tools returned, as the model saw it at last."""
    seen = here.server.requests[-1].seen
    return [
        item.get("output") or item["content"]
        for item in seen
        if "output" in item or item.get("role") == "tool"
    ]


async def played(here: Site, kind: str, *, stream: bool, safe: bool, **options: Any) -> Any:
    provider: Any = here.bare(chat=kind == "chat")
    if safe:
        provider = normal = NormalizingModelProvider(inner=provider, on_error="raise")
        options["hooks"] = Hooks(normal)
    runs = config(provider, **options.pop("config", {}))
    more = {}
    if kind == "previous_response_id":
        here.server.play("Hello.")
        more = await here.link(kind, await run(AGENT, "Hello", run_config=runs))
    elif kind != "chat":
        more = await here.link(kind, None)
    here.server.play(*options.pop("script"))
    return await run(AGENT, "add", stream=stream, run_config=runs, **more, **options)


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("kind", KINDS)
async def test_the_sdk_alone(name: str, kind: str) -> None:
    """The model sees other outputs than its calls had, if it sees any and the run does not end."""
    script, wanted = SCRIPTS[name]
    async with site() as here:
        with suppress(BadRequestError, ModelBehaviorError):
            await played(here, kind, stream=False, safe=False, script=script)

    linked, alone = kind not in ("local", "chat"), name in ("in two answers", "for the same call")
    assert (outputs(here) == wanted) == (SDK < (0, 20) and linked and alone)


@pytest.mark.parametrize("name", SCRIPTS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stream", [False, True])
async def test_with_convnorm(name: str, kind: str, stream: bool) -> None:
    """Every call is run, and the model sees what it returned, in the order of the calls."""
    script, wanted = SCRIPTS[name]
    async with site() as here:
        done = await played(here, kind, stream=stream, safe=True, script=script)

    assert done.final_output == "Done."
    assert set(here.rules) == {None}
    assert outputs(here) == wanted
    if kind not in ("local", "chat"):  # the server has its own ids
        sent = [item["call_id"] for given in here.inputs for item in given if "output" in item]
        assert set(sent) == {"call_0"}


def without_the_first(data: CallModelData[Any]) -> ModelInputData:
    """A filter that loses the first of two outputs."""
    found = data.model_data.input
    at = next((at for at, item in enumerate(found) if "output" in item), len(found))
    kept = found if len(found) == 1 else [*found[:at], *found[at + 1 :]]
    return ModelInputData(kept, data.model_data.instructions)


@pytest.mark.parametrize("kind", LINKS[:-1])
async def test_an_output_that_is_lost_on_the_way(kind: str) -> None:
    """Of two calls with one id, each has its own output still."""
    script, wanted = SCRIPTS["in one answer"]
    lossy = {"call_model_input_filter": without_the_first}
    async with site() as here:
        await played(here, kind, stream=False, safe=True, script=script, config=lossy)

    assert set(here.rules) == {None}
    assert outputs(here) == wanted


@pytest.mark.parametrize("kind", ["local", "chat"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_session_is_not_poisoned(kind: str, stream: bool) -> None:
    """What is stored of several runs has an id for each call."""
    store = SQLiteSession("one")
    script = (counted(1), "One.", counted(2), "Two.")
    async with site(*script) as here:
        provider = NormalizingModelProvider(inner=here.bare(chat=kind == "chat"), on_error="raise")
        session = NormalizingSession(store, on_error="raise")
        options = {"stream": stream, "session": session, "run_config": config(provider)}
        for text in ("1 + 0?", "2 + 0?"):
            await run(AGENT, text, **options)
    held = await store.get_items()
    store.close()

    assert outputs(here) == ["1", "2"]
    assert [item["output"] for item in held if "output" in item] == ["1", "2"]
    assert len({item["call_id"] for item in held if "call_id" in item}) == 2


BESIDE = Reply(
    call("run_cleanup", target="a", call_id="call_0"),
    call("run_diagnostic", check_name="disk", call_id="call_0"),
    call("run_cleanup", target="b", call_id="call_0"),
)
ANSWERS = ["cleaned a", "disk is well", "Tool execution was not approved."]


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("known", ["hooks", "state"])
async def test_approvals(link: str, stream: bool, known: str) -> None:
    """A run waits for two of three calls with one id, and goes on, here or elsewhere."""
    agent = operator()
    async with site("Hello.", BESIDE, "All done.") as here:
        provider = NormalizingModelProvider(inner=here.bare(), on_error="raise")
        options: dict[str, Any] = {"stream": stream, "run_config": config(provider)}
        options["hooks"] = Hooks(provider)
        more = await here.link(link, await run(agent, "Hello", **options))
        waiting = await run(agent, "Clean up", **options, **more)
        state = await approve(waiting.to_state(), agent, "mixed", serialise=True)
        if known == "state":
            ledger = ledger_from_state(state)
            provider = NormalizingModelProvider(inner=here.bare(), ledger=ledger, on_error="raise")
            options = {"stream": stream, "run_config": config(provider)}
        await run(agent, state, **options, **more)

    assert here.rules == [None] * 3
    if link != "local":
        assert outputs(here) == ANSWERS
        return
    calls, found = (
        {item["call_id"]: item for item in here.inputs[-1] if key in item}
        for key in ("name", "output")
    )
    assert [found[call_id]["output"] for call_id in calls] == ANSWERS


def test_what_only_looks_like_one_of_ours() -> None:
    """An id of another's making is never cut."""
    assert original(again("call_0", "abcdef")) == "call_0"
    assert original("call_0_again_abcdef0000") == "call_0_again_abcdef0000"
    assert original("call_0") == "call_0"
