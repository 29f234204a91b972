"""What the values in messages and their parts look like, from the types of openai 3.51.0."""

from collections.abc import Mapping

from convnorm.targets.schema import OBJECT, STRING, Nullable, Shape, Wanted, words

TEXT = frozenset({"text"})
PARTS: Mapping[str, frozenset[str]] = {
    "user": frozenset({"text", "image_url", "input_audio", "file"}),
    "assistant": frozenset({"text", "refusal"}),
    **dict.fromkeys(("system", "developer", "tool", "function"), TEXT),
}
"""By role: the content parts that its type has."""
_BREAKPOINT = Shape({"mode": words("explicit")}, {"ttl": words("30m", "12h")})
_CACHED: Mapping[str, Wanted] = {"prompt_cache_breakpoint": _BREAKPOINT}
PART_SHAPES: Mapping[str, Shape] = {
    "text": Shape({"text": STRING}, _CACHED),
    "refusal": Shape({"refusal": STRING}),
    "image_url": Shape(
        {"image_url": Shape({"url": STRING}, {"detail": words("auto", "low", "high", "original")})},
        _CACHED,
    ),
    "input_audio": Shape(
        {"input_audio": Shape({"data": STRING, "format": words("wav", "mp3")})}, _CACHED
    ),
    "file": Shape(
        {"file": Shape({}, {"file_data": STRING, "file_id": STRING, "filename": STRING})}, _CACHED
    ),
}
"""By type: what a content part holds."""
VALUES: Mapping[str, Wanted] = {
    "audio": Nullable(Shape({"id": STRING})),
    "function_call": Nullable(OBJECT),
    "refusal": Nullable(STRING),
}
"""What an assistant message may have beside its content; its calls are read one by one."""
CUSTOM = Shape({"name": STRING, "input": STRING})
