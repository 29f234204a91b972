"""What goes wrong with Responses histories, one small function each."""

from collections.abc import Iterable

from convnorm.testing.draft import ARGUMENTS, CUT, ODD_NAMES, TOOLS, Draft, Element, Pen
from convnorm.testing.faults import Mutator, place, repeat, replays, sources, vendor_keys
from convnorm.testing.openai_responses import (
    CALLS,
    KINDS,
    PREFIXES,
    easy_answer,
    gaps,
    hosted,
    named,
    output_message,
    pair,
    pairs,
    said,
)

CLOSABLE = KINDS[:-1]
"""A computer call is answered by a screenshot, which nobody can make up."""
OTHER_TYPE = {
    "function_call_output": "custom_tool_call_output",
    "custom_tool_call_output": "function_call_output",
}


def question(pen: Pen) -> list[Element]:
    """A user turn without an id."""
    return [said(pen, "user", pen.user())]


def minted(pen: Pen) -> list[Element]:
    """An exchange under ids that nobody mints twice."""
    return [*pair(pen, pen.pick(CLOSABLE), pen.id("call"))]


def answered(pen: Pen, draft: Draft) -> tuple[int, int]:
    """Where a call and its output stand; a new pair at the end if there is none."""
    if not pairs(draft.elements):
        draft.elements += minted(pen)
    return pen.pick(pairs(draft.elements)[::-1])


def missing_result(pen: Pen, draft: Draft) -> None:
    """The output of a call never came."""
    del draft.elements[answered(pen, draft)[1]]


def missing_results(pen: Pen, draft: Draft) -> None:
    """No output of a batch ever came, and the history ends there."""
    draft.elements += [minted(pen)[0] for _ in range(1 + pen.below(3))]


def pending_result(pen: Pen, draft: Draft) -> None:
    """The last call still waits for an approval while the user already goes on."""
    call = minted(pen)[0]
    draft.elements += [call, *question(pen)]
    draft.facts["live_calls"] = frozenset({call["call_id"]})


def _by_value(draft: Draft) -> None:
    """Take out what stands for an item that only the server has: it could be a call."""
    draft.elements = [item for item in draft.elements if item.get("type") != "item_reference"]


def orphan_result(pen: Pen, draft: Draft) -> None:
    """An output whose call was never in the history."""
    _by_value(draft)
    place(pen, draft, minted(pen)[1:], gaps)


def headless_result(pen: Pen, draft: Draft) -> None:
    """A call was cut off together with the reasoning that led it, its output was not."""
    _by_value(draft)
    at, _ = answered(pen, draft)
    start = at - 1 if draft.elements[at - 1].get("type") == "reasoning" else at
    end = at + 1
    while end < len(draft.elements) and draft.elements[end].get("type") in CALLS:
        end += 1
    rest = draft.elements[at + 1 : end]
    if start < at:  # what the reasoning led must not name itself any more
        rest = [_nameless(call) if call["type"] in PREFIXES else call for call in rest]
    draft.elements[start:end] = rest


def _nameless(item: Element) -> Element:
    return {key: value for key, value in item.items() if key != "id"}


def second_result_equal(pen: Pen, draft: Draft) -> None:
    """An output came twice, at once or later."""
    _, at = answered(pen, draft)
    again = dict(draft.elements[at])
    behind = [gap for gap in gaps(draft.elements) if gap > at]
    draft.elements.insert(pen.pick(behind), again)


def second_result_different(pen: Pen, draft: Draft) -> None:
    """A call was answered twice, and not in the same way."""
    call, output = pair(pen, pen.pick(("function", "custom")), pen.id("call"))
    other = {**output, "output": f"second result {pen.number()}"}
    draft.elements += [call, output, *(question(pen) if pen.chance() else []), other]


