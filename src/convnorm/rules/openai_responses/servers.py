"""What only some servers ask for; which ones, the profiles say."""

from collections.abc import Iterator

from convnorm.rules.openai_responses.words import API
from convnorm.rules.read_responses import OUTPUTS, ResponsesScan, item_type
from convnorm.rules.rule import Finding, Rule
from convnorm.rules.scan import shown
from convnorm.wire import fields


def _reasoning_without_id(scan: ResponsesScan) -> Iterator[Finding]:
    for at in scan.reasoning if scan.target.responses.reasoning_id else ():
        if (scan.views[at] or {}).get("id") is None:
            yield Finding(at, ".id", "reasoning is sent without its id")


def _two_responses(scan: ResponsesScan) -> Iterator[Finding]:
    if not scan.target.responses.one_sealed_response:
        return
    sealed = [at for at in scan.reasoning if (scan.views[at] or {}).get("encrypted_content")]
    if len(sealed) < 2:
        return
    newest = sealed[-1]
    asked = answered = False
    todo = set(sealed)
    for at in range(newest - 1, sealed[0] - 1, -1):
        item = scan.views[at] or {}
        kind = item_type(item)
        asked = asked or (kind == "message" and item.get("role") != "assistant")
        answered = answered or kind in OUTPUTS
        if at in todo and (asked or answered):
            said = f"input[{newest}] has the sealed reasoning of another response"
            # One reporter saw this between turns; inside a turn nobody tried.
            yield Finding(at, ".encrypted_content", said, disputed=not asked)


def _no_responses_kept(scan: ResponsesScan) -> Iterator[Finding]:
    named = scan.context.previous_response_id
    if named is not None and not scan.target.responses.keeps_responses:
        said = f"the server keeps no responses, and the request continues {shown(named)}"
        yield Finding(-1, "previous_response_id", said)


def _half_messages(scan: ResponsesScan) -> Iterator[Finding]:
    for at in scan.spoken if scan.target.responses.output_message else ():
        item = scan.views[at] or {}
        for index, part in enumerate(item["content"]):
            keys = fields(part) or {}
            if keys.get("type") == "output_text" and keys.get("annotations") is None:
                said = "a text of an assistant message has no annotations"
                yield Finding(at, f".content[{index}]", said)
        for key in ("id", "status"):
            if item.get(key) is None:
                said = f"an assistant message made of parts has no {key}"
                yield Finding(at, f".{key}", said, disputed=True)


SERVERS = (
    Rule(
        id="azure-foundry-reasoning-id-required",
        api=API,
        statement="The project endpoint of Azure Foundry wants reasoning with its id.",
        error="400 invalid_payload: The provided data does not match the expected schema",
        level="model",
        certainty="observed",
        sources=("Azure/azure-sdk-for-net#59967", "NousResearch/hermes-agent#63446"),
        repair="repair_reasoning",
        loss="the reasoning, when its id is lost",
        remedy="keep the id beside the encrypted content, or leave the reasoning out",
        example={
            "store": False,
            "input": [
                {"role": "user", "content": "hello"},
                {"type": "reasoning", "summary": [], "encrypted_content": "gAAAAAB1"},
                {"role": "assistant", "content": "hi"},
            ],
        },
        setting={"provider": "azure-foundry"},
        code="invalid_payload",
        find=_reasoning_without_id,
    ),
    Rule(
        id="azure-conflicting-continuation",
        api=API,
        statement="On Azure, gpt-6 takes the sealed reasoning of one response only.",
        error="400 Conflicting authenticated continuation identities",
        level="model",
        certainty="observed",
        sources=("NousResearch/hermes-agent#101243 (one reporter, 10 variants)",),
        repair="repair_reasoning",
        loss="the reasoning of older responses, and the ids of what it led to",
        remedy="keep the reasoning of the newest response only",
        example={
            "input": [
                {"role": "user", "content": "hello"},
                {"type": "reasoning", "summary": [], "encrypted_content": "gAAAAAB1"},
                {"role": "assistant", "content": "hi"},
                {"role": "user", "content": "and?"},
                {"type": "reasoning", "summary": [], "encrypted_content": "gAAAAAB2"},
                {"role": "assistant", "content": "well"},
            ]
        },
        setting={"provider": "azure", "model": "gpt-6-astra"},
        retroactive=True,
        code="invalid_value",
        find=_two_responses,
    ),
    Rule(
        id="compat-previous-response-id-unsupported",
        api=API,
        statement="A server that keeps no responses continues none.",
        error=(
            "400 previous_response_id is not supported, send the whole conversation in input "
            "instead (Ollama today: ignored, 200)"
        ),
        level="model",
        certainty="observed",
        sources=("ollama/ollama#18439", "lidge-jun/opencodex#749", "Blaizzy/mlx-vlm#1046"),
        repair="settle_link",
        loss="nothing when the whole history is sent instead",
        remedy="leave previous_response_id out, and send the whole history",
        example={
            "previous_response_id": "resp_1",
            "input": [{"role": "user", "content": "and tomorrow?"}],
        },
        setting={"provider": "ollama"},
        find=_no_responses_kept,
    ),
    Rule(
        id="compat-output-message-shape",
        api=API,
        statement=(
            "vLLM takes an assistant message as a string, or as parts with id, status and "
            "annotations."
        ),
        error="400 240 validation errors: ...",
        level="model",
        certainty="observed",
        sources=(
            "langchain-ai/langchain#32557",
            "MiaAI-Lab/DeepSeek-v4-Flash-DSpark-2x-DGX-Spark#138",
        ),
        repair="scrub_fields",
        loss="the annotations",
        remedy="send the message as a string, or with all that an output message has",
        example={
            "input": [
                {"role": "user", "content": "hello"},
                {"role": "assistant", "content": [{"type": "output_text", "text": "hi"}]},
            ]
        },
        setting={"provider": "vllm"},
        find=_half_messages,
    ),
)
"""What single servers ask for."""
