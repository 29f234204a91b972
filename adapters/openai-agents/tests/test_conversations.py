"""One provider for many conversations, and for long ones: whose output it is, and what is kept."""

import pickle
from contextlib import suppress
from typing import Any

import anyio
import pytest
from agents import Agent, RunState
from agents.run_config import CallModelData, ModelInputData
from convnorm_openai_agents import Hooks, NormalizingModelProvider
from convnorm_openai_agents.ledger_keeper import MOST, LedgerKeeper
from openai import BadRequestError
from play import SDK, THREE_CALLS, add, config, operator, run, run_diagnostic, site

from convnorm.delivery import Ledger, Link
from convnorm.testing import Reply, call

pytestmark = pytest.mark.anyio

AGENT = Agent[Any](name="adder", tools=[add, run_diagnostic])


def without_sums(data: CallModelData[Any]) -> ModelInputData:
    """A filter that loses one of two outputs, as the SDK did in several releases."""
    kept = [
        item
        for item in data.model_data.input
        if item.get("type") != "function_call_output" or item["call_id"] != "call_0"
    ]
    return ModelInputData(kept, data.model_data.instructions)


def counted(a: int) -> Reply:
    """Two calls, counted from nought, as some servers do."""
    return Reply(
        call("add", a=a, b=0, call_id="call_0"),
        call("run_diagnostic", check_name="disk", call_id="call_1"),
    )


@pytest.mark.parametrize("link", ["conversation_id", "auto_previous_response_id"])
@pytest.mark.parametrize("stream", [False, True])
async def test_the_same_call_ids_in_two_conversations(link: str, stream: bool) -> None:
    """What is sent for a call is what that very call returned, whatever the other one did."""
    async with site(counted(1), counted(2), "One.", "Two.") as here:
        provider = NormalizingModelProvider(inner=here.bare(), on_error="raise")
        options: dict[str, Any] = {
            "stream": stream,
            "run_config": config(provider, call_model_input_filter=without_sums),
            "hooks": Hooks(provider),
        }
        # Each run stops behind its tools, so that both have returned before either goes on.
        stopped = AGENT.clone(tool_use_behavior="stop_on_first_tool")
        links = [await here.link(link, None) for _ in "ab"]
        for more in links:
            await run(stopped, "Go", **options, **more)
        for more, answer in zip(
            links, [request.answer for request in here.server.requests if request.api], strict=True
        ):
            on = more if link == "conversation_id" else {"previous_response_id": answer}
            await run(AGENT, "And?", **options, **on)

    assert here.rules == [None] * 4
    sent = [[item["output"] for item in given if "output" in item] for given in here.inputs[2:]]
    assert sent == [["1", "disk is well"], ["2", "disk is well"]]


def reply(request: Any) -> Any:
    """Asks for the sum of what the user names, under an id that all use; then says it."""
    texts = [item["content"] for item in request.seen if item.get("role") == "user"]
    outputs = [item["output"] for item in request.seen if "output" in item]
    number = int(texts[-1])
    return outputs[-1] if outputs else Reply(call("add", a=number, b=1, call_id="call_0"))


@pytest.mark.parametrize("link", ["conversation_id", "auto_previous_response_id", "local"])
@pytest.mark.parametrize("stream", [False, True])
async def test_many_runs_at_a_time(link: str, stream: bool) -> None:
    """Runs that share a provider, and call ids, and all wait for each other, mix nothing up."""
    async with site() as here:
        here.server.play(reply)
        provider = NormalizingModelProvider(inner=here.bare(), on_error="raise")
        options: dict[str, Any] = {"stream": stream, "hooks": Hooks(provider)}
        runs = config(provider, call_model_input_filter=without_sums)
        found: dict[int, str] = {}

        async def one(number: int) -> None:
            done = await run(AGENT, str(number), run_config=runs, **options, **links[number])
            found[number] = done.final_output

        links = [await here.link(link, None) for _ in range(20)]
        async with anyio.create_task_group() as tasks:
            for number in range(20):
                tasks.start_soon(one, number)

    assert found == {number: str(number + 1) for number in range(20)}
    assert set(here.rules) == {None}


@pytest.mark.parametrize("safe", [False, True])
async def test_a_paused_run_is_resumed_twice(safe: bool) -> None:
    """Two decisions on one state are two branches: each has the output of the call beside."""
    agent = operator()
    async with site("Hello.", THREE_CALLS, "Approved.", "Rejected.") as here:
        provider: Any = here.bare()
        options: dict[str, Any] = {}
        if safe:
            provider = NormalizingModelProvider(inner=provider, on_error="raise")
            options["hooks"] = Hooks(provider)
        options["run_config"] = config(provider)
        first = await run(agent, "Hello", **options)
        options |= await here.link("previous_response_id", first)
        waiting = await run(agent, "Clean up", **options)
        text = waiting.to_state().to_string()
        for decide in (RunState.approve, RunState.reject):
            state: RunState[Any] = await RunState.from_string(agent, text)
            for item in state.get_interruptions():
                decide(state, item)
            with suppress(BadRequestError):
                await run(agent, state, **options)

    broken = not safe and SDK < (0, 14, 5)
    assert here.rules[2:] == (["resp-call-output-missing"] * 2 if broken else [None] * 2)
    for request in here.server.requests[-2:] if safe else ():
        outputs = [item.get("call_id") for item in request.seen if "output" in item]
        assert sorted(outputs) == ["call_CLEANUP1", "call_CLEANUP2", "call_DIAG"]


