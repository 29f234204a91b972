"""What is done with a request: judged by the rules, answered by the script, remembered.

It knows no socket. It refuses what `judge` refuses and has no rule of its own.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import chain
from threading import Lock
from typing import Any

from convnorm.context import Context
from convnorm.delivery import Exchange, Ledger
from convnorm.errors import ConvnormError, PolicyError
from convnorm.rules import KEYS, judge
from convnorm.targets import find_target
from convnorm.testing.strict_server import chat, messages, refusals, responses
from convnorm.testing.strict_server.answers import Answer
from convnorm.testing.strict_server.pieces import listed, waiting
from convnorm.testing.strict_server.record import Request
from convnorm.testing.strict_server.script import Failure, Reply, Script, answer_of, replies_of
from convnorm.testing.strict_server.shelf import Shelf
from convnorm.testing.strict_server.state import State

CHAT, RESPONSES, MESSAGES = "openai.chat", "openai.responses", "anthropic.messages"
MODELS = {"/chat/completions": CHAT, "/responses": RESPONSES, "/messages": MESSAGES}
"""By path: which API a model answers there."""

BASE = re.compile(
    r"(?P<azure>/openai(?:/deployments/(?P<deployment>[^/]+))?)?(?:/v1)?(?P<rest>/.*)"
)
"""A path: OpenAI's and Anthropic's begin with /v1, Azure's with /openai."""

EXHAUSTED = (
    "the script of this strict server is exhausted: {} of its replies were given, and this "
    "request is in order"
)


