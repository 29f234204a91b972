"""The walk over Anthropic's `messages`.

The server combines neighbouring messages of one role into one turn, so the walk does too: what
must stand beside what is judged on turns. Every block still knows the caller's own message.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from convnorm.context import Context
from convnorm.rules.scan import Scan, usable
from convnorm.targets import Target
from convnorm.targets.anthropic_messages import AnthropicProfile, profile_of
from convnorm.wire import LIST, fields

ROLES = frozenset({"user", "assistant", "system"})
THINKING = frozenset({"thinking", "redacted_thinking"})
SERVER_CALLS = frozenset({"server_tool_use", "mcp_tool_use"})
CACHED = "cache_control"


@dataclass(slots=True, eq=False)
class Block:
    """One content block, and where it stands."""

    position: int
    index: int
    """Its place in the content; -1 when the content is a string."""
    kind: str
    raw: Mapping[str, Any]
    parent: "Block | None" = None
    """The tool result that holds it."""

    @property
    def where(self) -> str:
        """The path to the block behind its message; a string is its own block."""
        inside = f"[{self.index}]" if self.index >= 0 else ""
        return f"{self.parent.where if self.parent else ''}.content{inside}"

    def at(self, key: str) -> str:
        """The path to a value of the block."""
        return self.where if self.index < 0 else f"{self.where}.{key}"

    @property
    def id(self) -> str | None:
        """The id of a call, or the id that a result answers."""
        return usable(self.raw.get("tool_use_id" if self.is_result else "id"))

    @property
    def is_result(self) -> bool:
        """Whether the block answers a call."""
        return self.kind.endswith("tool_result")

    @property
    def is_server(self) -> bool:
        """Whether the server made the block with a tool of its own."""
        return self.kind in SERVER_CALLS or (self.is_result and self.kind != "tool_result")


@dataclass(slots=True, eq=False)
class Turn:
    """Neighbouring messages of one role, as the server combines them."""

    role: str
    blocks: list[Block] = field(default_factory=list)
    calls: dict[str, Block] = field(default_factory=dict)
    """By id: the client's tool calls."""
    results: list[Block] = field(default_factory=list)
    """The results of client tools."""

    @property
    def only_results(self) -> bool:
        """Whether the turn carries results of client tools and nothing else."""
        return len(self.results) == len(self.blocks) > 0


@dataclass(slots=True, eq=False)
class AnthropicScan(Scan):
    """What one walk over a list of messages found."""

    profile: AnthropicProfile = field(default_factory=AnthropicProfile)
    """What the server takes with the model that the request names."""
    model: str | None = None
    roles: list[str] = field(default_factory=list)
    """The role of every message; empty for one that has none of the API's."""
    turns: list[Turn] = field(default_factory=list)
    system: list[int] = field(default_factory=list)
    """Messages with the role system."""
    no_content: list[tuple[int, str, object]] = field(default_factory=list)
    """Contents and blocks of no usable type: position, path and value."""
    empty: list[int] = field(default_factory=list)
    """Messages whose content is an empty string or list."""
    blocks: list[Block] = field(default_factory=list)
    """All blocks of all messages, and behind each tool result the blocks inside."""
    by_kind: dict[str, list[Block]] = field(default_factory=dict)
    """The blocks of each type, those inside of tool results among them."""
    blank: list[Block] = field(default_factory=list)
    """Texts without a visible character."""
    speaking: set[int] = field(default_factory=set)
    """Messages with a blank text that have another text, too."""
    marked: int = 0
    """The number of `cache_control` markers in messages."""
    server: list[Block] = field(default_factory=list)
    """Calls and results of server tools, in order."""

    def of_kind(self, *kinds: str) -> list[Block]:
        """The blocks of these types."""
        return [block for kind in kinds for block in self.by_kind.get(kind, ())]

    @property
    def last(self) -> Mapping[str, Any] | None:
        """The last message, if an assistant said it."""
        return self.views[-1] if self.roles and self.roles[-1] == "assistant" else None


