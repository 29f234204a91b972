"""The APIs, each as its first party serves it."""

from convnorm.targets.fault import Fault
from convnorm.targets.target import Target

APIS = {
    "openai.chat": Target(
        name="openai.chat",
        dialect="openai.chat",
        adjacent_results=True,
        unique_call_ids="turn",
        rules={
            Fault.UNANSWERED: "chat-tool-calls-unanswered",
            Fault.DISPLACED: "chat-tool-calls-unanswered",
            Fault.ORPHAN: "chat-tool-message-orphan",
            Fault.SECOND_RESULT: "chat-duplicate-tool-result",
            Fault.REUSED_CALL_ID: "chat-duplicate-tool-call-id",
            Fault.CALL_ID_MISSING: "chat-tool-call-field-missing",
            Fault.CALL_ID_EMPTY: "chat-tool-call-field-missing",
            Fault.RESULT_ID_MISSING: "chat-tool-call-id-missing",
            Fault.REPLAY: "history-replayed",
            Fault.NULL_CONTENT: "chat-content-null",
            Fault.EMPTY_CONTENT: "chat-content-empty-array",
            Fault.EMPTY_CALLS: "chat-tool-calls-empty-array",
            Fault.NULL_OUTPUT: "chat-content-null",
            Fault.NAME_MISSING: "chat-function-name-invalid",
            Fault.NAME_EMPTY: "chat-function-name-invalid",
        },
    ),
    "openai.responses": Target(
        name="openai.responses",
        dialect="openai.responses",
        adjacent_results=False,
        unique_call_ids="history",
        rules={
            Fault.UNANSWERED: "resp-call-output-missing",
            Fault.DISPLACED: "resp-output-without-call",
            Fault.ORPHAN: "resp-output-without-call",
            Fault.SECOND_RESULT: "resp-duplicate-output",
            Fault.REUSED_CALL_ID: "resp-duplicate-call-id",
            Fault.CALL_ID_MISSING: "resp-required-field-missing",
            Fault.CALL_ID_EMPTY: "resp-call-id-empty",
            Fault.RESULT_ID_MISSING: "resp-required-field-missing",
            Fault.ID_TWICE: "resp-duplicate-item-id",
            Fault.REPLAY: "history-replayed",
            Fault.UNSTORED_REASONING: "resp-item-not-persisted",
            Fault.UNSTORED_ID: "id-unstored",
            Fault.NULL_CONTENT: "resp-required-field-missing",
            Fault.NULL_OUTPUT: "resp-required-field-missing",
            Fault.NAME_MISSING: "resp-required-field-missing",
            Fault.HOSTED_ID_MISSING: "resp-hosted-item-id-missing",
            Fault.ARGUMENTS_RAW: "resp-arguments-not-string",
            Fault.ARGUMENTS_MISSING: "resp-required-field-missing",
        },
    ),
    # Its dialect and its passes are not built: its rules are, for check().
    "anthropic.messages": Target(
        name="anthropic.messages",
        dialect="anthropic.messages",
        provider="anthropic",
        adjacent_results=True,
        unique_call_ids="history",
        rules={},
    ),
}
