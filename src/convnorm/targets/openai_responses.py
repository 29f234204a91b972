"""What servers of the Responses API differ in, for the rules."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from convnorm.targets.fault import Fault
from convnorm.targets.profile import Profile, Verdict
from convnorm.targets.responses_items import TEXT_LENGTH


@dataclass(frozen=True, slots=True)
class ResponsesProfile(Profile):
    """What one server, with one model, takes in `input`.

    The defaults are for a server that nobody has described: what only OpenAI's own servers are
    known to check is disputed there.
    """

    ASKS: ClassVar[Mapping[Fault, tuple[str, str]]] = {
        Fault.CALL_ID_LONG: ("call_id_length", "resp-call-id-too-long"),
        Fault.NAME_EMPTY: ("name_length", "resp-name-invalid"),
        Fault.NAME_FORM: ("name_length", "resp-name-invalid"),
        Fault.ITEM_ID_LONG: ("item_id_length", "resp-id-too-long"),
        Fault.ITEM_ID_LETTERS: ("item_id_length", "resp-id-charset"),
        Fault.ITEM_ID_PREFIX: ("item_id_length", "resp-id-prefix"),
        Fault.ARGUMENTS_UNPARSED: ("parsed_arguments", "template-arguments-json"),
        Fault.REASONING_REFUSED: ("no_reasoning", "resp-reasoning-nonreasoning-model"),
        Fault.REASONING_TEXT: ("reasoning_content", "resp-reasoning-content-not-allowed"),
        Fault.REASONING_ID_LOST: ("reasoning_id", "azure-foundry-reasoning-id-required"),
        Fault.OTHER_RESPONSE: ("one_sealed_response", "azure-conflicting-continuation"),
        Fault.KEY_UNKNOWN: ("strict", "resp-unknown-field"),
        Fault.KEY_EMPTY: ("strict", "resp-unknown-field"),
        Fault.KEY_CALLS: ("strict", "resp-unknown-field"),
        Fault.VALUE_ODD: ("typed", "resp-malformed"),
        Fault.VALUE_LOST: ("typed", "resp-malformed"),
        Fault.ITEM_MALFORMED: ("typed", "resp-malformed"),
        Fault.MESSAGE_HALF: ("output_message", "compat-output-message-shape"),
        Fault.MESSAGE_CITING: ("output_message", "compat-output-message-shape"),
        Fault.MEDIA_ELSEWHERE: ("assistant_media_refused", "resp-content-part-type"),
    }

    item_id_length: int | None = None
    """How long the id of an item may be, where its letters and its prefix are checked."""
    schema: Verdict = "disputed"
    """What becomes of what OpenAI's schema forbids: ids and names of the wrong shape or length,
    unknown keys and item types, texts that are too long."""
    assistant_input: Verdict = "disputed"
    """What becomes of input parts in an assistant message, which the SDK's types allow."""
    reasoning_content: Verdict = "disputed"
    """What becomes of reasoning that is sent as plain text."""
    no_reasoning: bool = False
    """The model takes no reasoning items."""
    reasoning_id: bool = False
    """A reasoning item has its id, even beside its encrypted content."""
    one_sealed_response: bool = False
    """The sealed reasoning of a request is that of one response."""
    keeps_responses: bool = True
    """The server stores responses, so that a request can continue one."""
    output_message: bool = False
    """An assistant message made of parts is a whole output message, as the SDK's types have it."""

    @property
    def longest_text(self) -> int | None:
        """How many characters a text, an output or arguments may have, where it is known."""
        return TEXT_LENGTH if self.strict else None

    @property
    def strict(self) -> bool:
        """Whether a key that is not in the schema is refused."""
        return self.schema == "refused"

    @property
    def typed(self) -> bool:
        """Whether a value that has not the type of the schema is refused: where unknown keys pass,
        too, those that are known are looked at.
        """
        return self.schema != "disputed"

    @property
    def assistant_media_refused(self) -> bool:
        """Whether media in the assistant's messages are known to be refused."""
        return self.assistant_input == "refused"


OPENAI: Mapping[str, Any] = {
    "call_id_length": 64,
    "item_id_length": 64,
    "name_length": 128,
    "schema": "refused",
    "assistant_input": "refused",
    "reasoning_content": "refused",
}

PROVIDERS: Mapping[str, Mapping[str, Any]] = {
    "openai": OPENAI,
    "azure": OPENAI,
    "azure-foundry": {**OPENAI, "reasoning_id": True},
    "codex-backend": {**OPENAI, "keeps_responses": False},
    "mlx-vlm": {"keeps_responses": False},
    "ollama": {"keeps_responses": False},
    # It validates against the SDK's types, which know no patterns and lengths and let unknown
    # keys pass.
    "vllm": {
        "parsed_arguments": "refused",
        "schema": "accepted",
        "assistant_input": "accepted",
        "reasoning_content": "accepted",
        "output_message": True,
    },
}
"""By provider: the fields of the profile that are different there."""

MODELS: tuple[tuple[str, str | None, Mapping[str, Any]], ...] = (
    (
        r"(^|/|^ft:)(gpt-3\.5|gpt-35|gpt-4|gpt-4o|gpt-4\.[15]|chatgpt-4o)([-:]|$)",
        None,
        {"no_reasoning": True},
    ),
    (r"^gpt-6", "azure", {"one_sealed_response": True}),
)
"""A pattern of model names, the provider it is about (None: all), and what is different."""
