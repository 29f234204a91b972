"""The real SDK: its input types are all known, and its own objects may stand in a history."""

import typing
from typing import Any

import pytest
from openai.types.chat import ChatCompletionMessage
from openai.types.chat.chat_completion_message_param import ChatCompletionMessageParam
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseReasoningItem,
)
from openai.types.responses.response_input_param import ResponseInputItemParam
from pydantic import TypeAdapter

from convnorm import Context, check, explain, normalize
from convnorm.dialects import openai_chat, openai_responses

CHAT, RESPONSES = "openai.chat", "openai.responses"


def literals(hint: Any) -> set[str]:
    """Every string in a (nested) Literal."""
    if isinstance(hint, str):
        return {hint}
    return {text for part in typing.get_args(hint) for text in literals(part)}


def test_every_input_item_type_is_known() -> None:
    """The SDK has no input item type that the dialect does not know."""
    types = set[str]()
    for param in typing.get_args(ResponseInputItemParam):
        types |= literals(typing.get_type_hints(param).get("type"))

    assert types - openai_responses.ITEMS.keys() == set()


def test_every_chat_role_is_known() -> None:
    """The SDK has no role that the dialect does not know."""
    roles = set[str]()
    for param in typing.get_args(ChatCompletionMessageParam):
        roles |= literals(typing.get_type_hints(param)["role"])

    assert roles == set(openai_chat.ROLES)


CALLING = ChatCompletionMessage.model_validate(
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
        ],
    }
)


def test_chat_objects_come_back_as_they_are() -> None:
    """People append `response.choices[0].message`; untouched, it is the same object."""
    answer = {"role": "tool", "tool_call_id": "call_1", "content": "x"}

    done = normalize([CALLING, answer], CHAT)
    assert done[0] is CALLING
    assert done[1] is answer


def test_unanswered_chat_object_is_closed() -> None:
    """The object stays, and its call gets a result."""
    done = normalize([CALLING, {"role": "user", "content": "?"}], CHAT)

    assert (CALLING, "call_1") == (done[0], done[1]["tool_call_id"])
    assert check(done, CHAT) == []


def test_tool_calls_of_an_object_inside_a_dict() -> None:
    """`{"tool_calls": message.tool_calls}` mixes both, and is common."""
    mixed = {"role": "assistant", "content": None, "tool_calls": CALLING.tool_calls}

    assert (
        explain([mixed, {"role": "tool", "tool_call_id": "call_1", "content": "x"}], CHAT).edits
        == ()
    )
    assert 3 == len(normalize([mixed, {"role": "user", "content": "?"}], CHAT))


def outputs() -> list[Any]:
    """What `response.output` holds."""
    return [
        ResponseReasoningItem(id="rs_1", summary=[], type="reasoning", encrypted_content="E"),
        ResponseFunctionToolCall(
            id="fc_1", call_id="call_1", name="f", arguments="{}", type="function_call"
        ),
        ResponseOutputMessage.model_validate(
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "a", "annotations": []}],
            }
        ),
    ]


def test_response_objects_come_back_as_they_are() -> None:
    """People extend their input with `response.output`."""
    history = [*outputs(), {"type": "function_call_output", "call_id": "call_1", "output": "x"}]

    done = normalize(history, RESPONSES, context=Context(store=True))
    assert all(a is b for a, b in zip(done, history, strict=True))


def test_changed_objects_become_what_their_client_would_send() -> None:
    """Without stored ids an object is written as its own fields, less the id."""
    history = [*outputs(), {"type": "function_call_output", "call_id": "call_1", "output": "x"}]

    done = normalize(history, RESPONSES, context=Context(store=False))
    expected = [item.model_dump(exclude_unset=True) for item in history[:3]]
    for item in expected:
        del item["id"]
    assert [*expected, history[3]] == done


@pytest.mark.parametrize(
    "call",
    [
        {"type": "function_call", "name": "f", "arguments": "{}"},
        {"type": "custom_tool_call", "name": "f", "input": "x"},
        {"type": "shell_call", "action": {"commands": ["ls"]}},
        {
            "type": "apply_patch_call",
            "status": "completed",
            "operation": {"type": "delete_file", "path": "a"},
        },
    ],
)
def test_what_is_invented_fits_the_sdk_types(call: dict[str, Any]) -> None:
    """Every invented output is one that the SDK's own types accept."""
    adapter: TypeAdapter[Any] = TypeAdapter(ResponseInputItemParam)

    for item in normalize([{**call, "call_id": "c"}], RESPONSES):
        adapter.validate_python(item)
