"""What `check` accepts, the types of the openai SDK accept too."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic import TypeAdapter

from convnorm import check
from sdk_types import refusals

ADAPTERS: dict[str, tuple[str, TypeAdapter[Any]]] = {
    "openai.chat": ("messages", TypeAdapter(list[ChatCompletionMessageParam])),
    "openai.responses": ("input", TypeAdapter(list[ResponseInputItemParam])),
}
CASES = Path(__file__).parent.parent / "cases"


def disagreements(api: str, requests: Iterator[Any]) -> Iterator[tuple[Any, list[str]]]:
    """Requests that `check` accepts and the types do not."""
    key, adapter = ADAPTERS[api]
    for request in requests:
        if check(request, api, disputed=True) or isinstance(request.get(key), str):
            continue
        if found := refusals(adapter, filled(request[key])):
            yield request, found


FILL: dict[str, dict[str, Any]] = {
    "reasoning": {"id": "rs_1"},
    "output_text": {"annotations": []},
    "input_image": {"detail": "auto"},
}
"""By type: what the API is seen to do without, and the types ask for."""


def filled(value: Any) -> Any:
    """The items with what the types ask for and the API does not."""
    if isinstance(value, list):
        return [filled(one) for one in value]
    if not isinstance(value, dict):
        return value
    more = FILL.get(str(value.get("type")), {})
    if value.get("role") == "assistant" and isinstance(value.get("content"), list):
        more = {"type": "message", "id": "msg_1", "status": "completed"}
    return {**more, **{key: filled(one) for key, one in value.items()}}


def accepted(api: str) -> Iterator[Any]:
    """What the cases say is accepted."""
    for file in sorted((CASES / api.replace(".", "_")).glob("*.json")):
        case = json.loads(file.read_text(encoding="utf-8"))
        if case["kind"] == "well-formed":
            yield case["request"]
        if isinstance(answer := case.get("one_acceptable_answer"), dict):
            yield answer


@pytest.mark.parametrize("api", ADAPTERS)
def test_accepted_cases_fit_the_types(api: str) -> None:
    """The answers that the cases call right."""
    assert list(disagreements(api, accepted(api))) == []
