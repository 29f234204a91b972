"""Whether a history has all that was sent before: else it is another conversation's.

Conversations can begin alike and go on alike, and nobody gives them a name but their sessions,
whose ids are chosen by users. So nothing is sent again that is not told here, too.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from convnorm import envelope

Told = tuple[str, ...]


def has_all_of(elements: Sequence[Any], sent: Sequence[Any]) -> bool:
    """Whether everything that was sent stands in these elements, and what was said in its order."""
    told = [fact for element in elements for fact in _told(element)]
    others = {fact for fact in told if fact[0] != "said"}
    said = (fact for fact in told if fact[0] == "said")
    quotations = _quotations(told)
    for element in sent:
        for fact in _told(element):
            match fact:
                case ("said", _, text) if text in quotations:
                    known = True
                case ("said", *_):
                    known = fact in said  # goes on behind it
                case ("result", call_id, text) if envelope.is_close(text, call_id):
                    known = True
                case _:
                    known = fact in others
            if not known:
                return False
    return True


def is_invented(element: Mapping[str, Any]) -> bool:
    """Whether somebody made it up: a result of nothing, or a quotation in place of one."""
    for fact in _told(element):
        match fact:
            case ("result", call_id, text) if envelope.is_close(text, call_id):
                return True
            case ("said", _, text) if envelope.is_quote(text) or envelope.quoted_call(text):
                return True
    return False


def _quotations(told: Sequence[Told]) -> set[str]:
    """How the results that are told here are quoted, each alone or behind its call."""
    calls = {fact[1]: fact for fact in told if fact[0] == "call"}
    found: set[str] = set()
    for fact in told:
        if fact[0] == "result" and fact[1] in calls:
            _, call_id, name, arguments = calls[fact[1]]
            found.add(envelope.quote(fact[2], call_id=call_id, name=name))
            found.add(envelope.quote_call(arguments, fact[2], call_id=call_id, name=name))
    return found


def _told(element: Mapping[str, Any]) -> Iterator[Told]:
    """What an element tells."""
    match element:
        case {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments}:
            yield "call", call_id, name, arguments
        case {"type": "function_call_output", "call_id": call_id, "output": output}:
            yield "result", call_id, str(output)
        case {"type": "reasoning"}:
            yield "thought", str(element.get("encrypted_content") or element.get("id"))
        case {"role": "tool", "tool_call_id": call_id, "content": output}:
            yield "result", call_id, str(output)
        case {"role": role}:
            content = element.get("content")
            for part in [{"text": content}] if isinstance(content, str) else content or ():
                yield "said", role, str(part.get("text") or part)
            for call in element.get("tool_calls") or ():
                yield "call", call["id"], call["function"]["name"], call["function"]["arguments"]
        case _:
            yield "other", str(element)
