"""What goes wrong with Chat histories, one small function each."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from convnorm.testing.draft import (
    ARGUMENTS,
    CUT,
    NO_NAMES,
    ODD_NAMES,
    SYSTEM,
    TOOLS,
    Draft,
    Element,
    Pen,
)
from convnorm.testing.faults import Mutator, place, repeat, replays, sources, vendor_keys
from convnorm.testing.openai_chat import (
    MEDIA,
    call,
    calling,
    details,
    exchange,
    exchanges,
    gaps,
    instructing,
    message,
    question,
    result,
)


def minted(pen: Pen) -> list[Element]:
    """An exchange under ids that nobody mints twice."""
    return exchange(pen, counters=False)


def whole(pen: Pen, draft: Draft) -> range:
    """An exchange that is still whole; a new one at the end if there is none."""
    if not exchanges(draft.elements):
        draft.elements += exchange(pen)
    return pen.pick(exchanges(draft.elements)[::-1])


def a_result(pen: Pen, draft: Draft) -> int:
    """Where a result stands that answers its call."""
    return pen.pick(whole(pen, draft)[1:])


def missing_result(pen: Pen, draft: Draft) -> None:
    """One result of a batch never came."""
    del draft.elements[a_result(pen, draft)]


def missing_results(pen: Pen, draft: Draft) -> None:
    """No result of a batch ever came, and the history may end there."""
    at = whole(pen, draft)
    del draft.elements[at[1] : at[-1] + 1]


def pending_result(pen: Pen, draft: Draft) -> None:
    """The last call still waits for an approval while the user already goes on."""
    turn = minted(pen)[0]
    draft.elements += [turn, *question(pen)]
    draft.facts["live_calls"] = frozenset(each["id"] for each in turn["tool_calls"])


def orphan_result(pen: Pen, draft: Draft) -> None:
    """A result whose call was never in the history."""
    place(pen, draft, [result(pen, pen.call_id())], gaps)


def headless_results(pen: Pen, draft: Draft) -> None:
    """The turn with the calls was cut off, its results were not."""
    at = whole(pen, draft)
    del draft.elements[at[0]]


def second_result_equal(pen: Pen, draft: Draft) -> None:
    """A result came twice, at once or later."""
    at = a_result(pen, draft)
    again = dict(draft.elements[at])
    if pen.chance():
        place(pen, draft, [again], gaps)
    else:
        draft.elements.insert(at + 1, again)


def second_result_different(pen: Pen, draft: Draft) -> None:
    """A call was answered twice, and not in the same way."""
    at = a_result(pen, draft)
    other = {**draft.elements[at], "content": f"second result {pen.number()}"}
    draft.elements.insert(at + 1, other)


def late_result(pen: Pen, draft: Draft) -> None:
    """A result came after the next turns."""
    at = a_result(pen, draft)
    late = draft.elements[at]
    rest = [*draft.elements[at + 1 :], *question(pen)]
    behind = pen.pick([gap for gap in gaps(rest) if rest[gap - 1]["role"] != "tool"])
    draft.elements[at:] = [*rest[:behind], late, *rest[behind:]]


def early_result(pen: Pen, draft: Draft) -> None:
    """A result stands before its call."""
    at = whole(pen, draft)
    early = draft.elements.pop(pen.pick(at[1:]))
    before = [gap for gap in gaps(draft.elements) if gap <= at[0]]
    draft.elements.insert(pen.pick(before[::-1] or [0]), early)


def interleaved(pen: Pen, draft: Draft) -> None:
    """Somebody spoke between a call and its results."""
    at = whole(pen, draft)
    role = pen.pick(("user", "system", "assistant"))
    draft.elements.insert(pen.pick(at[1:]), message(pen, role, f"meanwhile {pen.number()}"))


def interleaved_exchange(pen: Pen, draft: Draft) -> None:
    """Another exchange happened between a call and its results."""
    at = whole(pen, draft)
    draft.elements[at[1] : at[1]] = minted(pen)


def _batch_under_one_id(pen: Pen, draft: Draft, *, equal: bool) -> None:
    name = pen.pick((pen.count(0), "undefined", pen.call_id()))
    first = call(pen, name)
    second = dict(first) if equal else {**call(pen, name), "x_index": 1}
    answers = [result(pen, name) for _ in range(1 + pen.below(2))]
    place(pen, draft, [calling(pen, [first, second]), *answers], gaps)


def reused_id_in_batch(pen: Pen, draft: Draft) -> None:
    """Two calls of one turn have the same id."""
    _batch_under_one_id(pen, draft, equal=False)


def same_call_in_batch(pen: Pen, draft: Draft) -> None:
    """A turn makes the same call twice under the same id."""
    _batch_under_one_id(pen, draft, equal=True)


def _lose_call_id(pen: Pen, draft: Draft, empty: Element) -> None:
    turn, *answers = exchange(pen)
    at = pen.below(len(turn["tool_calls"]))
    tool_call = dict(turn["tool_calls"][at])
    lost = tool_call.pop("id")
    turn["tool_calls"][at] = {**tool_call, **empty}
    for answer in answers:
        if answer["tool_call_id"] == lost and not pen.chance(3):
            del answer["tool_call_id"]
            if "id" in empty:
                answer["tool_call_id"] = empty["id"]
    place(pen, draft, [turn, *answers], gaps)


def call_id_missing(pen: Pen, draft: Draft) -> None:
    """A call came without its id, its result too or not."""
    _lose_call_id(pen, draft, pen.pick(({}, {"id": None})))


def call_id_empty(pen: Pen, draft: Draft) -> None:
    """A call came with an empty id, its result too or not."""
    _lose_call_id(pen, draft, {"id": ""})


def result_id_missing(pen: Pen, draft: Draft) -> None:
    """A result does not say which call it answers."""
    at = a_result(pen, draft)
    answer = {key: value for key, value in draft.elements[at].items() if key != "tool_call_id"}
    draft.elements[at] = answer | pen.pick(({}, {"tool_call_id": None}, {"tool_call_id": ""}))


def result_null(pen: Pen, draft: Draft) -> None:
    """A result has nothing in it."""
    at = a_result(pen, draft)
    draft.elements[at] = {**draft.elements[at], "content": pen.pick((None, []))}


def _said_nothing(pen: Pen, draft: Draft, content: Element) -> None:
    turn: Element = {"role": pen.pick(("assistant", "user", "system", "developer")), **content}
    if turn["role"] == "assistant" and pen.chance():
        turn |= pen.pick(({"x_trace": 1}, {"reasoning_content": "hm"}, {"refusal": None}))
    place(pen, draft, [turn], gaps)


def content_null(pen: Pen, draft: Draft) -> None:
    """A turn says nothing: null, or not even that."""
    _said_nothing(pen, draft, pen.pick(({"content": None}, {})))


def content_empty(pen: Pen, draft: Draft) -> None:
    """A turn has an empty list of parts."""
    if pen.chance(3):
        at = whole(pen, draft)[0]
        draft.elements[at] = {**draft.elements[at], "content": []}
    else:
        _said_nothing(pen, draft, {"content": []})


def calls_empty(pen: Pen, draft: Draft) -> None:
    """An assistant turn says something, and has an empty list of calls."""
    turn = message(pen, "assistant", pen.says())
    place(pen, draft, [{**turn, "tool_calls": []}], gaps)


def calls_and_content_empty(pen: Pen, draft: Draft) -> None:
    """An assistant turn says nothing, and has an empty list of calls."""
    content: Any = pen.pick((None, "", []))
    place(pen, draft, [{"role": "assistant", "content": content, "tool_calls": []}], gaps)


def replayed_unanswered(pen: Pen, draft: Draft) -> None:
    """A block was sent twice, and one copy lacks its results; ids that are counted too."""
    asked, (turn, *answers) = question(pen), exchange(pen)
    again = {**turn, "content": "another way to say it"} if pen.chance(4) else dict(turn)
    first, second = [*asked, again], [*asked, turn, *answers]
    if pen.chance(3):
        first, second = second, first
    draft.elements += first
    repeat(pen, draft, second)


def _odd_call(pen: Pen, draft: Draft, values: Element) -> None:
    """An exchange in which one call of a function is not as it should be."""
    name = pen.call_id()
    made: Element = {"name": pen.pick(TOOLS), "arguments": pen.pick(ARGUMENTS)}
    body = {key: value for key, value in (made | values).items() if value != "left out"}
    turn = calling(pen, [{"id": name, "type": "function", "function": body}])
    place(pen, draft, [turn, result(pen, name)], gaps)


def arguments_raw(pen: Pen, draft: Draft) -> None:
    """The arguments of a call are data."""
    _odd_call(pen, draft, {"arguments": pen.pick(({"q": "oslo"}, [], 1))})


def arguments_missing(pen: Pen, draft: Draft) -> None:
    """The arguments of a call are not there."""
    _odd_call(pen, draft, {"arguments": pen.pick((None, "left out"))})


def arguments_cut(pen: Pen, draft: Draft) -> None:
    """The arguments of a call were cut off."""
    _odd_call(pen, draft, {"arguments": CUT})


def name_odd(pen: Pen, draft: Draft) -> None:
    """The name of a function has other letters, or too many."""
    _odd_call(pen, draft, {"name": pen.pick(ODD_NAMES)})


def name_missing(pen: Pen, draft: Draft) -> None:
    """A call names no function."""
    _odd_call(pen, draft, {"name": pen.pick(NO_NAMES)})


def call_of_others(pen: Pen, draft: Draft) -> None:
    """A call is written as another library has it, or does not say what it is."""
    name, tool, asked = pen.call_id(), pen.pick(TOOLS), pen.pick(ARGUMENTS)
    body = {"name": tool, "arguments": asked}
    odd: tuple[Element, ...] = (
        {"id": name, "function": body},
        {"id": name, "type": pen.pick((None, "", "tool_call", 5)), "function": body},
        {"id": name, "type": "tool_call", "name": tool, "args": {"q": "oslo"}},
        {"id": name, "type": "tool_use", "name": tool, "input": {"q": "oslo"}},
        {"id": name, **body},
        {"id": name, "type": "custom", "function": body},
    )
    place(pen, draft, [calling(pen, [pen.pick(odd)]), result(pen, name)], gaps)


def calls_unlisted(pen: Pen, draft: Draft) -> None:
    """The one call of a turn is in no list, written as JSON, or beside a null."""
    turn, answer, *_ = minted(pen)
    made = call(pen, answer["tool_call_id"])
    odd = pen.pick((made, json.dumps(made), json.dumps([made]), [json.dumps(made)], [None, made]))
    place(pen, draft, [{**turn, "tool_calls": odd}, answer], gaps)


def content_odd(pen: Pen, draft: Draft) -> None:
    """What is said, or returned, is neither a text nor a list."""
    said = f"line {pen.number()}"
    odd = pen.pick(({"type": "text", "text": said}, {"text": said}, {"said": said}, pen.number()))
    turn, answer, *_ = minted(pen)
    turn = {**turn, "tool_calls": [call(pen, answer["tool_call_id"])]}
    spoken = {"role": pen.pick(("user", "assistant")), "content": odd}
    place(pen, draft, pen.pick(([spoken], [turn, {**answer, "content": odd}])), gaps)


def call_id_long(pen: Pen, draft: Draft) -> None:
    """The ids of an exchange are those of another API."""
    _rename(draft, whole(pen, draft), lambda: f"{pen.id('fc')}{'0' * 20}")


def call_id_number(pen: Pen, draft: Draft) -> None:
    """The ids of an exchange are numbers."""
    _rename(draft, whole(pen, draft), pen.number)


def _rename(draft: Draft, at: range, new_id: Callable[[], object]) -> None:
    """Give the calls of an exchange new ids, and their results."""
    calls = draft.elements[at[0]]["tool_calls"]
    names = {tool_call["id"]: new_id() for tool_call in calls}
    turn = draft.elements[at[0]]
    renamed = [{**each, "id": names[each["id"]]} for each in turn["tool_calls"]]
    draft.elements[at[0]] = {**turn, "tool_calls": renamed}
    for answer in at[1:]:
        old = draft.elements[answer]
        draft.elements[answer] = {**old, "tool_call_id": names[old["tool_call_id"]]}


SPEAKERS = ("Ann Lee", "Ann\tLee", "Ann_Lee", "小 明", "a/b")
"""Names of people, not all of which a message can have; and two that must not become one."""


def speaker_odd(pen: Pen, draft: Draft) -> None:
    """People speak under their own names."""
    for _ in range(1 + pen.below(2)):
        turn = message(pen, pen.pick(("user", "assistant")), pen.user())
        place(pen, draft, [{**turn, "name": pen.pick(SPEAKERS)}], gaps)
    place(pen, draft, [{"role": "user", "name": SPEAKERS[0], "content": pen.user()}], gaps)


def value_odd(pen: Pen, draft: Draft) -> None:
    """A value has not its type."""
    text = {"type": "text", "text": pen.pick((None, 5, {"a": 1}))}
    image = {"type": "image_url", "image_url": "https://example.org/a.png"}
    turns: tuple[Element, ...] = (
        {"role": "user", "content": [text, {"type": "text", "text": "hello"}]},
        {"role": "user", "content": [image]},
        {"role": "assistant", "content": "hello", "refusal": 5},
        {"role": "assistant", "content": "hello", "function_call": "search"},
        {"role": "assistant", "content": "hello", "audio": {"id": None}},
    )
    place(pen, draft, [pen.pick(turns)], gaps)


def key_not_taken(pen: Pen, draft: Draft) -> None:
    """A message has keys that other servers know."""
    turn: Element = {"role": "assistant", "content": pen.pick((None, "", pen.says()))}
    keys: tuple[Element, ...] = (
        {"content": "yes", "reasoning_content": f"thought {pen.number()}"},
        {"content": "yes", "reasoning_content": None, "audio": None, "annotations": []},
        {"refusal": f"I cannot {pen.number()}"},
        {"audio": {"id": pen.id("audio"), "transcript": f"said {pen.number()}"}},
        {"audio": {"id": pen.id("audio")}},
        {"content": "yes", "id": pen.id("msg"), "x_trace": 1},
    )
    place(pen, draft, [turn | pen.pick(keys)], gaps)


def content_listed(pen: Pen, draft: Draft) -> None:
    """A reply is a list of texts, and of other things."""
    parts = [{"type": "text", "text": pen.says()} for _ in range(1 + pen.below(2))]
    parts += pen.pick(([], [_image(pen)], [{"type": "thinking", "thinking": pen.says()}]))
    place(pen, draft, [{"role": "assistant", "content": parts}], gaps)


def content_of_calls_null(pen: Pen, draft: Draft) -> None:
    """A message that calls tools says null beside them."""
    name = pen.id("call")
    turn = {"role": "assistant", "content": None, "tool_calls": [call(pen, name)]}
    place(pen, draft, [turn, result(pen, name)], gaps)


def call_id_odd(pen: Pen, draft: Draft) -> None:
    """The ids of an exchange are of another form."""
    place(pen, draft, [calling(pen, [call(pen, "call_1")]), result(pen, "call_1")], gaps)


def role_foreign(pen: Pen, draft: Draft) -> None:
    """Somebody speaks under the name that another library gives him."""
    role = pen.pick(("human", "ai", "model", "bot", "User", "CHATBOT"))
    turn = message(pen, role, pen.says())
    if role == "ai" and pen.chance():
        asked, *answers = minted(pen)
        place(pen, draft, [{**asked, "role": role}, *answers], gaps)
    else:
        place(pen, draft, [turn], gaps)


def system_refused(pen: Pen, draft: Draft) -> None:
    """The model is given a system message."""
    place(pen, draft, [message(pen, "system", pen.pick(SYSTEM))], gaps)


def developer_refused(pen: Pen, draft: Draft) -> None:
    """The model is given a developer message."""
    turn = message(pen, "developer", pen.pick(SYSTEM))
    if pen.chance():
        draft.elements.insert(0, turn)
    else:
        place(pen, draft, [turn], gaps)


def calls_misplaced(pen: Pen, draft: Draft) -> None:
    """A message of somebody else makes the assistant's calls."""
    asked, *answers = minted(pen)
    role = pen.pick(("user", "user", "system", "ai"))
    place(pen, draft, [{**asked, "role": role}, *answers], gaps)


