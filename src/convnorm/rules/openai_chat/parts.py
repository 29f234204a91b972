"""Parts of a content, and images."""

from collections.abc import Iterator

from convnorm.rules.openai_chat.common import API, TYPES, calling, result
from convnorm.rules.rule import Finding, Rule
from convnorm.rules.scan import Scan, shown

IMAGE = "image_url"


def _odd_parts(scan: Scan) -> Iterator[Finding]:
    verdict = scan.target.chat.odd_parts
    if verdict == "accepted":
        return
    for at, index, keys in scan.odd_parts:
        kind = None if keys is None else keys.get("type")
        if kind == IMAGE:
            continue  # a rule of its own
        role = (scan.views[at] or {}).get("role")
        why = (
            "the content part is no object"
            if keys is None
            else f"a content part of a message of role {shown(role)} has the type {shown(kind)}"
        )
        yield Finding(at, f".content[{index}]", why, disputed=verdict == "disputed")


def _images(scan: Scan) -> Iterator[Finding]:
    verdict = scan.target.chat.images_elsewhere
    if verdict == "accepted":
        return
    for at, index, keys in scan.odd_parts:
        if keys is not None and keys.get("type") == IMAGE:
            role = (scan.views[at] or {}).get("role")
            why = f"a message of role {shown(role)} holds an image"
            yield Finding(at, f".content[{index}]", why, disputed=verdict == "disputed")


PARTS = (
    Rule(
        id="chat-content-part-type",
        api=API,
        statement=(
            "A content part has a type that the role allows: text for all, refusal for the "
            "assistant, image_url, input_audio and file for the user."
        ),
        error="400 Invalid value: 'input_text'. (documented; the rest of the wording not seen)",
        certainty="documented",
        sources=(TYPES,),
        repair="fit_media",
        loss="nothing where another API's name is known; else a mark stands for the part",
        remedy="use the part types of Chat Completions",
        example={"messages": [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}]},
        find=_odd_parts,
    ),
    Rule(
        id="chat-image-outside-user",
        api=API,
        statement="Images stand in user messages only; newer models do not see them elsewhere.",
        error=(
            "400 Invalid 'messages[2]'. Image URLs are only allowed for messages with role 'user', "
            "but this message with role 'tool' contains an image URL."
        ),
        certainty="observed",
        sources=(
            "OpenHands/OpenHands#7700",
            "openai/openai-node#1030",
            "openai/openai-openapi#523",
        ),
        repair="fit_media",
        loss="where the image came from is only told in words",
        remedy="move the image to a user message behind all results of the batch",
        example={
            "messages": [
                calling(),
                result(
                    content=[
                        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
                    ]
                ),
            ]
        },
        find=_images,
    ),
)
