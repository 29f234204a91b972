"""The width and height of an image, from the first bytes of its base64 text."""

import base64

PNG = b"\x89PNG\r\n\x1a\n"
SHORT = 64
"""Characters of base64 that hold the size in every format but JPEG."""
LONG = 1 << 17
"""How far into a JPEG the size is looked for: behind a preview and a colour profile."""
FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Markers of a JPEG that are followed by the size."""


def image_size(data: str) -> tuple[int, int] | None:
    """The size in pixels, or None where it cannot be read."""
    head = _bytes(data, SHORT)
    if head.startswith(b"\xff\xd8"):
        return _jpeg(_bytes(data, LONG))
    if head.startswith(PNG) and len(head) >= 24:
        return _big(head[16:20]), _big(head[20:24])
    if head.startswith((b"GIF87a", b"GIF89a")) and len(head) >= 10:
        return _little(head[6:8]), _little(head[8:10])
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP" and len(head) >= 30:
        return _webp(head)
    return None


def _bytes(data: str, length: int) -> bytes:
    try:
        return base64.b64decode(data[:length], validate=True)
    except ValueError:
        return b""


def _big(raw: bytes) -> int:
    return int.from_bytes(raw, "big")


def _little(raw: bytes) -> int:
    return int.from_bytes(raw, "little")


def _webp(head: bytes) -> tuple[int, int] | None:
    kind = head[12:16]
    if kind == b"VP8X":
        return _little(head[24:27]) + 1, _little(head[27:30]) + 1
    if kind == b"VP8L":
        bits = _little(head[21:25])
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        return _little(head[26:28]) & 0x3FFF, _little(head[28:30]) & 0x3FFF
    return None


def _jpeg(raw: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 <= len(raw) and raw[at] == 0xFF:
        marker = raw[at + 1]
        if marker in FRAMES:
            return _big(raw[at + 7 : at + 9]), _big(raw[at + 5 : at + 7])
        at += 2 + max(_big(raw[at + 2 : at + 4]), 2)
    return None
