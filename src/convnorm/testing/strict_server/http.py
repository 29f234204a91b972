"""HTTP/1.1 as far as the clients need it; whatever else comes is answered with an error body."""

import json
import socket
from email.message import Message
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from threading import Event
from typing import Any, NoReturn

from convnorm.testing.strict_server.answers import Answer
from convnorm.testing.strict_server.json_text import written
from convnorm.testing.strict_server.listener import cut
from convnorm.testing.strict_server.record import Request, kept_headers
from convnorm.testing.strict_server.refusals import error_body
from convnorm.testing.strict_server.service import Service

MOST_BYTES = 64 * 2**20
"""A larger body is refused."""
SILENCE = 1.0
"""Seconds without a byte after which a refused client is left alone."""
MOST_DRAINED, BLOCK = 2**30, 2**16
"""How much of a refused body is still taken, and in what pieces."""
LONGEST_LINE = 1024
"""Of a chunk's head or a trailer."""


class BadRequestError(Exception):
    """The request cannot be read; the connection is of no use after it."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status


class Handler(BaseHTTPRequestHandler):
    """One connection: request after request, until one side has enough."""

    protocol_version = "HTTP/1.1"
    server_version = "convnorm-strict-server"
    sys_version = ""

    def __init__(self, connection: socket.socket, service: Service, stopped: Event) -> None:
        self.service, self.stopped = service, stopped
        super().__init__(connection, connection.getpeername(), None)  # type: ignore[arg-type]  # no socketserver is needed

    def do_POST(self) -> None:
        """Answer a request that has a body."""
        request = Request(self.command, self.path, kept_headers(self.headers))
        try:
            raw = self._raw_body()
            request.body = _parsed(raw) if raw or self.command == "POST" else {}
        except BadRequestError as error:
            self._refuse(request, error.status, str(error))
            return
        answer = self.service.answer(request)
        self.service.tell(request)
        self._send(answer)

    do_GET = do_DELETE = do_PUT = do_PATCH = do_POST  # noqa: N815  # the base class names them

    # ------------------------------------------------------------ reading

    def _raw_body(self) -> bytes:
        headers: Message = self.headers
        if "transfer-encoding" in headers:
            if headers["transfer-encoding"].strip().lower() != "chunked":
                self._unreadable("the transfer encoding is not known")
            return self._chunks()
        given = headers.get("content-length", "0").strip()
        if not (given.isascii() and given.isdigit() and len(given) < 20):
            self._unreadable("the content length is no number")
        if int(given) > MOST_BYTES:
            self._unreadable("the body is too large", 413)
        return self._exactly(int(given))

    def _chunks(self) -> bytes:
        body = bytearray()
        while True:
            head = self._line().partition(b";")[0].strip()
            try:
                size = int(head, 16) if head.isalnum() else -1
            except ValueError:
                size = -1
            if size < 0:
                self._unreadable("a chunk of the body has no length")
            if len(body) + size > MOST_BYTES:
                self._unreadable("the body is too large", 413)
            if size == 0:
                while self._line().strip():  # trailers say nothing here
                    pass
                return bytes(body)
            body += self._exactly(size)
            if self._line().strip():
                self._unreadable("a chunk of the body is longer than it says")

    def _line(self) -> bytes:
        line = self.rfile.readline(LONGEST_LINE)
        if not line.endswith(b"\n"):
            self._unreadable("the body ends too early")
        return line

    def _exactly(self, size: int) -> bytes:
        read = self.rfile.read(size)
        if len(read) < size:
            self._unreadable("the body ends too early")
        return read

    def _unreadable(self, message: str, status: int = 400) -> NoReturn:
        self.close_connection = True
        raise BadRequestError(message, status)

    # ------------------------------------------------------------ writing

    def _send(self, answer: Answer) -> None:
        if answer.delay and self.stopped.wait(answer.delay):
            self.close_connection = True
            return
        if answer.events is not None:
            self._stream(answer, answer.events)
        elif answer.abort_after is not None:
            self._cut()
        else:
            if answer.done:
                answer.done()
            self._body(answer)

    def _body(self, answer: Answer) -> None:
        plain = isinstance(answer.body, str)
        kind = "text/plain; charset=utf-8" if plain else "application/json"
        body = answer.body.encode("utf-8", "replace") if plain else written(answer.body)
        self._head(answer, {"content-type": kind, "content-length": str(len(body))})
        self._flush(body)

    def _stream(self, answer: Answer, events: list[bytes | float]) -> None:
        chunked = self.request_version == "HTTP/1.1"
        framing = {"transfer-encoding": "chunked"} if chunked else {"connection": "close"}
        kind = "text/event-stream; charset=utf-8"
        self._head(answer, {"content-type": kind, "cache-control": "no-cache", **framing})
        self._flush(b"")
        left = sum(isinstance(one, bytes) for one in events)
        sent = 0
        for one in events:
            if sent == answer.abort_after:
                self._cut()
                return
            if not isinstance(one, bytes):
                if self.stopped.wait(one):
                    self._cut()
                    return
                continue
            if sent + 1 == left and answer.done:
                answer.done()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(one), one) if chunked else one)
            sent += 1
        if answer.abort_after is not None:
            self._cut()
        elif chunked:
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.close_connection = True

    def _head(self, answer: Answer, headers: dict[str, str]) -> None:
        if self.request_version == "HTTP/0.9":  # so it is called before a line is understood
            self.request_version = "HTTP/1.0"
        self.send_response(answer.status)
        for name, value in {**headers, **answer.headers}.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("connection", "close")

    def _flush(self, body: bytes) -> None:
        """Head and body in one write."""
        self._headers_buffer: list[bytes] = [*self._headers_buffer, b"\r\n", body]
        self.flush_headers()

    def _cut(self) -> None:
        self.close_connection = True
        cut(self.connection)

    def _refuse(self, request: Request, status: int, message: str) -> None:
        """What could not be read is remembered and answered all the same."""
        request.status = status
        request_id = self.service.remember(request)
        api = "anthropic.messages" if request.path.startswith("/v1/messages") else None
        body = error_body(api, status, message, request_id=request_id)
        self.service.tell(request)
        self._body(Answer(status, body, {"x-request-id": request_id}))
        if self.close_connection:
            self._drain()

    def _drain(self) -> None:
        """Let the client finish: closed over unread bytes, it would never see the answer."""
        self.connection.shutdown(socket.SHUT_WR)
        self.connection.settimeout(SILENCE)
        for _ in range(MOST_DRAINED // BLOCK):
            if not self.connection.recv(BLOCK):
                return

    def send_error(
        self,
        code: int,
        message: str | None = None,
        explain: str | None = None,  # noqa: ARG002  # the base class passes it
    ) -> None:
        """What the base class refuses: requests that are no HTTP, or of unknown methods."""
        unknown = code == HTTPStatus.NOT_IMPLEMENTED
        self.close_connection = True
        path = getattr(self, "path", "")
        request = Request(getattr(self, "command", None) or "", path)
        self._refuse(request, 405 if unknown else 400, message or "the request is no HTTP")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class names it
        """Say nothing: everything is in `requests`."""


def _parsed(raw: bytes) -> dict[str, Any]:
    try:
        body = json.loads(raw.decode("utf-8"), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        text = f"We could not parse the JSON body of your request. ({type(error).__name__})"
        raise BadRequestError(text) from None
    if not isinstance(body, dict):
        raise BadRequestError("the body of a request is a JSON object")
    return body


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")
