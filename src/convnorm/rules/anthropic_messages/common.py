"""What the rules of Anthropic Messages share: names, and pieces of examples."""

from typing import Any, Final

API: Final = "anthropic.messages"
SDK: Final = "anthropic 2.10.0 types"

CALL: Final[dict[str, Any]] = {"type": "tool_use", "id": "toolu_1", "name": "balance", "input": {}}
RESULT: Final[dict[str, Any]] = {
    "type": "tool_result",
    "tool_use_id": "toolu_1",
    "content": "10 EUR",
}
THOUGHT: Final[dict[str, Any]] = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
SEARCH: Final[dict[str, Any]] = {
    "type": "server_tool_use",
    "id": "srvtoolu_1",
    "name": "web_search",
    "input": {"query": "rates"},
}
MARK: Final[dict[str, Any]] = {"type": "ephemeral"}


def user(*content: Any) -> dict[str, Any]:
    """A user message: a text, or blocks."""
    return {"role": "user", "content": _content(content)}


def assistant(*content: Any) -> dict[str, Any]:
    """An assistant message: a text, or blocks."""
    return {"role": "assistant", "content": _content(content)}


def text(said: str, **more: Any) -> dict[str, Any]:
    """A text block."""
    return {"type": "text", "text": said, **more}


def _content(given: tuple[Any, ...]) -> Any:
    return given[0] if len(given) == 1 and isinstance(given[0], str) else list(given)
