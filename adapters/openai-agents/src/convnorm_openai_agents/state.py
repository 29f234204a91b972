"""What a paused run knows of the server, in this process or another."""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from agents import RunState

from convnorm.delivery import Ledger
from convnorm.delivery.items import ANSWERS, answered_id


def ledger_from_state(
    state: RunState[Any],
    *,
    previous_response_id: str | None = None,
    conversation: str | None = None,
) -> Ledger:
    """What a paused run knows of the server, also in another process than the one that paused it.

    A link is asked for only where the run was started behind one that its state does not name: a
    conversation is there, the response that the first answer continued is not. An output counts as
    sent only if a later response continues that of its call; the last ones count as made.
    """
    form = state.to_json()
    made = _outputs(form)
    place = conversation or form.get("conversation_id")
    linked = place or form.get("previous_response_id") or form.get("auto_previous_response_id")
    ledger, sent = Ledger(), list[Any]()
    # What stood before the first response of the state is not in it, and must not count as nothing.
    before = previous_response_id or "before the run"
    for response in form.get("model_responses") or ():
        own, output = response.get("response_id"), response.get("output") or []
        if not isinstance(own, str):
            continue  # a model without stored responses
        link = {"conversation": place} if place else {"previous_response_id": before}
        ledger = ledger.accepted({"input": sent, **link}, {"id": own, "output": output})
        sent = list(_answers(output, made))
        if linked:
            before = own
    for item in (*sent, *(item for items in made.values() for item in items)):
        ledger = ledger.observed_output(item)
    return ledger


def _outputs(form: Mapping[str, Any]) -> dict[str, deque[Any]]:
    """The outputs of a state by call id, in their order; two calls may share an id."""
    found: dict[str, list[Any]] = {}
    for name in ("generated_items", "session_items"):  # after a handoff one may have more
        here: dict[str, list[Any]] = defaultdict(list)
        for item in form.get(name) or ():
            raw = item.get("raw_item") if isinstance(item, Mapping) else None
            if isinstance(raw, Mapping) and (call_id := answered_id(raw)) is not None:
                here[call_id].append(raw)
        for call_id, items in here.items():
            found[call_id] = max(found.get(call_id, []), items, key=len)
    return {call_id: deque(items) for call_id, items in found.items()}


def _answers(output: Iterable[Any], made: Mapping[str, deque[Any]]) -> Iterator[Any]:
    """The outputs of a response's calls: each is taken once."""
    for item in output:
        if item.get("type") in ANSWERS and made.get(item.get("call_id")):
            yield made[item["call_id"]].popleft()
