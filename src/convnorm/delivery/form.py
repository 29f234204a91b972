"""The JSON form of a ledger: every item once, in a pool, and references to it."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from convnorm.delivery.exchange import Exchange
from convnorm.delivery.items import plain
from convnorm.errors import LedgerError
from convnorm.wire import LIST

SCHEMA = 1
"""The version of this form; a change that older versions would misread needs the next one."""

EXCHANGES = ("responses", "attempts")


class Pool:
    """Items by reference, each once."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self._places: dict[str, int] = {}

    def refer(self, items: Iterable[object]) -> list[int]:
        """The places of these items in the pool."""
        return [self._place(plain(item, "a ledger")) for item in items]

    def _place(self, item: object) -> int:
        text = json.dumps(item, sort_keys=True)
        if text not in self._places:
            self._places[text] = len(self.items)
            self.items.append(item)
        return self._places[text]


def pooled(ledger: Any) -> dict[str, Any]:
    """The form that `unpooled` reads."""
    pool = Pool()
    form: dict[str, Any] = {"schema": SCHEMA, "pool": pool.items}
    for key in EXCHANGES:
        held: Mapping[str, Exchange] = getattr(ledger, key)
        form[key] = {name: _referring(exchange, pool) for name, exchange in held.items()}
    form["conversations"] = {name: pool.refer(i) for name, i in ledger.conversations.items()}
    names, outputs = list(ledger.outputs), ledger.outputs.values()
    form["outputs"] = dict(zip(names, pool.refer(outputs), strict=True))
    form["items"] = pool.refer(ledger.items)
    rest = {*type(ledger).model_fields} - form.keys()
    for key in sorted(rest):
        value = getattr(ledger, key)
        form[key] = list(value) if isinstance(value, tuple) else value
    return form


def _referring(exchange: Exchange, pool: Pool) -> dict[str, Any]:
    """An exchange with references; what is as usual is left out."""
    usual = type(exchange).model_fields
    said = {key: getattr(exchange, key) for key in usual}
    form = {key: value for key, value in said.items() if value != usual[key].default}
    for key in ("input", "output"):
        if key in form:
            form[key] = pool.refer(form[key])
    if exchange.repeats is not None:
        form["repeats"] = list(exchange.repeats)
    return form


def unpooled(form: Mapping[str, Any]) -> dict[str, Any]:
    """The plain data behind the form; data that was never pooled comes back as it is."""
    schema = form.get("schema")
    if schema is None:
        return dict(form)
    if not isinstance(schema, int) or schema > SCHEMA:
        raise LedgerError(
            f"the ledger has schema {schema!r}, and this version reads up to {SCHEMA}: "
            "it was written by a newer convnorm, which has to read it"
        )
    pool = form.get("pool")
    if not isinstance(pool, LIST):
        raise LedgerError("the ledger has no pool of items: it was cut off or written by hand")
    plain_form = {key: form[key] for key in form if key not in ("schema", "pool")}
    try:
        for key in EXCHANGES:
            plain_form[key] = {
                name: {
                    **exchange,
                    "input": _items(pool, exchange.get("input", ())),
                    "output": _items(pool, exchange.get("output", ())),
                }
                for name, exchange in form.get(key, {}).items()
            }
        plain_form["conversations"] = {
            name: _items(pool, places) for name, places in form.get("conversations", {}).items()
        }
        outputs = form.get("outputs", {})
        plain_form["outputs"] = dict(zip(outputs, _items(pool, outputs.values()), strict=True))
        plain_form["items"] = _items(pool, form.get("items", ()))
    except (AttributeError, IndexError, TypeError, KeyError) as error:
        raise LedgerError(
            f"the ledger cannot be read, a reference leads nowhere: {error}"
        ) from None
    return plain_form


def _items(pool: Any, places: Iterable[int]) -> tuple[Any, ...]:
    return tuple(pool[at if at >= 0 else len(pool)] for at in places)  # none counts from the end