def early_result(pen: Pen, draft: Draft) -> None:
    """An output stands before its call."""
    at, behind = answered(pen, draft)
    early = draft.elements.pop(behind)
    before = [gap for gap in gaps(draft.elements) if gap <= at]
    draft.elements.insert(pen.pick(before[::-1] or [0]), early)


def wrong_output_type(pen: Pen, draft: Draft) -> None:
    """A function's output was sent as a custom tool's, or the other way round."""
    call, output = pair(pen, pen.pick(("function", "custom")), pen.id("call"))
    output["type"] = OTHER_TYPE[output["type"]]
    place(pen, draft, [call, output], gaps)


def _call(pen: Pen, call_id: str) -> Element:
    made = {"name": pen.pick(TOOLS), "arguments": pen.pick(ARGUMENTS)}
    return {"type": "function_call", "call_id": call_id, **made}


def _output(pen: Pen, call_id: str) -> Element:
    return {"type": "function_call_output", "call_id": call_id, "output": pen.output()}


def reused_id_in_batch(pen: Pen, draft: Draft) -> None:
    """Two calls of one batch have the same id: other calls, or twice the same."""
    name = pen.pick(("call_0", "undefined", pen.id("call")))
    first = _call(pen, name)
    second = first if pen.chance(3) else _call(pen, name)
    answers = [_output(pen, name) for _ in range(1 + pen.below(2))]
    draft.elements += [first, second, *answers]


def reused_id_later(pen: Pen, draft: Draft) -> None:
    """A client that counts started again at zero."""
    minted_once = pen.id("call")
    name = pen.pick(("call_0", "c1", minted_once))
    for _ in range(2 + pen.below(2)):
        answer = _output(pen, name)
        if name == minted_once:  # an equal exchange would be a copy
            answer["output"] = f"result {pen.number()}"
        draft.elements += [_call(pen, name), answer, *question(pen)]


def _lose_call_id(pen: Pen, draft: Draft, empty: Element, lost: tuple[str, ...]) -> None:
    name = pen.id("call")
    both = [_call(pen, name), _output(pen, name)]
    for item in both:
        if item["type"] in lost:
            del item["call_id"]
            item.update(empty)
    place(pen, draft, both, gaps)


def call_id_missing(pen: Pen, draft: Draft) -> None:
    """A call came without its id, its output too or not."""
    lost = ("function_call", "function_call_output")[: 2 - pen.below(2)]
    _lose_call_id(pen, draft, pen.pick(({"call_id": None}, {})), lost)


def call_id_empty(pen: Pen, draft: Draft) -> None:
    """A call came with an empty id, its output too or not."""
    lost = ("function_call", "function_call_output")[: 2 - pen.below(2)]
    _lose_call_id(pen, draft, {"call_id": ""}, lost)


def result_id_missing(pen: Pen, draft: Draft) -> None:
    """An output does not say which call it answers."""
    _lose_call_id(pen, draft, pen.pick(({"call_id": None}, {})), ("function_call_output",))


def result_id_empty(pen: Pen, draft: Draft) -> None:
    """An output names an empty call."""
    _lose_call_id(pen, draft, {"call_id": ""}, ("function_call_output",))


def result_null(pen: Pen, draft: Draft) -> None:
    """An output has nothing in it: null, or not even that."""
    call, output = pair(pen, pen.pick(("function", "custom")), pen.id("call"))
    del output["output"]
    output |= pen.pick(({"output": None}, {}))
    place(pen, draft, [call, output], gaps)


def content_null(pen: Pen, draft: Draft) -> None:
    """A message says nothing: null, or not even that."""
    turn: Element = {"role": pen.pick(("assistant", "user", "system", "developer"))}
    place(pen, draft, [{**turn, **pen.pick(({"content": None}, {}))}], gaps)


def repeated_item(pen: Pen, draft: Draft) -> None:
    """An item with its id came twice."""
    fresh = pen.pick((output_message(pen, ids=True), *hosted(pen)))
    place(pen, draft, [fresh], gaps)
    at = draft.elements.index(fresh)
    behind = pen.pick([gap for gap in gaps(draft.elements) if gap > at])
    draft.elements.insert(behind, dict(fresh))


