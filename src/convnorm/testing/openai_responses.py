"""Valid Responses histories, scene by scene."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from convnorm.testing.draft import ARGUMENTS, SYSTEM, TOOLS, Draft, Element, Pen

KEY = "input"

MEDIA = (
    {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"},
    {"type": "input_file", "file_id": "file-1"},
)
PREFIXES = {
    "message": "msg",
    "reasoning": "rs",
    "function_call": "fc",
    "function_call_output": "fco",
    "custom_tool_call": "ctc",
    "custom_tool_call_output": "ctco",
    "shell_call": "sh",
    "shell_call_output": "sho",
    "apply_patch_call": "apc",
    "apply_patch_call_output": "apco",
}
"""The types sent by value: they may carry their id where the server stores it."""


class Scribe(Pen):
    """A pen that knows whether the server stores what it is sent."""

    def __init__(self, pen: Pen) -> None:
        self.__dict__ = pen.__dict__
        self.store = self.pick((None, True, False, False))
        self.may_have_ids = self.store is not False or self.target.unstored_ids == "keep"
        self.ids = self.may_have_ids and self.chance()
        """Whether this history is sent with its ids."""

    def call_id(self) -> str:
        """An id that no other call of this history has."""
        return f"call_{self.number()}" if self.counters else self.id("call")


def named(pen: Pen, element: Element, *, ids: bool) -> Element:
    """`element` with its own id, or without one."""
    return {**element, "id": pen.id(PREFIXES[element["type"]])} if ids else element


def said(pen: Pen, role: str, text: str) -> Element:
    """A message with a string or with input parts."""
    if pen.chance():
        return {"role": role, "content": text}
    return {"type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


def opening(pen: Scribe) -> list[Element]:
    """Instructions, what is left of a compacted history, or nothing."""
    match pen.below(5):
        case 1 | 2 as role:
            return [said(pen, ("system", "developer")[role - 1], pen.pick(SYSTEM))]
        case 3:
            sealed = f"sealed-{pen.number()}"
            return [{"type": "compaction", "id": pen.id("cmp"), "encrypted_content": sealed}]
    return []


def question(pen: Scribe) -> list[Element]:
    """A user turn: a string, parts, media, or an item as the API lists it."""
    turn = said(pen, "user", pen.user())
    if pen.chance(4):
        content = [{"type": "input_text", "text": pen.user()}, pen.pick(MEDIA)]
        turn = {"type": "message", "role": "user", "content": content}
    if pen.ids and turn.get("type") == "message":
        turn = named(pen, {**turn, "status": "completed"}, ids=True)
    return [turn]


def output_message(pen: Pen, *, ids: bool) -> Element:
    """An assistant message as the API hands it out."""
    part: Element = {"type": "output_text", "text": pen.says(), "annotations": []}
    if pen.chance(5):
        part = {"type": "refusal", "refusal": f"I cannot {pen.number()}"}
    turn: Element = {"type": "message", "role": "assistant", "content": [part]}
    turn["status"] = "completed"
    if pen.chance(4):
        turn["phase"] = "final_answer"
    return named(pen, turn, ids=ids)


def easy_answer(pen: Pen) -> Element:
    """An assistant message as people write it."""
    return {"role": "assistant", "content": pen.says()}


def spoken(pen: Scribe, *, ids: bool) -> Element:
    """An assistant message; without an id, in a shape that this provider takes."""
    if ids or (pen.target.provider != "vllm" and pen.chance()):
        return output_message(pen, ids=ids)
    return easy_answer(pen)


def answer(pen: Scribe) -> list[Element]:
    """An assistant turn without calls."""
    return [spoken(pen, ids=pen.ids and pen.chance())]


def repeats(pen: Scribe) -> list[Element]:
    """The same short turns twice, which are no copies of each other."""
    asked, heard = pen.user(), pen.pick(("ok", "Done."))
    return [
        {"role": role, "content": text}
        for _ in range(2)
        for role, text in (("user", asked), ("assistant", heard))
    ]


def thought(pen: Scribe, *, ids: bool, sealed: bool) -> Element:
    """A reasoning item that the server has, or that carries its own proof."""
    note = {"type": "summary_text", "text": f"thought {pen.number()}"}
    item: Element = {"type": "reasoning", "summary": [note] if pen.chance() else []}
    if pen.target.reasoning_by_value:
        item["content"] = [{"type": "reasoning_text", "text": f"thought {pen.number()}"}]
    elif sealed:
        item["encrypted_content"] = f"sealed-{pen.number()}"
    return named(pen, item, ids=ids)


def reasoned(pen: Scribe) -> list[Element]:
    """Reasoning and, at once, what it produced; ids on both or on neither."""
    ids = pen.may_have_ids and (pen.ids or pen.target.provider == "azure-foundry")
    if not ids and pen.target.provider == "azure-foundry":
        return answer(pen)
    sealed = not ids or pen.store is False or pen.chance()
    produced: list[Element]
    match pen.below(3):
        case 0:
            produced = [spoken(pen, ids=True) if ids else spoken(pen, ids=False)]
        case 1:
            produced = batch(pen, ids=ids)
        case _:
            produced = hosted(pen)
    return [thought(pen, ids=ids, sealed=sealed), *produced]


def pair(pen: Pen, kind: str, call_id: str) -> tuple[Element, Element]:
    """A call of this kind and what answers it."""
    out = pen.output()
    joined = {"call_id": call_id}
    match kind:
        case "custom":
            made: Element = {"name": "write", "input": f"line {pen.number()}"}
            return {"type": "custom_tool_call", **joined, **made}, {
                "type": "custom_tool_call_output",
                **joined,
                "output": out,
            }
        case "shell":
            chunk = {"stdout": out, "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}
            return {"type": "shell_call", **joined, "action": {"commands": ["ls"]}}, {
                "type": "shell_call_output",
                **joined,
                "output": [chunk],
            }
        case "apply_patch":
            operation = {"type": "delete_file", "path": f"{pen.number()}.txt"}
            made = {"status": "completed", "operation": operation}
            given = {"status": "completed", "output": out} if pen.chance() else {"status": "failed"}
            return {"type": "apply_patch_call", **joined, **made}, {
                "type": "apply_patch_call_output",
                **joined,
                **given,
            }
        case "local_shell":
            action = {"type": "exec", "command": ["ls"], "env": {}}
            made = {"id": pen.id("lsh"), "status": "completed", "action": action}
            return {"type": "local_shell_call", **made, **joined}, {
                "type": "local_shell_call_output",
                "id": call_id,
                "output": out,
            }
        case "computer":
            made = {"id": pen.id("cu"), "status": "completed", "pending_safety_checks": []}
            screen = {"type": "computer_screenshot", "image_url": "data:image/png;base64,AAAA"}
            return {"type": "computer_call", **joined, **made, "action": {"type": "screenshot"}}, {
                "type": "computer_call_output",
                **joined,
                "output": screen,
            }
    made = {"name": pen.pick(TOOLS), "arguments": pen.pick(ARGUMENTS)}
    parts = [{"type": "input_text", "text": out}] if out and pen.chance(5) else out
    return {"type": "function_call", **joined, **made}, {
        "type": "function_call_output",
        **joined,
        "output": parts,
    }


KINDS = ("function", "function", "custom", "shell", "apply_patch", "local_shell", "computer")


def batch(pen: Scribe, *, ids: bool, closable: bool = False) -> list[Element]:
    """One to four calls, answered in some order; with text in between, which is legal."""
    size = 1 + pen.below(4) if pen.chance() else 1
    kinds = KINDS[:-1] if closable else KINDS
    pairs = [pair(pen, pen.pick(kinds), pen.call_id()) for _ in range(size)]
    calls = [named(pen, call, ids=ids) if call["type"] in PREFIXES else call for call, _ in pairs]
    outputs = [
        named(pen, output, ids=ids and pen.chance()) if output["type"] in PREFIXES else output
        for _, output in pairs
    ]
    between: list[Element] = []
    if pen.chance(4):
        between = [easy_answer(pen)] if pen.chance() else [said(pen, "user", pen.user())]
    return [*calls, *between, *pen.shuffled(outputs)]


def exchange(pen: Scribe) -> list[Element]:
    """A batch of calls and their outputs."""
    return batch(pen, ids=pen.ids and pen.chance())


def same_call(pen: Scribe) -> list[Element]:
    """The same call twice, with ids of their own and the same output."""
    call, output = pair(pen, "function", "")
    again = [pen.call_id(), pen.call_id()]
    return [{**half, "call_id": call_id} for call_id in again for half in (call, output)]


def hosted(pen: Pen) -> list[Element]:
    """What the server did by itself, in items that need their id."""
    done = {"status": "completed"}
    items: tuple[Element, ...] = (
        {"type": "web_search_call", "id": "ws", "action": {"type": "search", "query": "q"}, **done},
        {"type": "file_search_call", "id": "fs", "queries": ["q"], "results": None, **done},
        {
            "type": "code_interpreter_call",
            "id": "ci",
            "code": "1",
            "container_id": "cntr_1",
            "outputs": None,
            **done,
        },
        {"type": "image_generation_call", "id": "ig", "result": "AAAA", **done},
        {"type": "mcp_list_tools", "id": "mcpl", "server_label": "docs", "tools": []},
        {"type": "mcp_call", "id": "mcp", "server_label": "docs", "name": "f", "arguments": "{}"},
    )
    item = pen.pick(items)
    return [{**item, "id": pen.id(item["id"])}]


def approval(pen: Pen) -> list[Element]:
    """A request of an MCP server, and what the user said to it."""
    asked = pen.id("mcpr")
    return [
        {
            "type": "mcp_approval_request",
            "id": asked,
            "server_label": "docs",
            "name": "f",
            "arguments": "{}",
        },
        {"type": "mcp_approval_response", "approval_request_id": asked, "approve": pen.chance()},
    ]


def tool_search(pen: Scribe) -> list[Element]:
    """A search for tools, by the client or by the server."""
    who: Element = {"execution": "client", "call_id": pen.call_id()}
    if pen.chance():
        who = {"execution": "server", "call_id": None}
    return [
        {"type": "tool_search_call", **who, "arguments": {"query": "q"}},
        {"type": "tool_search_output", **who, "tools": []},
    ]


def program(pen: Scribe) -> list[Element]:
    """A program, a call it owns, and what came out."""
    owner = pen.call_id()
    caller = {"caller": {"type": "program", "caller_id": owner}}
    call, output = pair(pen, "function", pen.call_id())
    return [
        {
            "type": "program",
            "id": pen.id("prog"),
            "call_id": owner,
            "code": "x",
            "fingerprint": "f",
        },
        {**call, **caller},
        {**output, **caller},
        {
            "type": "program_output",
            "id": pen.id("po"),
            "call_id": owner,
            "result": "1",
            "status": "completed",
        },
    ]


def reference(pen: Scribe) -> list[Element]:
    """An item that the server still has, by its id; a plain answer where it stores nothing."""
    if pen.store is False:
        return answer(pen)
    return [{"type": "item_reference", "id": pen.id("msg")}]


SCENES: tuple[Callable[[Scribe], list[Element]], ...] = (
    question,
    answer,
    exchange,
    reasoned,
    repeats,
    exchange,
    reasoned,
    same_call,
    hosted,
    approval,
    tool_search,
    program,
    reference,
)


def written(pen: Pen, *, linked: bool = False) -> Draft:
    """A valid history; a linked one may answer calls that only the server has."""
    scribe = Scribe(pen)
    draft = Draft(KEY, [], {"model": pen.target.model or "gpt-5.1"})
    if scribe.store is not None:
        (draft.facts if scribe.chance(4) else draft.body)["store"] = scribe.store
    profile = pen.target.responses
    linked = linked and profile.keeps_responses
    if linked and scribe.store is not False and scribe.chance(6):
        draft.body["previous_response_id"] = scribe.id("resp")
        draft.elements += [pair(scribe, "function", scribe.call_id())[1]]
    else:
        draft.elements += opening(scribe)
    draft.elements += question(scribe)
    # Some models take no reasoning, and some only that of the newest response.
    scenes = SCENES
    if profile.no_reasoning or profile.one_sealed_response:
        scenes = tuple(scene for scene in SCENES if scene is not reasoned)
    for _ in range(scribe.below(5)):
        draft.elements += scribe.pick(scenes)(scribe)
    if profile.one_sealed_response and scribe.chance():
        draft.elements += reasoned(scribe)
    return draft


def gaps(elements: Sequence[Mapping[str, Any]]) -> list[int]:
    """Where an item can stand without parting reasoning from what it produced."""
    inner = [at for at in range(1, len(elements)) if elements[at - 1].get("type") != "reasoning"]
    return [*inner, len(elements)]


def ends(elements: Sequence[Mapping[str, Any]]) -> list[int]:
    """How much of a history there may have been before, with every screenshot in it."""
    waiting: set[Any] = set()
    complete = set()
    for at, item in enumerate(elements):
        if item.get("type") == "computer_call":
            waiting.add(item["call_id"])
        elif item.get("type") == "computer_call_output":
            waiting.discard(item["call_id"])
        if not waiting:
            complete.add(at + 1)
    return [end for end in gaps(elements)[:-1] if end in complete]


def join(item: Mapping[str, Any]) -> Any:
    """The id that joins a call and its output."""
    return item.get("id" if item.get("type") == "local_shell_call_output" else "call_id")


CLOSABLE = ("function", "custom_tool", "shell", "apply_patch", "local_shell")
"""The calls that a client can answer with a text, by the first part of their type."""
CALLS = {f"{kind}_call": f"{kind}_call_output" for kind in CLOSABLE}


def pairs(elements: Sequence[Mapping[str, Any]]) -> list[tuple[int, int]]:
    """The calls, answered once behind them under an id that no other call has."""
    seen: dict[Any, list[int]] = {}
    for at, item in enumerate(elements):
        kind = item.get("type")
        if kind in CALLS or kind in CALLS.values():
            seen.setdefault(join(item), []).append(at)
    return [
        (ats[0], ats[1])
        for key, ats in seen.items()
        if key
        and len(ats) == 2
        and CALLS.get(elements[ats[0]]["type"]) == elements[ats[1]].get("type")
    ]
