"""What servers of Chat Completions differ in, for the rules."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from convnorm.targets.fault import Fault
from convnorm.targets.profile import Profile, Verdict


@dataclass(frozen=True, slots=True)
class ChatProfile(Profile):
    """What one server, with one model, takes in `messages`.

    The defaults are for a server that nobody has described: what only OpenAI's own servers are
    known to check is disputed there.
    """

    ASKS: ClassVar[Mapping[Fault, tuple[str, str]]] = {
        Fault.CALL_ID_LONG: ("call_id_length", "chat-tool-call-id-too-long"),
        Fault.CALL_ID_FORM: ("nine_character_ids", "mistral-tool-call-id-format"),
        Fault.NAME_FORM: ("name_length", "chat-function-name-invalid"),
        Fault.ARGUMENTS_RAW: ("raw_arguments", "chat-arguments-not-string"),
        Fault.ARGUMENTS_MISSING: ("raw_arguments", "chat-arguments-not-string"),
        Fault.ARGUMENTS_UNPARSED: ("parsed_arguments", "template-arguments-json"),
        Fault.REASONING_OF_CALLS: ("calls_think", "moonshot-reasoning-content-missing"),
        Fault.REASONING_OF_TURNS: ("turns_think", "deepseek-reasoning-content-missing"),
        Fault.UNSIGNED_CALLS: ("signed_calls", "openrouter-gemini-thought-signature"),
        Fault.REASONING_TWICE: ("unique_reasoning_ids", "openrouter-duplicate-reasoning-id"),
        Fault.SPEAKER_NAME: ("checks_names", "chat-message-name-pattern"),
        Fault.SPEAKER_IN_TEXT: ("checks_names", "chat-message-name-pattern"),
        Fault.VALUE_ODD: ("typed", "chat-malformed"),
        Fault.VALUE_LOST: ("typed", "chat-malformed"),
        Fault.KEY_UNKNOWN: ("message_keys", "groq-unknown-field"),
        Fault.KEY_EMPTY: ("message_keys", "groq-unknown-field"),
        Fault.THOUGHT_KEY: ("message_keys", "groq-unknown-field"),
        Fault.REFUSAL_KEY: ("message_keys", "groq-unknown-field"),
        Fault.CONTENT_LISTED: ("text_only", "groq-assistant-content-string"),
        Fault.MEDIA_LISTED: ("text_only", "groq-assistant-content-string"),
        Fault.CONTENT_NULL: ("null_content", "ollama-content-nil"),
        Fault.CONTENT_MISSING: ("content_required", "xai-content-required"),
        Fault.SYSTEM_REFUSED: ("no_system", "chat-system-role-unsupported"),
        Fault.DEVELOPER_REFUSED: ("developer_role", "chat-developer-role-unsupported"),
        Fault.OUT_OF_TURN: ("alternating", "template-roles-alternate"),
        Fault.OUT_OF_ORDER: ("strict_order", "mistral-message-order"),
        Fault.PART_NAME: ("odd_parts", "chat-content-part-type"),
        Fault.MEDIA_ELSEWHERE: ("typed", "chat-content-part-type"),
        Fault.IMAGE_ELSEWHERE: ("images_refused", "chat-image-outside-user"),
    }

    names: Verdict = "disputed"
    """What becomes of names of functions and speakers that do not fit the pattern."""
    message_limit: int = 2048
    """How many messages one request may have."""
    too_many: Verdict = "accepted"
    """What becomes of a request with more messages than that."""
    system_role: Verdict = "accepted"
    """What becomes of system messages."""
    developer_role: Verdict = "accepted"
    """What becomes of developer messages."""
    alternating: bool = False
    """The model's template wants user and assistant in turns, and one system message at the head.
    """
    strict_order: bool = False
    """Calls and results are counted, no user follows a result, and the last turn is no reply."""
    odd_parts: Verdict = "disputed"
    """What becomes of content parts that the types do not give to the role, and of values that are
    not of the type they have there."""
    images_elsewhere: Verdict = "disputed"
    """What becomes of images that are not in a user message."""
    null_content: Verdict = "accepted"
    """What becomes of `content: null` on a message that calls tools."""
    content_required: bool = False
    """Every message has a content: a text, which may be empty, or at least one part."""
    text_only: frozenset[str] = frozenset()
    """Roles whose content was seen refused unless it was one string; sources disagree about it,
    least about the assistant."""
    message_keys: frozenset[str] | None = None
    """The keys that a message may have; None where others are passed over."""
    disputed_keys: frozenset[str] = frozenset()
    """Further keys, about which sources disagree."""
    thinks: bool = False
    """The model thinks unless the request says otherwise."""
    reasoning_returned: Literal["calls", "tool turns", "last tool turn"] | None = None
    """Which assistant messages carry their reasoning_content while the model thinks: those that
    call tools; all of every turn in which tools were called; or all of the last such turn, while
    sources disagree about the turns before it."""
    signed_calls: bool = False
    """A message that calls tools carries its reasoning_details."""
    unique_reasoning_ids: bool = False
    """An entry of reasoning_details with an id stands in one message only."""

    @property
    def most_messages(self) -> int | None:
        """How many messages the server is known to take."""
        return self.message_limit if self.too_many == "refused" else None

    @property
    def checks_names(self) -> bool:
        """Whether a speaker's name is refused that does not fit the pattern."""
        return self.names == "refused"

    @property
    def typed(self) -> bool:
        """Whether a value that has not its type, or its place, is refused."""
        return self.odd_parts == "refused"

    @property
    def no_system(self) -> bool:
        """Whether system messages are known to be refused."""
        return self.system_role == "refused"

    @property
    def images_refused(self) -> bool:
        """Whether images outside user messages are known to be refused."""
        return self.images_elsewhere == "refused"

    @property
    def calls_think(self) -> bool:
        """Whether messages that call tools carry their reasoning."""
        return self.reasoning_returned == "calls"

    @property
    def turns_think(self) -> bool:
        """Whether all replies of a turn in which tools are called do."""
        return self.reasoning_returned in ("tool turns", "last tool turn")