def same_id_different_item(pen: Pen, draft: Draft) -> None:
    """Two items have one id: two messages, or a server's item before and after it was done."""
    if pen.chance(3):
        done = {
            "type": "web_search_call",
            "id": pen.id("ws"),
            "action": {"type": "search", "query": "q"},
            "status": "completed",
        }
        draft.elements += [{**done, "status": "in_progress"}, done]
    else:
        first, second = output_message(pen, ids=True), output_message(pen, ids=True)
        draft.elements += [first, *question(pen), {**second, "id": first["id"]}]
    if pen.chance():
        draft.elements += question(pen)


def output_named_like_call(pen: Pen, draft: Draft) -> None:
    """An output carries the item id of its call."""
    call, output = pair(pen, pen.pick(("function", "custom")), pen.id("call"))
    name = {"id": pen.id(PREFIXES[call["type"]])}
    place(pen, draft, [{**call, **name}, {**output, **name}], gaps)


def replayed_unanswered(pen: Pen, draft: Draft) -> None:
    """A block was sent twice, and one copy lacks its output; ids that are counted too."""
    name = "call_0" if pen.chance(3) else pen.id("call")
    asked, call, output = question(pen), _call(pen, name), _output(pen, name)
    first, second = [*asked, call], [*asked, call, output]
    if pen.chance(3):
        first, second = second, first
    draft.elements += first
    repeat(pen, draft, second)


def _unstore(pen: Pen, draft: Draft) -> None:
    """Say that the server stores nothing, not even what is only referred to."""
    _by_value(draft)
    draft.body.pop("store", None)
    draft.facts.pop("store", None)
    (draft.facts if pen.chance(3) else draft.body)["store"] = False


def _led_message(pen: Pen, thought: Element, *, ids: bool) -> list[Element]:
    return [{"type": "reasoning", "summary": [], **thought}, output_message(pen, ids=ids)]


def _led_call(pen: Pen, thought: Element, *, ids: bool) -> list[Element]:
    call, output = pair(pen, "function", pen.id("call"))
    return [{"type": "reasoning", "summary": [], **thought}, named(pen, call, ids=ids), output]


def _group(pen: Pen, thought: Element, *, ids: bool) -> list[Element]:
    """Reasoning and what it produced: a message, or a call with its output."""
    return pen.pick((_led_call, _led_message))(pen, thought, ids=ids)


def half_stripped_reasoning(pen: Pen, draft: Draft) -> None:
    """The reasoning lost its id, what it led kept its own."""
    _unstore(pen, draft)
    proof = {"encrypted_content": f"sealed-{pen.number()}"}
    place(pen, draft, _group(pen, proof, ids=True), gaps)


def half_stripped_call(pen: Pen, draft: Draft) -> None:
    """The reasoning kept its id, what it led lost its own."""
    _unstore(pen, draft)
    proof = {"encrypted_content": f"sealed-{pen.number()}", "id": pen.id("rs")}
    place(pen, draft, _group(pen, proof, ids=False), gaps)


def unstored_ids(pen: Pen, draft: Draft) -> None:
    """Ids of a server that never stored them, on some or on all items."""
    _unstore(pen, draft)
    every = pen.chance()
    draft.elements = [
        named(pen, item, ids=True)
        if item.get("type") in PREFIXES and "id" not in item and (every or pen.chance())
        else item
        for item in draft.elements
    ]
    draft.elements += [output_message(pen, ids=True)]


def bare_reasoning_before_call(pen: Pen, draft: Draft) -> None:
    """Reasoning by an id that the server never stored, and the call it led."""
    _unstore(pen, draft)
    place(pen, draft, _led_call(pen, {"id": pen.id("rs")}, ids=pen.chance()), gaps)