class Service:
    """The scripted model and what stands before it."""

    def __init__(
        self,
        script: Script,
        *,
        provider: str | None,
        model: str | None,
        ledger: Ledger,
        tell: Callable[[Request], object],
    ) -> None:
        self.provider, self.model, self.tell = provider, model, tell
        self.state = State(ledger)
        self.shelf = Shelf(self.state)
        self._lock = Lock()
        self._requests: list[Request] = []
        self._given = 0
        self._function: Callable[[Request], Any] | None = None
        self._replies: Iterator[Any] = iter(())
        self.play(script)

    def play(self, script: Script) -> None:
        """Put a script behind the one there is; a function takes its place."""
        with self._lock:
            if callable(script):
                self._function = script
            else:
                self._function = None
                self._replies = chain(self._replies, replies_of(script))

    @property
    def requests(self) -> list[Request]:
        """All requests so far, in the order they came."""
        with self._lock:
            return list(self._requests)

    def remember(self, request: Request) -> str:
        """Record a request that has come; its id goes into the answer."""
        with self._lock:
            self._requests.append(request)
            return self.state.id("req")

    # ------------------------------------------------------------ one request

    def answer(self, request: Request) -> Answer:
        """The answer to a request whose body could be read; it is always remembered."""
        request_id = self.remember(request)
        path = BASE.fullmatch(request.path.partition("?")[0])
        rest = path["rest"].rstrip("/") if path else ""
        request.api = MODELS.get(rest) if request.method == "POST" else None
        try:
            if request.api is not None:
                found = self._model(request, request_id, path)
            elif request.method == "POST" and rest == "/responses/compact":
                found = self._compact(request, request_id, path)
            else:
                found = self.shelf.answer(request, rest)
        except ConvnormError as error:
            body = refusals.error_body(request.api, 400, str(error), request_id=request_id)
            found = Answer(400, body)
        except Exception as error:  # noqa: BLE001  # a script's own error is shown, not raised
            said = f"the strict server failed: {type(error).__name__}: {error}"
            body = refusals.error_body(request.api, 500, said, request_id=request_id)
            found = Answer(500, body, headers=refusals.NO_RETRY)
        named = "request-id" if request.api == MESSAGES else "x-request-id"
        found.headers = {named: request_id, **found.headers}
        cut = found.abort_after is not None and found.events is None
        request.status = None if cut else found.status
        return found

    def _model(self, request: Request, request_id: str, path: Any) -> Answer:
        refusal, provider = self._judged(request, request_id, path)
        if refusal is not None:
            return refusal
        given = self._next(request)
        if given is None:
            said = EXHAUSTED.format(self._given)
            body = refusals.error_body(
                request.api, 500, said, code="script_exhausted", request_id=request_id
            )
            return Answer(500, body, headers=refusals.NO_RETRY)
        if isinstance(given, Failure):
            return _failure(given, request.api, request_id)
        return self._reply(given, request, provider)

    def _judged(self, request: Request, request_id: str, path: Any) -> tuple[Answer | None, str]:
        """What the rules say; and the provider whose rules they are."""
        api, body = request.api or RESPONSES, request.body
        model = next(
            (one for one in (self.model, body.get("model"), path["deployment"]) if _named(one)),
            None,
        )
        provider = self.provider or ("azure" if path["azure"] else None)
        target = find_target(api, provider=provider, model=model)
        # What this server does where the request says nothing: a Responses call is stored.
        store = True if api == RESPONSES and body.get("store") is None else None
        with self.state.lock:
            ledger = self.state.ledger
            history = body.get(KEYS[api])
            if api == RESPONSES:
                history = _items(history)
            request.seen = listed(history)  # at least, should the body contradict itself
            context = Context(store=store).with_body(body)
            held = ledger.holds(context.link)
            request.seen = (*held, *request.seen)
            context = context.model_copy(update={"ledger": ledger})
            found = judge(history, target=target, context=context, fields=body)
        request.violations = tuple(found)
        refusal = refusals.refused(target, found[0], request_id) if found else None
        return refusal, target.provider

    def _next(self, request: Request) -> Reply | Failure | None:
        """The next reply of the script; None when there is none left."""
        if self._function is not None:
            given = self._function(request)  # it may take its time: no lock is held
        else:
            with self._lock:
                given = next(self._replies, None)
                self._given += given is not None
        try:
            return None if given is None else answer_of(given)
        except PolicyError as error:  # the script's fault, not the request's
            raise TypeError(str(error)) from None

    def _reply(self, reply: Reply, request: Request, provider: str) -> Answer:
        body, state = request.body, self.state
        events: list[bytes | float] | None = None
        done: Callable[[], None] | None = None
        streamed = body.get("stream") is True
        with state.lock:  # the ids of one answer follow each other
            if request.api == CHAT:
                whole = chat.completion(reply, body, provider, state)
                events = chat.chunks(whole, reply, body) if streamed else None
            elif request.api == MESSAGES:
                whole = messages.message(reply, body, state)
                events = messages.events(whole, reply) if streamed else None
            else:
                output = responses.output_items(reply, body, state)
                whole = responses.response(output, body, request.seen, state)
                exchange = _exchange(body, output, stored=state.stores)
                state.issue(whole["id"], exchange)
                done = partial(state.keep, whole["id"], exchange, whole)
                events = responses.events(whole, reply) if streamed else None
        request.answer = whole["id"]
        return Answer(
            200,
            whole,
            events=events,
            delay=0 if streamed else waiting(reply),
            abort_after=reply.abort_after,
            done=done,
        )

    def _compact(self, request: Request, request_id: str, path: Any) -> Answer:
        """All that the model would see, as one item; the input is judged like any other."""
        refusal, _ = self._judged(request, request_id, path)
        if refusal is not None:
            return refusal
        with self.state.lock:
            whole = responses.compacted(request.body, request.seen, self.state)
            # The item is issued, so that it is known when it comes back, and nothing is stored.
            self.state.issue(whole["id"], Exchange(output=tuple(whole["output"])))
        request.answer = whole["id"]
        return Answer(200, whole)


def _exchange(body: Mapping[str, Any], output: list[dict[str, Any]], *, stored: bool) -> Exchange:
    said = Context().with_body(body)
    return Exchange(
        input=listed(_items(body.get("input"))),
        output=tuple(output),
        previous_response_id=said.previous_response_id,
        conversation=said.conversation,
        stored=stored and said.store is not False,
    )


def _items(given: Any) -> Any:
    """The input as items: a text is what the user says, and no input is an empty one."""
    if isinstance(given, str):
        return [{"role": "user", "content": given}] if given else []
    return [] if given is None else given


def _named(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


def _failure(failure: Failure, api: str | None, request_id: str) -> Answer:
    body = failure.body
    if body is None:
        said = failure.message or f"a scripted failure with status {failure.status}"
        body = refusals.error_body(
            api, failure.status, said, code=failure.code, request_id=request_id
        )
    return Answer(failure.status, body, headers=failure.headers, delay=failure.delay)
