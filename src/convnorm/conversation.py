"""A conversation with the Responses API, for those who run their tool loop by hand."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

from convnorm.api import normalize_request
from convnorm.context import Context
from convnorm.delivery import Ledger, Link
from convnorm.delivery.items import as_items, open_calls, plain
from convnorm.errors import ConvnormError, LedgerError, NotReadyError, PolicyError
from convnorm.policy import Policy
from convnorm.wire import LIST, fields

SCHEMA = 1
"""The version of the JSON form."""

FINAL = ("response.completed", "response.incomplete", "response.failed")
"""Events of a stream that bring the whole response, for the last time."""

DENIED = {"previous_response_not_found": 400, "conversation_not_found": 404}
UNSURE = 408
"""The status from 400 to 499 that tells nothing of what became of a request."""


class Conversation:
    """What is said, what was sent, and what has still to be sent; it is told of every answer.

    `prepare` gives the next request, `record` takes the response, `failed` the error. What was not
    answered stays and goes with the next request. The whole state is one JSON text, so that an
    approval can be given in another process.
    """

    def __init__(
        self,
        policy: Policy | str = "openai.responses",
        *,
        body: Mapping[str, Any] | None = None,
        ledger: Ledger | None = None,
        link: Link = Link(),  # noqa: B008  # an immutable value
    ) -> None:
        """Begin, or go on behind a link.

        `body` holds the fields of every request: model, tools, instructions, store, ... A response
        that the ledger has not heard of is continued as it is, and nothing is known of what stands
        behind it; of a conversation, `Ledger.observed_conversation` has to tell.
        """
        self.policy = Policy.for_target(policy) if isinstance(policy, str) else policy
        if self.policy.target != "openai.responses":
            raise PolicyError(
                f"a conversation speaks the Responses API, not {self.policy.target}: "
                "elsewhere the whole history is sent, and normalize repairs it"
            )
        self.body = dict(body or {})
        _check_fields(self.body, "is not for every request: leave it out of the body")
        if not isinstance(link, Link):
            raise PolicyError(f"link is a Link(...), not {link!r}: Link('resp_1'), for example")
        self.ledger = ledger or Ledger()
        """What was sent and answered."""
        self.link = link
        """Where the next request goes on; what the server does not have is sent by value."""
        self.waiting: list[Any] = []
        """Items that no answered request had."""
        self._sent: dict[str, Any] | None = None
        self._count = 0

    # ------------------------------------------------------------ the loop

    def prepare(self, new_items: Sequence[Any] | str = (), **changes: Any) -> dict[str, Any]:
        """The next request, with the new items and all that waits to be sent.

        `changes` are fields of this request alone. While a call still waits for its output and
        nothing but outputs is new, there is nothing to send: `NotReadyError` says for which call,
        and what was handed over is kept. After any other error it is not: hand over what mends it.
        """
        _check_fields(changes, "is set by the conversation: leave it out")
        given = as_items(new_items)
        if not isinstance(given, LIST):
            raise LedgerError(f"new items are a list or a text, not a {type(given).__name__}")
        kept = len(self.waiting)
        self.waiting += [plain(item, f"new_items[{at}]") for at, item in enumerate(given)]
        request = {**self.body, **changes, "input": list(self.waiting)}
        if self.ledger.knows(self.link) or not self.ledger.heard_of(self.link):
            request |= {key: held for key, held in self.link._asdict().items() if held is not None}
        else:
            request["input"] = self.history
        live = frozenset(call["call_id"] for call in self.pending)
        last = self._last_request() if Link.of(request) == Link() else None
        ledger = None if self._unseen else self.ledger
        context = Context(ledger=ledger, live_calls=live, last_request=last)
        try:
            sent = normalize_request(request, self.policy, context=context)
        except NotReadyError:
            raise
        except ConvnormError:
            del self.waiting[kept:]
            raise
        self.ledger = self.ledger.attempted(sent)
        self._sent, self._count = sent, len(self.waiting)
        return dict(sent)

    def record(self, answer: object) -> None:
        """Take the response: the SDK's object, its body, an event of its stream, or the stream."""
        body = fields(answer)
        if body is None and isinstance(answer, Iterable) and not isinstance(answer, str | bytes):
            for event in answer:
                self.record(event)
            if self._sent is not None:  # the stream broke off
                self.failed()
            return
        kind = None if body is None else body.get("type")
        if isinstance(kind, str):  # an event; a response has no type
            if kind == "error":
                self.failed(body)
            elif kind in FINAL and body is not None:
                self.record(body.get("response"))
            return
        if self._sent is None:
            raise LedgerError("there is no request that this could answer: call prepare first")
        ledger = self.ledger.accepted(self._sent, answer)
        own = (body or {}).get("id")
        if own not in ledger.responses:  # it is not finished, or it failed
            self.ledger = ledger
            if (body or {}).get("status") == "failed":
                self._sent = None
            return
        held = Link.of(self._sent).conversation
        self.link = Link(conversation=held) if held else Link(own)
        self.ledger = ledger.prune(self.link)
        del self.waiting[: self._count]
        self._sent = None

    def failed(self, error: object = None) -> None:
        """The request got no answer: everything stays, and goes with the next one.

        An error with a status from 400 to 499 says that nothing arrived. Without one, a
        conversation of the server may hold the request or not; then the next request goes by value.
        """
        if self._sent is None:
            return
        status, code = _status(error), _code(error)
        link = Link.of(self._sent)
        if code in DENIED:
            self.ledger = self.ledger.forgotten(link)
        refused = status is not None and 400 <= status < 500 and status != UNSURE  # HTTP
        if refused or link.conversation is None:
            self.ledger = self.ledger.refused(self._sent)
        self._sent = None

    @property
    def _unseen(self) -> bool:
        """Whether the next request continues a response of which only the name is known."""
        named = self.link.previous_response_id
        return named is not None and named not in (*self.ledger.responses, *self.ledger.gone)

    def _last_request(self) -> list[Any] | None:
        """What the last answered request held, if that was everything: it stays as it was sent."""
        last = self.link.previous_response_id
        if last is None or last not in self.ledger.responses:
            return None
        exchange = self.ledger.responses[last]
        linked = exchange.previous_response_id or exchange.conversation
        return None if linked else list(self.ledger.input_of(last))

    # ------------------------------------------------------------ what is known

    @property
    def pending(self) -> list[Mapping[str, Any]]:
        """The calls that still wait for an output: run them, or ask somebody for approval."""
        return open_calls(self.history)

    @property
    def history(self) -> list[Any]:
        """The whole conversation: what was answered, and what waits to be sent."""
        return [*self.ledger.recall(self.link), *self.waiting]

    def to_json(self) -> str:
        """The whole state as text."""
        form = {
            "schema": SCHEMA,
            "policy": self.policy.model_dump(mode="json", exclude_defaults=True),
            "body": self.body,
            "ledger": self.ledger.model_dump(),
            "link": self.link,
            "waiting": self.waiting,
            "sent": self._sent,
            "count": self._count,
        }
        return json.dumps(plain(form, "the conversation"), ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The conversation that `to_json` wrote, in this process or another."""
        try:
            form = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise LedgerError(f"this is no conversation, since it is no JSON: {error}") from None
        if not isinstance(form, dict) or not isinstance(form.get("schema"), int):
            raise LedgerError("this is no conversation: it has no schema version")
        if form["schema"] > SCHEMA:
            raise LedgerError(
                f"the conversation has schema {form['schema']}, and this version reads up to "
                f"{SCHEMA}: it was written by a newer convnorm, which has to read it"
            )
        try:
            found = cls(
                Policy(**form["policy"]),
                body=form["body"],
                ledger=Ledger(**form["ledger"]),
                link=Link(*form["link"]),
            )
            found.waiting = list(form["waiting"])
            found._sent, found._count = form["sent"], int(form["count"])  # our own
        except (KeyError, TypeError, ValueError) as error:
            raise LedgerError(f"the conversation was cut off or written by hand: {error}") from None
        return found


def _check_fields(given: Mapping[str, Any], why: str) -> None:
    for key in ("input", *Link._fields):
        if key in given:
            raise PolicyError(f"{key} {why}")


def _status(error: object) -> int | None:
    """The HTTP status of an SDK's error, or of a body."""
    found = getattr(error, "status_code", None)
    if found is None:
        found = DENIED.get(str(_code(error)))
    return found if isinstance(found, int) else None


def _code(error: object) -> str | None:
    """The code that the API gave in its words."""
    found = getattr(error, "code", None)
    if found is None:
        keys = fields(error) or {}
        found = keys.get("code") or (fields(keys.get("error")) or {}).get("code")
    return found if isinstance(found, str) else None