OPENAI: Mapping[str, Any] = {
    "call_id_length": 40,
    "names": "refused",
    "name_length": 64,
    "too_many": "disputed",
    "odd_parts": "refused",
    "images_elsewhere": "refused",
}
# A deployment takes developer messages or not by its age, which its name does not tell.
AZURE: Mapping[str, Any] = {**OPENAI, "too_many": "refused", "developer_role": "disputed"}
UNSURE: Mapping[str, Any] = {"developer_role": "disputed"}
# These parse the arguments for the template, llama.cpp for some templates only. Some releases take
# over what is no string, and vLLM by now reads an empty text as an empty object.
TEMPLATED: Mapping[str, Any] = {"parsed_arguments": "refused", "raw_arguments": "disputed"}

PROVIDERS: Mapping[str, Mapping[str, Any]] = {
    "openai": OPENAI,
    "azure": AZURE,
    "azure-foundry": AZURE,
    "copilot": {"call_id_length": 40},
    "dashscope": {"developer_role": "refused"},
    "deepseek": {**UNSURE, "reasoning_returned": "last tool turn"},
    "groq": {
        **UNSURE,
        # Its types have had parts there since July 2025; all refusals that were seen are older.
        "text_only": frozenset({"system", "assistant", "tool"}),
        "message_keys": frozenset(
            {"role", "content", "name", "tool_calls", "tool_call_id", "function_call"}
        ),
        # Its types have it on assistant messages, and users saw it refused.
        "disputed_keys": frozenset({"reasoning"}),
    },
    "llama.cpp": TEMPLATED,
    "mistral": {**UNSURE, "nine_character_ids": "refused", "strict_order": True},
    "moonshot": {**UNSURE, "reasoning_returned": "calls"},
    "ollama": {**UNSURE, "null_content": "refused"},
    "openrouter": {},
    "sglang": {**UNSURE, **TEMPLATED},
    "vllm": {**UNSURE, **TEMPLATED},
    "volcengine": {"developer_role": "refused"},
    "xai": {**UNSURE, "content_required": True},
}
"""By provider: the fields of the profile that are different there."""

SELF_HOSTED = ("llama.cpp", "sglang", "vllm")
O1 = r"(^|/)o1-(mini|preview)"
MISTRAL = r"mistral|mixtral|devstral"

MODELS: tuple[tuple[str, str | None, Mapping[str, Any]], ...] = (
    # Microsoft's table of reasoning models; of other models nobody says which take it.
    *(
        (r"^gpt-5(?!-chat)|^o[34]|^o1(?!-(mini|preview))", azure, {"developer_role": "accepted"})
        for azure in ("azure", "azure-foundry")
    ),
    (O1, None, {"system_role": "refused", "developer_role": "refused"}),
    # Reasoning of a turn without tools is ignored; only the first deepseek-reasoner refused it
    # (Euyug/Mirai-Gpt-Plugin#4).
    (r"reasoner|v4|flash", "deepseek", {"thinks": True}),
    (r"v4|flash", "deepseek", {"reasoning_returned": "tool turns"}),
    (r"thinking|k2\.[56]", "moonshot", {"thinks": True}),
    (r"^openai/", "openrouter", {"call_id_length": 40, "unique_reasoning_ids": True}),
    # Gemini 2.5 signs its calls too, and does not ask for the signatures.
    (r"^google/gemini-([3-9]|\d\d)", "openrouter", {"signed_calls": True}),
    *(
        record
        for server in SELF_HOSTED
        for record in (
            (rf"{MISTRAL}|gemma|llama-?2(?![\d.])", server, {"alternating": True}),
            # Old templates ask for such ids and new ones do not.
            (MISTRAL, server, {"nine_character_ids": "disputed"}),
        )
    ),
    (r"^mistralai/", "openrouter", {"nine_character_ids": "disputed"}),
)
"""A pattern of model names, the provider it is about (None: all), and what is different."""
