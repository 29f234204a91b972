"""What passes repair."""

from enum import StrEnum


class Fault(StrEnum):
    """What can be wrong with a history, whoever the provider is.

    A pass repairs faults; `Target.rules` says which rule of this provider forbids each one.
    """

    UNANSWERED = "unanswered"
    DISPLACED = "displaced"
    ORPHAN = "orphan"
    SECOND_RESULT = "second_result"
    REUSED_CALL_ID = "reused_call_id"
    CALL_ID_MISSING = "call_id_missing"
    CALL_ID_EMPTY = "call_id_empty"
    RESULT_ID_MISSING = "result_id_missing"
    ID_TWICE = "id_twice"
    REPLAY = "replay"
    UNSTORED_REASONING = "unstored_reasoning"
    UNSTORED_ID = "unstored_id"
    NULL_CONTENT = "null_content"
    EMPTY_CONTENT = "empty_content"
    EMPTY_CALLS = "empty_calls"
    NULL_OUTPUT = "null_output"
    CALL_ID_LONG = "call_id_long"
    CALL_ID_FORM = "call_id_form"
    NAME_MISSING = "name_missing"
    NAME_EMPTY = "name_empty"
    NAME_FORM = "name_form"
    ITEM_ID_LONG = "item_id_long"
    ITEM_ID_LETTERS = "item_id_letters"
    ITEM_ID_PREFIX = "item_id_prefix"
    HOSTED_ID_MISSING = "hosted_id_missing"
    ARGUMENTS_RAW = "arguments_raw"
    ARGUMENTS_MISSING = "arguments_missing"
    ARGUMENTS_UNPARSED = "arguments_unparsed"
