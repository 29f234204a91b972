"""The pass `fit_media`."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal

from convnorm import envelope
from convnorm.dialects.dialect import Call
from convnorm.edits import Drop, Edit, Insert, Loss, Mend, Replace
from convnorm.facts import Fact
from convnorm.ir import History, Item, Media, Text, ToolCall, ToolResult, Turn
from convnorm.options import Options
from convnorm.targets import Fault
from convnorm.wire import LIST, media_kind

Kind = Literal["image", "audio", "file"]
ELSEWHERE = (Fault.IMAGE_ELSEWHERE, Fault.MEDIA_ELSEWHERE, Fault.MEDIA_LISTED)
CALLED = {"image": "an image", "audio": "a sound", "file": "a file"}


class FitMedia(Options):
    """Call content parts what the target calls them, and put media where the model sees them.

    ## Why
    Parts have other names in every API, and images may only stand in messages of the user: "Invalid
    'messages[2]'. Image URLs are only allowed for messages with role 'user', but this message with
    role 'tool' contains an image URL.", "Invalid value: 'input_text'. Supported values are:
    'output_text' and 'refusal'."

    ## Example
    ```json
    {"messages": [
      {"role": "assistant", "content": null, "tool_calls": [
        {"id": "call_9", "type": "function",
         "function": {"name": "browse", "arguments": "{}"}}]},
      {"role": "tool", "tool_call_id": "call_9", "content": [
        {"type": "text", "text": "loaded"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]}]}
    ```
    becomes
    ```json
    {"messages": [
      {"role": "assistant", "content": null, "tool_calls": [
        {"id": "call_9", "type": "function",
         "function": {"name": "browse", "arguments": "{}"}}]},
      {"role": "tool", "tool_call_id": "call_9", "content": [
        {"type": "text", "text": "loaded"}]},
      {"role": "user", "content": [
        {"type": "text", "text":
         "[convnorm:media browse call_9] A tool returned this, not the user. [/convnorm]"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]}]}
    ```

    ## Safety
    No medium is lost: what may not stand in a tool's result moves to a message of the user behind
    the whole block of results, and what may not stand in a message of the assistant or of the
    system to one directly behind it, in their order, each under a marked note that says where it
    came from. The texts stay. Where sources dispute whether a server takes them, media stay where
    they are. A part of another API gets the name it has here; one that this API has nothing for
    becomes a text part that holds it as JSON.

    With the option `modalities`, what the model cannot take is replaced by a marked note, and the
    loss is named.
    """

    name: Literal["fit_media"] = "fit_media"
    modalities: tuple[Kind, ...] | None = None
    """What the model takes beside text, for example `["image"]`; nothing set, everything stays."""

    @property
    def wakes_on(self) -> frozenset[Fact]:
        """Every medium is looked at only if there is something that the model does not take."""
        return frozenset({Fact.PARTS} if self.modalities is None else {Fact.PARTS, Fact.MEDIA})

    def __call__(self, history: History, call: Call) -> Iterator[Edit]:
        """Ask for the edits this history needs."""
        yield from _Fit(self, history, call).edits()


class _Fit:
    """One run: the media that move, and the messages that take them up."""

    def __init__(self, options: FitMedia, history: History, call: Call) -> None:
        self.options, self.turns = options, history.turns
        self.target, self.rules = call.target, call.target.rules
        self.names: dict[str | None, str | None] = {}
        """By id: the name of the newest call that has it."""
        self.behind: dict[int, tuple[str, list[Item]]] = {}
        """By turn: what a new message of the user behind it holds, and the rule that wants it."""

    def edits(self) -> Iterator[Edit]:
        for at, turn in enumerate(self.turns):
            self.names |= {
                item.call_id: item.name for item in turn.items if isinstance(item, ToolCall)
            }
            if turn.mended:
                continue  # another pass writes it anew: the next round sees what became of it
            rule = None
            for flaw in turn.flaws:
                if flaw.fault not in self.rules:
                    continue
                if flaw.fault in ELSEWHERE:
                    rule = self.rules[flaw.fault]
                elif flaw.fault is Fault.PART_NAME:
                    yield Mend(at, flaw, rule=self.rules[flaw.fault], why=flaw.why)
            if rule is not None or self.options.modalities is not None:
                yield from self._sort(at, turn, rule)
        for at, (rule, items) in self.behind.items():
            new = Turn("user", tuple(items), at=self.turns[at].at, source=self.turns[at].source)
            yield Insert(at, new, rule=rule, why="media that came from elsewhere")

    def _sort(self, at: int, turn: Turn, rule: str | None) -> Iterator[Edit]:
        """Leave out what the model does not take; move what the `rule` forbids here."""
        moved: list[tuple[int, Media]] = []
        for place, item in enumerate(turn.items):
            match item:
                case Media(slot="content") if self._is_unwanted(item.kind):
                    yield self._left_out(at, place, Text(_note(item.kind)), item.kind)
                case Media(slot="content") if rule is not None:
                    moved.append((place, item))
                case ToolResult(output=list() | tuple()):
                    yield from self._sort_output(at, place, item, rule)
        if not moved or rule is None:
            return
        why = f"{CALLED[moved[0][1].kind]} may not stand in a message of role {turn.role!r}"
        says_more = any(
            item.slot == "content" and not isinstance(item, Media) for item in turn.items
        )
        alone = not says_more and not _calls(turn)
        for number, (place, _) in enumerate(moved):
            if alone and number == 0:
                note = Text(envelope.media_behind())
                yield Replace(at, note, place, rule=rule, why=why)
            else:
                yield Drop(at, place, rule=rule, why=why)
        self._take_up(at, envelope.media_of_role(turn.role), [item for _, item in moved], rule)

    def _sort_output(
        self, at: int, place: int, result: ToolResult, rule: str | None
    ) -> Iterator[Edit]:
        assert isinstance(result.output, LIST)
        kept: list[object] = []
        moved: list[Media] = []
        lost = None
        for part in result.output:
            kind = media_kind(part)
            if kind is not None and self._is_unwanted(kind):
                kept.append(_note(kind))
                lost = kind
            elif kind is not None and rule is not None:
                moved.append(Media(kind, part))
            else:
                kept.append(part)
        if lost is not None:
            yield self._left_out(at, place, replace(result, output=kept), lost)
        elif moved and rule is not None:
            why = f"{CALLED[moved[0].kind]} may not stand in a tool's result"
            new = replace(result, output=kept or envelope.media_behind())
            yield Replace(at, new, place, rule=rule, why=why)
        if moved and rule is not None:
            label = envelope.media_of_result(result.call_id, self.names.get(result.call_id))
            self._take_up(at, label, moved, rule)

    def _is_unwanted(self, kind: str) -> bool:
        return self.options.modalities is not None and kind not in self.options.modalities

    def _left_out(self, at: int, place: int, new: Item, kind: str) -> Replace:
        why = f"the model does not take {CALLED[kind]}"
        return Replace(at, new, place, rule=self.rules[Fault.PART_NAME], why=why, loss=Loss.MEDIA)

    def _take_up(self, at: int, label: str, media: list[Media], rule: str) -> None:
        """Put media behind the turn, or where nothing may come between behind its block."""
        if self.target.adjacent_results and (
            _calls(self.turns[at]) or self.turns[at].role == "tool"
        ):
            while at + 1 < len(self.turns) and self.turns[at + 1].role == "tool":
                at += 1
        _, items = self.behind.setdefault(at, (rule, []))
        items += [Text(label), *media]


def _note(kind: str) -> str:
    return envelope.media_left_out(CALLED[kind])


def _calls(turn: Turn) -> bool:
    return any(isinstance(item, ToolCall) and item.answered_by for item in turn.items)