def _twice(pen: Pen, role: str) -> list[Element]:
    """Two or three messages of one role, with names and keys of their own."""
    turns = [message(pen, role, f"line {pen.number()}") for _ in range(2 + pen.below(2))]
    match pen.below(4):
        case 1:
            turns = [{**turn, "name": pen.pick(("ann", "bob"))} for turn in turns]
        case 2:
            turns[-1] |= {"x_trace": pen.number(), "id": pen.id("m")}
        case 3:
            turns[-1]["content"] = [{"type": "text", "text": "see"}, pen.pick(MEDIA)]
    return turns


def spoken_twice(pen: Pen, draft: Draft) -> None:
    """Somebody speaks twice in a row."""
    place(pen, draft, _twice(pen, pen.pick(("user", "assistant"))), gaps)


def instructed_late(pen: Pen, draft: Draft) -> None:
    """Instructions stand behind the head, or are several."""
    role = pen.pick(("system", "developer"))
    if pen.chance():
        draft.elements[:0] = _twice(pen, role)
    else:
        place(pen, draft, [message(pen, role, pen.pick(SYSTEM))], gaps)


def instructed_behind_reply(pen: Pen, draft: Draft) -> None:
    """Instructions stand behind a reply, or behind results."""
    said = pen.pick(([message(pen, "assistant", f"answer {pen.number()}")], minted(pen)))
    draft.elements += [*said, message(pen, "system", pen.pick(SYSTEM)), *question(pen)]


