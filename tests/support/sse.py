"""A server that says what it is told, streamed or not: for what no script of a reply covers."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any


class Speaker(ThreadingHTTPServer):
    """It answers every request with `whole`, or with `events` if it is to be streamed."""

    whole: Any = None
    events: Sequence[dict[str, Any]] = ()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Speaker

    def do_POST(self) -> None:
        """Whatever was asked."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        streams = body.get("stream")
        self.send_header("content-type", "text/event-stream" if streams else "application/json")
        self.end_headers()
        if not streams:
            self.wfile.write(json.dumps(self.server.whole).encode())
            return
        for event in self.server.events:
            name = f"event: {event['type']}\n" if "type" in event else ""
            self.wfile.write(f"{name}data: {json.dumps(event)}\n\n".encode())
        if not any("type" in event for event in self.server.events):  # as Chat Completions end
            self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, *_: object) -> None:
        """Nothing."""


@contextmanager
def speaker() -> Iterator[Speaker]:
    """A server, as long as it is used."""
    with Speaker(("127.0.0.1", 0), _Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
