"""What servers of the Responses API differ in, for the rules."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from convnorm.targets.fault import Fault

Verdict = Literal["refused", "disputed", "accepted"]
"""What a server does with something: `disputed` where nobody knows, or sources disagree."""


@dataclass(frozen=True, slots=True)
class ResponsesProfile:
    """What one server, with one model, takes in `input`.

    The defaults are for a server that nobody has described: what only OpenAI's own servers are
    known to check is disputed there.
    """

    ASKS: ClassVar[Mapping[Fault, tuple[str, str]]] = {}
    """What only some servers or models refuse: the field below that says so, and the rule."""

    schema: Verdict = "disputed"
    """What becomes of what OpenAI's schema forbids: ids and names of the wrong shape or length,
    unknown keys and item types, texts that are too long."""
    assistant_input: Verdict = "disputed"
    """What becomes of input parts in an assistant message, which the SDK's types allow."""
    reasoning_content: Verdict = "disputed"
    """What becomes of reasoning that is sent as plain text."""
    reasoning_model: bool = True
    """The model takes reasoning items."""
    reasoning_id: bool = False
    """A reasoning item has its id, even beside its encrypted content."""
    one_sealed_response: bool = False
    """The sealed reasoning of a request is that of one response."""
    keeps_responses: bool = True
    """The server stores responses, so that a request can continue one."""
    output_message: bool = False
    """An assistant message made of parts is a whole output message, as the SDK's types have it."""


OPENAI: Mapping[str, Any] = {
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
        "schema": "accepted",
        "assistant_input": "accepted",
        "reasoning_content": "accepted",
        "output_message": True,
    },
}
"""By provider: the fields of the profile that are different there."""

MODELS: tuple[tuple[str, str | None, Mapping[str, Any]], ...] = (
    (
        r"(^|/)(gpt-3\.5|gpt-35|gpt-4|gpt-4o|gpt-4\.[15]|chatgpt-4o)(-|$)",
        None,
        {"reasoning_model": False},
    ),
    (r"^gpt-6", "azure", {"one_sealed_response": True}),
)
"""A pattern of model names, the provider it is about (None: all), and what is different."""