async def test_a_branch_takes_nothing_of_the_other() -> None:
    """Two runs go on from one response; each is then continued with its own."""
    async with site("Hello.", *[Reply(call("add", a=at, b=0)) for at in (1, 2)], "1", "2") as here:
        provider = NormalizingModelProvider(inner=here.bare(), on_error="raise")
        options: dict[str, Any] = {"run_config": config(provider), "hooks": Hooks(provider)}
        stopped = AGENT.clone(tool_use_behavior="stop_on_first_tool")
        first = await run(AGENT, "Hello", **options)
        ends = []
        for question in ("a", "b"):
            end = await run(
                stopped, question, **options, previous_response_id=first.last_response_id
            )
            ends.append(end.last_response_id)
        for end in ends:  # as a run that died before it could send the output
            await run(AGENT, "And?", **options, previous_response_id=end)

    assert here.rules == [None] * 5
    assert [given[0]["output"] for given in here.inputs[3:]] == ["1", "2"]


def window(data: CallModelData[Any]) -> ModelInputData:
    """The first message, and the last ones."""
    first, *rest = data.model_data.input
    at = max(0, len(rest) - 6)
    while at < len(rest) and rest[at].get("type") == "function_call_output":
        at += 1
    return ModelInputData([first, *rest[at:]], data.model_data.instructions)


class Measured(LedgerKeeper):
    """Notes how large it is after each answer."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def accepted(self, *given: Any) -> None:
        super().accepted(*given)
        self.sizes.append(len(pickle.dumps(self)))


LONG = (*(Reply(call("add", a=at, b=1)) for at in range(40)), "Done.")


async def test_what_is_kept_of_a_window() -> None:
    """Of a history that is sent in windows, only the newest window and its answers are kept."""
    async with site(*LONG) as here:
        provider = NormalizingModelProvider(inner=here.bare(), on_error="raise")
        provider.keeper = measured = Measured()
        runs = config(provider, call_model_input_filter=window)
        await run(AGENT, "add", run_config=runs, hooks=Hooks(provider), max_turns=len(LONG))

    assert here.rules == [None] * len(LONG)
    assert measured.sizes[-1] < 1.2 * measured.sizes[10]


@pytest.mark.parametrize("link", ["conversation_id", "auto_previous_response_id", "local"])
async def test_what_is_kept_of_a_long_conversation(link: str) -> None:
    """Each item is kept once: what is kept grows with the history, and with nothing else."""
    async with site(*LONG) as here:
        provider = NormalizingModelProvider(inner=here.bare(), on_error="raise")
        provider.keeper = measured = Measured()
        options: dict[str, Any] = {"run_config": config(provider), "hooks": Hooks(provider)}
        await run(AGENT, "add", max_turns=len(LONG), **options, **await here.link(link, None))

    assert here.rules == [None] * len(LONG)
    first, middle, last = (measured.sizes[at] for at in (0, 20, 40))
    assert last - middle < 1.2 * (middle - first)


def test_the_conversation_that_was_used_last_is_forgotten_last() -> None:
    """So many conversations are known, and no more; one that is not known is left as it is."""
    keeper = LedgerKeeper()
    links = [Link(conversation=f"conv_{at}") for at in range(MOST + 1)]
    for at, link in enumerate((*links[:-1], links[0], links[-1])):
        request = {"input": "q", "conversation": link.conversation}
        keeper.accepted(request, {"id": f"resp_{at}", "output": []}, [])

    known = [link for link in links if keeper.about(link, []) is not None]
    assert known == [links[0], *links[2:]]


async def test_what_is_known_goes_to_another_provider(tmp_path: Any) -> None:
    """What is known of a link can be kept as text, and given to the provider of another process."""
    calls = Reply(call("add", a=1, b=2, call_id="call_0"))
    stopped = AGENT.clone(tool_use_behavior="stop_on_first_tool")
    async with site(calls, "Three.") as here:
        provider = NormalizingModelProvider(inner=here.bare(), on_error="raise")
        runs = config(provider)
        done = await run(stopped, "1 + 2?", run_config=runs, hooks=Hooks(provider))
        text = provider.ledger_of(previous_response_id=done.last_response_id).to_json()
        ledger = Ledger.from_json(text)
        again = NormalizingModelProvider(inner=here.bare(), ledger=ledger, on_error="raise")
        on = await here.link("previous_response_id", done)
        await run(AGENT, "And?", run_config=config(again), **on)

    assert here.rules == [None, None]
    assert here.inputs[1][0]["output"] == "3"
    assert provider.ledger_of(conversation="conv_9") == Ledger()


async def test_calls_without_ids_of_their_own() -> None:
    """Where a server gives its calls no ids, the same call in two conversations is nobody's."""
    keeper = LedgerKeeper()
    asked = {"type": "function_call", "call_id": "call_0", "name": "add", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "call_0", "output": "3"}
    known = []
    for at in range(2):
        request = {"input": "q", "conversation": f"conv_{at}"}
        keeper.accepted(request, {"id": f"resp_{at}", "output": [asked]}, [])
        keeper.observed_output(output, asked)
        known.append(keeper.behind(Link(conversation=f"conv_{at}")).outputs)

    assert known == [{"call_0": output}, {}]
