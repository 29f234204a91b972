"""Arguments that a server parses; Responses asks for the same, of its own items."""

import json
from collections.abc import Iterator

from convnorm.rules.openai_chat.common import call, calling, describe, result, user
from convnorm.rules.rule import Finding, Rule
from convnorm.rules.scan import Scan
from convnorm.wire import fields


def _unparsed_arguments(scan: Scan) -> Iterator[Finding]:
    verdict = scan.target.profile.parsed_arguments
    if verdict == "accepted":
        return
    fits = _is_object if verdict == "refused" else _is_whole
    for one in scan.pairs.calls:
        function = fields(one.raw.get("function"))
        arguments = (one.raw if function is None else function).get("arguments")
        if isinstance(arguments, str) and not fits(arguments):
            where = one.where if function is None else f"{one.where}.function"
            what = "no JSON object" if verdict == "refused" else "cut off"
            why = f"the arguments of {describe(one)} are {what}"
            yield Finding(one.position, f"{where}.arguments", why, disputed=verdict == "disputed")


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _is_whole(text: str) -> bool:
    """Whether a text is no object that was cut off: what every server that parses refuses."""
    bare = text.strip()
    return not bare.startswith("{") or bare.endswith("}")


ARGUMENTS_JSON = Rule(
    id="template-arguments-json",
    api="any",
    statement="The arguments of an old call parse as a JSON object.",
    error="400 Expecting ',' delimiter: line 1 column 54 (char 53)",
    level="model",
    certainty="observed",
    sources=(
        "vllm-project/vllm#43995",
        "vllm-project/vllm#48922",
        "OpenHands/software-agent-sdk#2887",
        "sgl-project/sglang#28035",
        "mudler/vllm.cpp#526 (what vLLM does)",
        "ggml-org/llama.cpp#25583 (an error, where the template wants an object)",
        "ggml-org/llama.cpp#24329 (the text is left as it is)",
    ),
    repair="repair_arguments",
    loss="the structure of arguments that do not parse; their text is kept",
    remedy="send {} for empty arguments, and wrap broken ones in a JSON object",
    example={"messages": [user(), calling(call(arguments='{"account": ')), result()]},
    setting={"provider": "vllm"},
    find=_unparsed_arguments,
)