def bare_reasoning_before_message(pen: Pen, draft: Draft) -> None:
    """Reasoning by an id that the server never stored, and the message it led."""
    _unstore(pen, draft)
    place(pen, draft, _led_message(pen, {"id": pen.id("rs")}, ids=pen.chance()), gaps)


STRIPPING = ("half_stripped_reasoning", "half_stripped_call", "unstored_ids")
"""Faults only where unstored ids are taken out; elsewhere ids are right, or not ours to make."""


def _odd_call(pen: Pen, draft: Draft, values: Element) -> None:
    """A call of a function that is not as it should be, and its output."""
    call, output = pair(pen, "function", pen.id("call"))
    made = {key: value for key, value in (call | values).items() if value != "left out"}
    place(pen, draft, [made, output], gaps)


def arguments_raw(pen: Pen, draft: Draft) -> None:
    """The arguments of a call are data."""
    _odd_call(pen, draft, {"arguments": pen.pick(({"q": "oslo"}, [], 1))})


def arguments_missing(pen: Pen, draft: Draft) -> None:
    """The arguments of a call are not there."""
    _odd_call(pen, draft, {"arguments": pen.pick((None, "left out"))})


def arguments_cut(pen: Pen, draft: Draft) -> None:
    """The arguments of a call were cut off."""
    _odd_call(pen, draft, {"arguments": CUT})


def arguments_unparsed(pen: Pen, draft: Draft) -> None:
    """The arguments of a call are a text, and no JSON object."""
    _odd_call(pen, draft, {"arguments": pen.pick(("", "oslo", "[1]", "{]}"))})


def name_odd(pen: Pen, draft: Draft) -> None:
    """The name of a function has other letters, or too many."""
    _odd_call(pen, draft, {"name": pen.pick(ODD_NAMES)})


def name_missing(pen: Pen, draft: Draft) -> None:
    """A call names no function."""
    _odd_call(pen, draft, {"name": pen.pick((None, "left out"))})


def name_empty(pen: Pen, draft: Draft) -> None:
    """The name of a function is blank."""
    _odd_call(pen, draft, {"name": pen.pick(("", "  "))})


def call_id_long(pen: Pen, draft: Draft) -> None:
    """A call and its output have an id that is too long."""
    name = f"{pen.id('call')}{'0' * 60}"
    call, output = pair(pen, pen.pick(CLOSABLE), name)
    place(pen, draft, [call, output], gaps)


def call_id_number(pen: Pen, draft: Draft) -> None:
    """The ids of calls and their outputs are numbers."""
    made = [
        _numbered(pair(pen, pen.pick(("function", "custom")), ""), pen.number()) for _ in range(2)
    ]
    outputs = [output for _, output in made]
    calls = [call for call, _ in made]
    place(pen, draft, [*calls, *(outputs if pen.chance() else outputs[::-1])], gaps)


def _numbered(items: Iterable[Element], number: int) -> list[Element]:
    return [{**item, "call_id": number} for item in items]


def item_id_odd(pen: Pen, draft: Draft) -> None:
    """An item has an id that its server did not make."""
    _odd_id(pen, draft, f"chatcmpl-{pen.number()}")


def item_id_letters(pen: Pen, draft: Draft) -> None:
    """An item has an id that no server would make."""
    _odd_id(pen, draft, pen.pick((f"msg:{pen.number()}", "")))


def item_id_long(pen: Pen, draft: Draft) -> None:
    """An item has an id that is too long."""
    _odd_id(pen, draft, f"msg_{pen.number()}{'0' * 64}")


def _odd_id(pen: Pen, draft: Draft, odd: str) -> None:
    place(pen, draft, [{**output_message(pen, ids=False), "id": odd}], gaps)


def hosted_id_missing(pen: Pen, draft: Draft) -> None:
    """What the server did by itself came without its id."""
    place(pen, draft, [_nameless(item) for item in hosted(pen)], gaps)