def spoken_first(pen: Pen, draft: Draft) -> None:
    """The assistant speaks before any user."""
    draft.elements[:0] = [message(pen, "assistant", f"hello {pen.number()}")]


def spoken_behind_result(pen: Pen, draft: Draft) -> None:
    """The user speaks while a result waits for its reply."""
    place(pen, draft, [*minted(pen), *question(pen)], gaps)


def spoken_last(pen: Pen, draft: Draft) -> None:
    """A reply is last."""
    draft.elements.append(message(pen, "assistant", f"answer {pen.number()}"))


def _image(pen: Pen) -> Element:
    return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,A{pen.number()}"}}


def parts_of_others(pen: Pen, draft: Draft) -> None:
    """Parts have the names of another API."""
    number = pen.number()
    source = {"type": "base64", "media_type": "image/png", "data": f"A{number}"}
    said: Element = {"type": pen.pick(("input_text", "output_text")), "text": f"line {number}"}
    media: tuple[Element, ...] = (
        {"type": "input_image", "image_url": f"data:image/png;base64,A{number}", "detail": "low"},
        {"type": "image", "source": source},
        {"type": "input_file", "file_id": f"file-{number}"},
    )
    match pen.below(3):
        case 0:
            turn: Element = {"role": "user", "content": [said, pen.pick(media)]}
        case 1:
            turn = {"role": pen.pick(("assistant", "user")), "content": [said]}
        case _:
            at = a_result(pen, draft)
            draft.elements[at] = {**draft.elements[at], "content": [said]}
            return
    place(pen, draft, [turn], gaps)


