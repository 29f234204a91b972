"""The strict server: start, stop, and what can be read of it."""

import socket
from collections.abc import Callable
from threading import Event, Lock
from types import TracebackType
from typing import Self

import anyio
import anyio.to_thread

from convnorm.delivery import Ledger
from convnorm.testing.strict_server.http import Handler
from convnorm.testing.strict_server.listener import Listener
from convnorm.testing.strict_server.record import Request
from convnorm.testing.strict_server.script import Script
from convnorm.testing.strict_server.service import Service


class StrictServer:
    """An HTTP server on loopback that refuses what the provider would refuse.

    A scripted model answers everything else. Use it as a context manager, or `start` and `stop` it.
    """

    def __init__(
        self,
        script: Script = (),
        *,
        provider: str | None = None,
        model: str | None = None,
        ledger: Ledger | None = None,
        port: int = 0,
        on_answer: Callable[[Request], object] | None = None,
    ) -> None:
        """`provider` and `model` say whose rules apply; without them, the path and the body do.

        `ledger` is what the server holds from the start; `on_answer` is told of every request.
        """
        self._service = Service(
            script,
            provider=provider,
            model=model,
            ledger=ledger or Ledger(),
            tell=on_answer or (lambda _: None),
        )
        self._port = port
        self._lock = Lock()
        self._listener: Listener | None = None
        self._stopped = Event()

    def start(self) -> Self:
        """Listen; a server that already does is left alone."""
        with self._lock:
            if self._listener is None:
                stopped = self._stopped = Event()
                service = self._service
                self._listener = Listener(
                    lambda connection: _serve(connection, service, stopped), self._port
                )
                self._port = self._listener.port  # the same after a restart
        return self

    def stop(self) -> None:
        """Cut every connection, also in the middle of a stream, and end every thread."""
        with self._lock:
            listener, self._listener = self._listener, None
            self._stopped.set()
        if listener is not None:
            listener.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with anyio.CancelScope(shield=True):  # a cancelled test must leave no server behind
            # Its own limiter: all other threads may be waiting for this very server.
            await anyio.to_thread.run_sync(self.stop, limiter=anyio.CapacityLimiter(1))

    @property
    def url(self) -> str:
        """Where it listens: the base URL of Anthropic's client, and an Azure endpoint."""
        if self._listener is None:
            raise RuntimeError("the server does not run: use it in a with statement, or start it")
        return f"http://127.0.0.1:{self._listener.port}"

    @property
    def base_url(self) -> str:
        """The base URL of OpenAI's client."""
        return f"{self.url}/v1"

    @property
    def requests(self) -> list[Request]:
        """Every request so far, the refused ones too."""
        return self._service.requests

    @property
    def ledger(self) -> Ledger:
        """What the server holds now, as convnorm's `Context` takes it."""
        return self._service.state.ledger

    def play(self, *replies: object) -> None:
        """Add replies to the script; one function takes the script's place."""
        if len(replies) == 1 and callable(replies[0]):
            self._service.play(replies[0])
        else:
            self._service.play(replies)


def _serve(connection: socket.socket, service: Service, stopped: Event) -> None:
    Handler(connection, service, stopped)