def _odd_thought(pen: Pen, draft: Draft, values: Element, behind: list[Element]) -> None:
    """Reasoning that is not as it should be, and what stands behind it."""
    thought = {"type": "reasoning", "summary": [], **values}
    place(pen, draft, [thought, *behind], gaps)


def thought_unfollowed(pen: Pen, draft: Draft) -> None:
    """What reasoning led to is gone."""
    behind = question(pen) if pen.chance() else []
    values = {"id": pen.id("rs"), "encrypted_content": f"sealed-{pen.number()}"}
    if behind:
        _odd_thought(pen, draft, values, behind)
    else:
        draft.elements.append({"type": "reasoning", "summary": [], **values})


def thought_without_summary(pen: Pen, draft: Draft) -> None:
    """Reasoning came without its summary."""
    sealed = {"id": pen.id("rs"), "encrypted_content": f"sealed-{pen.number()}"}
    reply = output_message(pen, ids=True)
    thought = {"type": "reasoning", **sealed, **pen.pick(({}, {"summary": None}))}
    place(pen, draft, [thought, reply], gaps)


def thought_in_plain_text(pen: Pen, draft: Draft) -> None:
    """Reasoning came with its words, as open models give them."""
    words = [{"type": "reasoning_text", "text": f"thought {pen.number()}"}]
    sealed = {"id": pen.id("rs"), "encrypted_content": f"sealed-{pen.number()}"}
    _odd_thought(pen, draft, {**sealed, "content": words}, [output_message(pen, ids=True)])


def thought_empty(pen: Pen, draft: Draft) -> None:
    """Reasoning has nothing left in it."""
    _odd_thought(pen, draft, {}, [easy_answer(pen)])


def thought_unsealed(pen: Pen, draft: Draft) -> None:
    """Plain text is sent as if it were sealed."""
    values = {"id": pen.id("rs"), "encrypted_content": f"work it out {pen.number()}"}
    _odd_thought(pen, draft, values, [output_message(pen, ids=True)])


def thought_id_lost(pen: Pen, draft: Draft) -> None:
    """Sealed reasoning came without its id."""
    sealed = {"encrypted_content": f"sealed-{pen.number()}"}
    _odd_thought(pen, draft, sealed, [easy_answer(pen)])


def thought_of_another_response(pen: Pen, draft: Draft) -> None:
    """Two responses have their sealed reasoning in one request."""
    for _ in range(2):
        sealed = {"id": pen.id("rs"), "encrypted_content": f"sealed-{pen.number()}"}
        _odd_thought(pen, draft, sealed, [easy_answer(pen), *question(pen)])


def key_not_taken(pen: Pen, draft: Draft) -> None:
    """Items and parts have keys that only the server's answers, or other servers, have."""
    call, output = pair(pen, "function", pen.id("call"))
    sealed = {"type": "reasoning", "summary": [], "encrypted_content": f"sealed-{pen.number()}"}
    status = pen.pick((None, "completed"))
    part = {"type": "input_text", "text": pen.user(), "x_trace": pen.number()}
    new: tuple[list[Element], ...] = (
        [{**call, "parsed_arguments": None}, output],
        [{**call, "type": "function_call", "created_by": "model"}, output],
        [{**sealed, "status": status}, easy_answer(pen)],
        [{"role": "user", "content": [part]}],
        [{**easy_answer(pen), "reasoning_content": "hm", "parsed": None}],
        [{**item, "x_trace": 1} for item in hosted(pen)],
    )
    place(pen, draft, pen.pick(new), gaps)


