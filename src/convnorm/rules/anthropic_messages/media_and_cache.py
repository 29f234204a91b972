"""Images and cache markers: how many, how large, and where."""

from collections.abc import Iterator

from convnorm.rules.anthropic_messages.common import API, MARK, THOUGHT, assistant, text, user
from convnorm.rules.anthropic_messages.image_size import image_size
from convnorm.rules.anthropic_messages.schema import plain_fields
from convnorm.rules.anthropic_messages.text import system_texts
from convnorm.rules.read_anthropic import CACHED, THINKING, AnthropicScan
from convnorm.rules.rule import Finding, Rule
from convnorm.wire import LIST


def _too_many_marks(scan: AnthropicScan) -> Iterator[Finding]:
    limit = scan.profile.max_cache_markers
    if limit is None:
        return
    count = scan.marked
    for key in ("tools", "system"):
        value = scan.fields.get(key)
        for element in value if isinstance(value, LIST) else ():
            count += plain_fields(element).get(CACHED) is not None
    automatic = scan.fields.get(CACHED) is not None
    if count > limit:
        yield Finding(-1, "", f"{count} blocks have cache_control; {limit} may")
    elif count + automatic > limit:
        last = next((one for one in reversed(scan.blocks) if one.parent is None), None)
        yield Finding(
            -1,
            CACHED,
            f"{count} blocks have cache_control, and the request sets one more",
            # It goes to the last block, which may have one of its own.
            disputed=last is not None and last.raw.get(CACHED) is not None,
        )


def _marks_on_nothing(scan: AnthropicScan) -> Iterator[Finding]:
    if scan.profile.max_cache_markers is None:
        return
    for block in scan.blank:
        if not block.raw.get("text") and block.raw.get(CACHED) is not None:
            yield Finding(block.position, block.at(CACHED), "an empty text has cache_control")
    for path, said, marked in system_texts(scan):
        if marked and not said:
            yield Finding(-1, path, "an empty text has cache_control")


def _marks_on_thinking(scan: AnthropicScan) -> Iterator[Finding]:
    if scan.profile.max_cache_markers is None:
        return
    for block in scan.of_kind(*sorted(THINKING)):
        if CACHED in block.raw:
            yield Finding(
                block.position, block.at(CACHED), f"a {block.kind} block has cache_control"
            )


def _too_many_images(scan: AnthropicScan) -> Iterator[Finding]:
    limit, count = scan.profile.max_images, len(scan.by_kind.get("image", ()))
    if limit is not None and count > limit:
        yield Finding(-1, "", f"{count} images; this model takes {limit}")


def _large_images(scan: AnthropicScan) -> Iterator[Finding]:
    images, side = scan.by_kind.get("image", ()), scan.profile.many_images_side
    if scan.profile.many_images is None or len(images) <= scan.profile.many_images:
        return
    for block in images:
        source = plain_fields(block.raw.get("source"))
        data = source.get("data") if source.get("type") == "base64" else None
        size = image_size(data) if isinstance(data, str) else None
        if size is not None and max(size) > side:
            yield Finding(
                block.position,
                block.at("source"),
                f"one of {len(images)} images has {size[0]} x {size[1]} pixels; "
                f"among so many no side may exceed {side}",
            )


SMALL = {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}}
LARGE = {
    "type": "image",
    "source": {
        "type": "base64",
        "media_type": "image/png",
        "data": "iVBORw0KGgoAAAANSUhEUgAAC7gAAAABCAIAAAA=",  # 3000 x 1
    },
}

MEDIA_AND_CACHE = (
    Rule(
        id="anthropic-cache-control-too-many",
        api=API,
        error="400 A maximum of 4 blocks with cache_control may be provided. Found 5.",
        certainty="observed",
        sources=(
            "tghamm/Anthropic.SDK#50",
            "griffinmartin/opencode-claude-auth#121",
            "avante-corp/avante.nvim#425",
            "coder/mux#3112 (one of them at the top of the request)",
            "UKGovernmentBEIS/inspect_ai#4505 (the documents on automatic caching)",
        ),
        statement="A request has at most four cache_control markers, its own among them.",
        repair="scrub_fields",
        loss="cache hits",
        remedy="keep the newest markers and take the older ones out",
        retroactive=True,
        example={"messages": [user(*[text(str(one), cache_control=MARK) for one in range(5)])]},
        find=_too_many_marks,
    ),
    Rule(
        id="anthropic-cache-control-on-empty-text",
        api=API,
        error="400 messages.10.content.0.text: cache_control cannot be set for empty text blocks",
        certainty="observed",
        sources=(
            "askalf/dario#1066",
            "vercel/eve#2753",
            "anthropics/claude-code#55302",
        ),
        statement="An empty text block has no cache_control marker.",
        repair="scrub_fields",
        loss="nothing; the marker moves to the block before",
        remedy="set the marker on the last block that says something",
        companions=("anthropic-text-block-empty",),
        example={"messages": [user(text("hi"), text("", cache_control=MARK))]},
        find=_marks_on_nothing,
    ),
    Rule(
        id="anthropic-cache-control-on-thinking",
        api=API,
        error="400 messages.59.content.0.thinking.cache_control: Extra inputs are not permitted",
        certainty="observed",
        sources=(
            "lbjlaq/Antigravity-Manager#744",
            "UKGovernmentBEIS/inspect_ai#3967",
        ),
        statement="A thinking block has no cache_control marker.",
        repair="scrub_fields",
        loss="nothing; the marker moves to the next block that can have one",
        remedy="set the marker on a block that is no thinking",
        example={
            "messages": [
                user("?"),
                assistant(THOUGHT | {"cache_control": MARK}, text("10 EUR")),
                user("and?"),
            ]
        },
        find=_marks_on_thinking,
    ),
    Rule(
        id="anthropic-too-many-images",
        api=API,
        error="400 (no text is known; the limit is from the vision documents)",
        certainty="observed",
        sources=(
            "experientiallabs/experiential#786",
            "earendil-works/pi#401",
        ),
        statement="A request has at most 100 images, or 600 on models with a long context.",
        repair="fit_media",
        loss="the oldest images",
        remedy="drop the oldest images and leave a text where they stood",
        retroactive=True,
        example={"model": "claude-sonnet-4-5", "messages": [user(*[SMALL] * 101)]},
        find=_too_many_images,
    ),
    Rule(
        id="anthropic-image-many-too-large",
        api=API,
        error=(
            "400 At least one of the image dimensions exceed max allowed size for many-image "
            "requests: 2000 pixels"
        ),
        certainty="documented",
        sources=(
            "anthropics/claude-code#24630",
            "charmbracelet/crush#3810",
            "langgenius/dify#11177 (contrary measurement earendil-works/pi#120)",
        ),
        statement="With more than 20 images no side of an image exceeds 2000 pixels.",
        repair="fit_media",
        loss="the oldest images, or detail",
        remedy="scale images down before they are sent, or send 20 at most",
        retroactive=True,
        example={"messages": [user(*[SMALL] * 20, LARGE)]},
        find=_large_images,
    ),
)
