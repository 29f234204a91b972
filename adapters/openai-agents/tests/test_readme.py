import ast
import re
from inspect import CO_COROUTINE
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, RunConfig, SQLiteSession, set_default_openai_client, set_tracing_disabled
from agents.run_config import ModelInputData
from convnorm_openai_agents import Hooks, NormalizingModelProvider
from play import THREE_CALLS, operator, run, site

from convnorm.stores import MemoryStore

pytestmark = pytest.mark.anyio

README = (Path(__file__).parent.parent / "README.md").read_text()
MOST_LINES = 5
EXAMPLES = re.findall(r"<!-- run -->\n```python\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_examples_are_short(number: int) -> None:
    """What a hook needs stands in five lines, beside the imports."""
    lines = [line for line in EXAMPLES[number].splitlines() if line]
    assert sum(not line.startswith(("from ", "import ")) for line in lines) <= MOST_LINES


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
async def test_examples_run(number: int) -> None:
    """Every example of the page runs, and the server refuses nothing."""
    set_tracing_disabled(True)
    session = SQLiteSession("one")
    async with site("Hello.", THREE_CALLS, "Done.", "More.") as here:
        set_default_openai_client(here.client, use_for_tracing=False)
        first = await run(Agent(name="greeter"), "Hello")
        waiting = await run(operator(), "Go", previous_response_id=first.last_response_id)
        provider = NormalizingModelProvider()
        names: dict[str, Any] = {
            "agent": operator(),
            "client": here.client,
            "history": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}],
            "last_three": lambda data: ModelInputData(
                data.model_data.input[-3:], data.model_data.instructions
            ),
            "mine": lambda data: data,
            "question": {"role": "user", "content": "Clean up"},
            "safe": {"run_config": RunConfig(model_provider=provider), "hooks": Hooks(provider)},
            "session": session,
            "store": MemoryStore(),
            "text": waiting.to_state().to_string(),
            "untraced": RunConfig(tracing_disabled=True),
        }
        code = compile(EXAMPLES[number], "README", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        done = eval(code, names)  # noqa: S307 - the example is our own
        if code.co_flags & CO_COROUTINE:
            await done
    session.close()

    assert set(here.rules) == {None}