def value_odd(pen: Pen, draft: Draft) -> None:
    """A value has not its type."""
    call, output = pair(pen, "function", pen.id("call"))
    shell, printed = pair(pen, "shell", pen.id("call"))
    text = {"type": "input_text", "text": pen.pick((None, 5))}
    said: list[Element] = [{"type": "output_text", "text": pen.says()}]
    spoken = {"type": "message", "role": "assistant", "content": said, "status": "completed"}
    cited = {"type": "url_citation", "url": "https://example.org"}
    new: tuple[list[Element], ...] = (
        [{**call, "status": 5, "caller": "me"}, output],
        [{"role": "user", "content": [text, {"type": "input_text", "text": "hello"}]}],
        [{**spoken, "id": pen.id("msg"), "status": True}],
        [{**spoken, "id": pen.id("msg"), "content": [{**said[0], "annotations": [cited]}]}],
        [{**shell, "action": {"commands": "ls"}}, printed],
        [shell, {**printed, "output": [{"stdout": pen.output()}]}],
    )
    place(pen, draft, pen.pick(new), gaps)


def item_type_odd(pen: Pen, draft: Draft) -> None:
    """An item has a type that is none: it says something, is a message, or says nothing."""
    known = pen.target.responses.strict
    kind = pen.pick(("context_compaction", "ghost")) if known else 5
    new: tuple[Element, ...] = (
        {"type": kind, "summary": f"so far {pen.number()}"},
        {"type": kind, "role": pen.pick(("user", "assistant")), "content": pen.says()},
        {"type": kind, "id": pen.id("x")},
    )
    place(pen, draft, [pen.pick(new)], gaps)


def phase_odd(pen: Pen, draft: Draft) -> None:
    """A message has a phase that is none."""
    turn = {**easy_answer(pen), "phase": pen.pick(("thinking", 1))}
    place(pen, draft, [turn], gaps)


def output_odd(pen: Pen, draft: Draft) -> None:
    """An output is data, or made of another API's parts."""
    kind = pen.pick(("function", "custom", "local_shell", "apply_patch", "shell"))
    call, output = pair(pen, kind, pen.id("call"))
    given: list[object] = [{"EUR": pen.number()}, pen.number(), True]
    if kind in ("function", "custom"):
        said = pen.output()
        given += [[{"type": "text", "text": said}], [said, 5], {"type": "text", "text": said}]
    place(pen, draft, [call, {**output, "output": pen.pick(given)}], gaps)


def field_missing(pen: Pen, draft: Draft) -> None:
    """An item lacks what it must have."""
    kind = pen.pick(("shell", "local_shell", "apply_patch"))
    call, output = pair(pen, kind, pen.id("call"))
    if kind != "apply_patch" and pen.chance():
        output = {key: value for key, value in output.items() if key != "output"}
    else:
        call = {key: value for key, value in call.items() if key not in ("action", "operation")}
    place(pen, draft, [call, output], gaps)


def caller_unknown(pen: Pen, draft: Draft) -> None:
    """The program that made a call is gone."""
    _by_value(draft)
    caller = {"caller": {"type": "program", "caller_id": pen.id("call")}}
    call, output = pair(pen, "function", pen.id("call"))
    place(pen, draft, [{**call, **caller}, {**output, **caller}], gaps)


def trigger_early(pen: Pen, draft: Draft) -> None:
    """Somebody spoke after the request to compact; or it was made twice."""
    if pen.chance(3):
        draft.elements.append({"type": "compaction_trigger"})
    draft.elements += [{"type": "compaction_trigger"}, *question(pen)]


def half_message(pen: Pen, draft: Draft) -> None:
    """An assistant message came without what its server added to it."""
    part: Element = {"type": "output_text", "text": pen.says()}
    turn: Element = {"role": "assistant", "content": [part] * (1 + pen.below(2))}
    if pen.chance():
        turn |= {"type": "message", "id": pen.id("msg"), "status": "completed"}
    place(pen, draft, [turn], gaps)


def role_foreign(pen: Pen, draft: Draft) -> None:
    """Somebody speaks under the name that another library gives him."""
    role = pen.pick(("human", "ai", "model", "bot", "User", "CHATBOT"))
    place(pen, draft, [{"role": role, "content": pen.says()}], gaps)