def _elsewhere(pen: Pen, draft: Draft, media: Sequence[Element]) -> None:
    """Media in a result, in a reply, beside calls or among instructions."""
    parts = [*media, {"type": "text", "text": f"seen {pen.number()}"}]
    parts = parts if pen.chance() else [*media]
    match pen.below(4):
        case 0 | 1:
            at = a_result(pen, draft)
        case 2:
            at = whole(pen, draft)[0]
        case _:
            role = pen.pick(("assistant", *instructing(pen)))
            place(pen, draft, [{"role": role, "content": parts}], gaps)
            return
    draft.elements[at] = {**draft.elements[at], "content": parts}


def image_elsewhere(pen: Pen, draft: Draft) -> None:
    """Images stand outside the messages of the user."""
    _elsewhere(pen, draft, [_image(pen) for _ in range(1 + pen.below(2))])


def media_elsewhere(pen: Pen, draft: Draft) -> None:
    """Sounds or files stand outside the messages of the user."""
    sound = {"type": "input_audio", "input_audio": {"data": f"A{pen.number()}", "format": "wav"}}
    file = {"type": "file", "file": {"file_id": f"file-{pen.number()}"}}
    _elsewhere(pen, draft, pen.pick(([sound], [file], [file, _image(pen)])))


def part_unknown(pen: Pen, draft: Draft) -> None:
    """A part is one that this API has nothing for."""
    odd: tuple[Any, ...] = (
        {"type": "video_url", "video_url": {"url": f"https://example.org/{pen.number()}"}},
        {"type": "input_image", "file_id": f"file-{pen.number()}"},
        {"kind": "note", "words": f"line {pen.number()}"},
        f"line {pen.number()}",
    )
    role = pen.pick(("user", "assistant"))
    place(pen, draft, [{"role": role, "content": [pen.pick(odd)]}], gaps)