def read_anthropic(
    elements: Sequence[object], target: Target, context: Context, other: Mapping[str, Any]
) -> AnthropicScan:
    """Scan a list of messages: the blocks by type, and the turns as the server will see them."""
    named = other.get("model")
    model = target.model or (named if isinstance(named, str) and named else None)
    profile = target.anthropic if model == target.model else profile_of(target.provider, model)
    scan = AnthropicScan("messages", target, context, other, profile=profile, model=model)
    open_turn: Turn | None = None
    for at, element in enumerate(elements):
        message = element if type(element) is dict else fields(element)
        scan.views.append(message)
        said = message.get("role") if message is not None else None
        role = said if isinstance(said, str) and said in ROLES else ""
        scan.roles.append(role)
        if message is None:
            scan.no_objects.append(at)
            open_turn = None
            continue
        blocks = _blocks(scan, at, message, role)
        if role == "system":
            scan.system.append(at)
            # A directive, and an entry that the server leaves out, stand between nothing.
            if profile.system_role == "taken" and not is_directive(message):
                open_turn = None
            continue
        if not role:
            scan.odd_roles.append(at)
            open_turn = None
            continue
        if open_turn is None or open_turn.role != role:
            # What nobody understands keeps its neighbours apart: a turn that says nothing.
            if open_turn is None and scan.turns:
                scan.turns.append(Turn(""))
            open_turn = Turn(role)
            scan.turns.append(open_turn)
        _join(open_turn, blocks)
    return scan


def is_directive(message: Mapping[str, Any]) -> bool:
    """Whether a system entry only sets options: no content, and an `output_config`."""
    content = message.get("content")
    empty = content is None or (isinstance(content, LIST) and not content)
    return empty and message.get("output_config") is not None


def _join(turn: Turn, blocks: list[Block]) -> None:
    """Add the blocks of one message to its turn."""
    turn.blocks += blocks
    for block in blocks:
        if block.kind == "tool_use" and (name := block.id) is not None:
            turn.calls.setdefault(name, block)
        elif block.kind == "tool_result":
            turn.results.append(block)


def _blocks(scan: AnthropicScan, at: int, message: Mapping[str, Any], role: str) -> list[Block]:
    """The blocks of one message, sorted into the scan."""
    content = message.get("content")
    if isinstance(content, str):
        if not content:
            scan.empty.append(at)
            return []
        whole = Block(at, -1, "text", {"type": "text", "text": content})
        _sort(scan, whole)
        return [whole]
    if not isinstance(content, LIST):
        if role != "system" or content is not None or not is_directive(message):
            scan.no_content.append((at, ".content", content))
        return []
    if not content:
        scan.empty.append(at)
    found: list[Block] = []
    blank = len(scan.blank)
    for index, element in enumerate(content):
        if (block := _block(scan, at, index, element, None)) is None:
            continue
        found.append(block)
        inner = block.raw.get("content") if block.kind == "tool_result" else None
        if isinstance(inner, LIST):
            for place, part in enumerate(inner):
                _block(scan, at, place, part, block)
    if len(scan.blank) > blank and any(_speaks(block) for block in found):
        scan.speaking.add(at)
    return found


def _block(
    scan: AnthropicScan, at: int, index: int, element: object, parent: Block | None
) -> Block | None:
    """One block, or None for what has no type."""
    raw = element if type(element) is dict else fields(element)
    kind = raw.get("type") if raw is not None else None
    block = Block(at, index, kind if isinstance(kind, str) else "", raw or {}, parent)
    if not block.kind:
        scan.no_content.append((at, block.where, element if raw is None else raw.get("type")))
        return None
    _sort(scan, block)
    return block


def _sort(scan: AnthropicScan, block: Block) -> None:
    """Put a block where the rules look for it."""
    scan.blocks.append(block)
    scan.by_kind.setdefault(block.kind, []).append(block)
    if block.kind == "text":
        text = block.raw.get("text")
        if isinstance(text, str) and (not text or text.isspace()):
            scan.blank.append(block)
    elif block.is_server:
        scan.server.append(block)
    if block.raw.get(CACHED) is not None:
        scan.marked += 1


def _speaks(block: Block) -> bool:
    text = block.raw.get("text") if block.kind == "text" else None
    return isinstance(text, str) and bool(text) and not text.isspace()
