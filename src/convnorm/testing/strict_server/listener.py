"""The sockets: an accepting thread, a thread for each connection, and an end to all of them."""

import selectors
import socket
from collections.abc import Callable
from contextlib import suppress
from threading import Lock, Thread, current_thread
from time import monotonic, sleep

PATIENCE = 5.0
"""How long the end waits for all threads; only a script that blocks takes longer than no time."""
BREATH = 0.05
"""How long nothing is accepted when there is no descriptor or no thread left for it."""


class Listener:
    """Listens on loopback and hands every connection to `serve`, in a thread of its own."""

    def __init__(self, serve: Callable[[socket.socket], None], port: int = 0) -> None:
        self._serve = serve
        self._lock = Lock()
        self._open: dict[socket.socket, Thread] = {}
        self._socket = socket.create_server(("127.0.0.1", port), backlog=128)
        self._socket.settimeout(0)  # whoever was ready may be gone when it is accepted
        self.port: int = self._socket.getsockname()[1]
        self._wake, self._woken = socket.socketpair()
        self._thread = Thread(target=self._accept, name=f"strict-server-{self.port}", daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while True:
                ready = [key.fileobj for key, _ in selector.select()]
                if self._woken in ready:
                    return
                try:
                    self._start(self._socket.accept()[0])
                except (OSError, RuntimeError):
                    sleep(BREATH)

    def _start(self, connection: socket.socket) -> None:
        connection.settimeout(None)
        with suppress(OSError):  # an event must not wait for the next one
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        name = f"strict-server-{self.port}-connection"
        thread = Thread(target=self._run, args=(connection,), name=name, daemon=True)
        with self._lock:
            self._open[connection] = thread
        try:
            thread.start()
        except RuntimeError:
            self._end(connection)
            raise

    def _run(self, connection: socket.socket) -> None:
        try:
            # A client that goes away in the middle ends its own thread, and nothing else.
            with suppress(OSError, ValueError):
                self._serve(connection)
        finally:
            self._end(connection)

    def _end(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.pop(connection, None)
            cut(connection)
            connection.close()

    def close(self) -> None:
        """Stop accepting, cut every connection, and wait for the threads."""
        with suppress(OSError):
            self._wake.send(b".")
        self._thread.join()
        for one in (self._socket, self._wake, self._woken):
            one.close()
        with self._lock:
            threads = [*self._open.values()]
            for connection in self._open:
                cut(connection)
        patient = monotonic() + PATIENCE
        for thread in threads:
            if thread is not current_thread():
                thread.join(max(0, patient - monotonic()))


def cut(connection: socket.socket) -> None:
    """End a connection in both directions: what was sent arrives, and nothing after it."""
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