def half_character(pen: Pen, draft: Draft) -> None:
    """A text was cut inside a character."""
    name, half = pen.id("call"), f"cut {pen.number()} \ud83d"
    asked = {"name": pen.pick(TOOLS), "arguments": f'{{"q": "{half}"}}'}
    made = calling(pen, [{"id": name, "type": "function", "function": asked}])
    said = [{"role": pen.pick(("user", "assistant")), "content": half}]
    parts = [{"role": "user", "content": [{"type": "text", "text": half}]}]
    exchanged = [[made, result(pen, name)], [calling(pen, [call(pen, name)]), result(pen, name)]]
    exchanged[1][1]["content"] = half
    place(pen, draft, pen.pick((said, parts, *exchanged)), gaps)


def _unthinking(turn: Element) -> Element:
    """The message without what was thought before it."""
    lost = ("reasoning_content", "reasoning_details")
    return {key: value for key, value in turn.items() if key not in lost}


def reasoning_lost(pen: Pen, draft: Draft) -> None:
    """The model thinks, and its calls came back without what it thought."""
    turn, *answers = minted(pen)
    draft.elements += [_unthinking(turn), *answers]
    draft.body["thinking"] = {"type": "enabled"}


def call_unsigned(pen: Pen, draft: Draft) -> None:
    """Calls came back without their signature."""
    turn, *answers = minted(pen)
    place(pen, draft, [_unthinking(turn), *answers], gaps)