def tool_message(pen: Pen, draft: Draft) -> None:
    """The output of a call is a message of Chat Completions."""
    call, output = pair(pen, "function", pen.id("call"))
    told = output["output"]
    said = told if isinstance(told, str) else [{"type": "text", "text": told[0]["text"]}]
    answer = {"role": "tool", "tool_call_id": output["call_id"], "content": said}
    place(pen, draft, [call, answer], gaps)


def parts_of_others(pen: Pen, draft: Draft) -> None:
    """Parts have the names of another API, or of another role."""
    number = pen.number()
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,A{number}"}}
    role = pen.pick(("user", "assistant", "system"))
    kinds = ("text", "input_text" if role == "assistant" else "output_text")
    parts: list[Element] = [{"type": pen.pick(kinds), "text": f"line {number}"}]
    if role == "user" and pen.chance():
        parts.append(image)
    if pen.target.responses.assistant_input == "accepted":
        parts[0]["type"] = "text"
    place(pen, draft, [{"role": role, "content": parts}], gaps)


def media_elsewhere(pen: Pen, draft: Draft) -> None:
    """The assistant's message holds an image."""
    image = {"type": "input_image", "image_url": f"data:image/png;base64,A{pen.number()}"}
    said = {"type": "output_text", "text": pen.says(), "annotations": []}
    content = [image, said] if pen.chance() else [image]
    place(pen, draft, [{"role": "assistant", "content": content}], gaps)


def half_character(pen: Pen, draft: Draft) -> None:
    """A text was cut inside a character."""
    half = f"cut {pen.number()} \ud83d"
    call, output = pair(pen, pen.pick(("function", "custom", "shell")), pen.id("call"))
    asked, answered = pair(pen, "function", pen.id("call"))
    chunk = {"stdout": half, "stderr": "", "outcome": {"type": "timeout"}}
    told: object = [chunk] if call["type"] == "shell_call" else half
    new: tuple[list[Element], ...] = (
        [said(pen, pen.pick(("user", "system")), half)],
        [call, {**output, "output": told}],
        [{**asked, "arguments": f'{{"q": "{half}"}}'}, answered],
        [{"role": "assistant", "content": half}],
    )
    place(pen, draft, pen.pick(new), gaps)


_ALL: tuple[Mutator, ...] = (
    missing_result,
    missing_results,
    pending_result,
    orphan_result,
    headless_result,
    second_result_equal,
    second_result_different,
    early_result,
    wrong_output_type,
    reused_id_in_batch,
    reused_id_later,
    call_id_missing,
    call_id_empty,
    result_id_missing,
    result_id_empty,
    result_null,
    content_null,
    repeated_item,
    same_id_different_item,
    output_named_like_call,
    arguments_raw,
    arguments_missing,
    arguments_cut,
    arguments_unparsed,
    name_odd,
    name_missing,
    name_empty,
    call_id_long,
    call_id_number,
    item_id_odd,
    item_id_letters,
    item_id_long,
    hosted_id_missing,
    thought_unfollowed,
    thought_without_summary,
    thought_in_plain_text,
    thought_empty,
    thought_unsealed,
    thought_id_lost,
    thought_of_another_response,
    key_not_taken,
    value_odd,
    item_type_odd,
    phase_odd,
    output_odd,
    field_missing,
    caller_unknown,
    trigger_early,
    half_message,
    role_foreign,
    tool_message,
    parts_of_others,
    media_elsewhere,
    half_character,
    vendor_keys,
    half_stripped_reasoning,
    half_stripped_call,
    unstored_ids,
    bare_reasoning_before_call,
    bare_reasoning_before_message,
    replayed_unanswered,
    *replays(question, minted, gaps),
    *sources(question, minted, gaps),
)
MUTATORS = {mutate.__name__: mutate for mutate in _ALL}
"""By name, in the order they apply: single faults, what is stored, replays, labels last."""
