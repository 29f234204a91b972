import ast
import re
from inspect import CO_COROUTINE
from pathlib import Path
from typing import Any

import pytest
from framework import RELEASED

from convnorm.testing import StrictServer

pytestmark = pytest.mark.anyio

README = (Path(__file__).parent.parent / "README.md").read_text()
EXAMPLES = re.findall(r"<!-- run( since 1.0.0)? -->\n```python\n(.*?)```", README, re.DOTALL)
BEFORE = {  # as the page says
    "OpenAIChatClient": "OpenAIResponsesClient",
    "OpenAIChatCompletionClient": "OpenAIChatClient",
    "model=": "model_id=",
}


async def test_examples_run(
    strict_server: StrictServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The examples of the page run, one after the other, and the server refuses nothing."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_BASE_URL", strict_server.base_url)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", strict_server.url)
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "none")
    strict_server.play(lambda _: "Hello.")
    names: dict[str, Any] = {}
    clients: list[Any] = []
    run = 0
    for since, example in EXAMPLES:
        if since and not RELEASED:
            continue
        text = example
        for name, before in BEFORE.items() if not RELEASED else ():
            text = text.replace(name, before)
        code = compile(text, "README", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        done = eval(code, names)  # noqa: S307 - the example is our own
        if code.co_flags & CO_COROUTINE:
            await done
        run += 1
        if names["client"] not in clients:
            clients.append(names["client"])
    for client in clients:
        await client.client.close()

    assert run == (10 if RELEASED else 4)
    assert len(strict_server.requests) >= run - 1  # one makes a client and asks nothing
    assert {request.status for request in strict_server.requests} == {200}