def reasoning_twice(pen: Pen, draft: Draft) -> None:
    """Two replies carry the same reasoning."""
    thought = details(pen)
    for _ in range(2):
        said = message(pen, "assistant", f"answer {pen.number()}")
        draft.elements += [*question(pen), {**said, "reasoning_details": list(thought)}]


_ALL: tuple[Mutator, ...] = (
    missing_result,
    missing_results,
    pending_result,
    orphan_result,
    headless_results,
    second_result_equal,
    second_result_different,
    late_result,
    early_result,
    interleaved,
    interleaved_exchange,
    reused_id_in_batch,
    same_call_in_batch,
    call_id_missing,
    call_id_empty,
    result_id_missing,
    result_null,
    content_null,
    content_empty,
    calls_empty,
    calls_and_content_empty,
    arguments_raw,
    arguments_missing,
    arguments_cut,
    name_odd,
    name_missing,
    call_of_others,
    calls_unlisted,
    content_odd,
    call_id_long,
    call_id_number,
    speaker_odd,
    value_odd,
    key_not_taken,
    content_listed,
    content_of_calls_null,
    call_id_odd,
    role_foreign,
    calls_misplaced,
    system_refused,
    developer_refused,
    spoken_twice,
    instructed_late,
    instructed_behind_reply,
    spoken_first,
    spoken_behind_result,
    spoken_last,
    parts_of_others,
    image_elsewhere,
    media_elsewhere,
    part_unknown,
    reasoning_lost,
    call_unsigned,
    reasoning_twice,
    half_character,
    vendor_keys,
    replayed_unanswered,
    *replays(question, minted, gaps),
    *sources(question, minted, gaps),
)
MUTATORS = {mutate.__name__: mutate for mutate in _ALL}
"""By name, in the order they apply: single faults, then replays, labels last."""
