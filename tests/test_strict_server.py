"""The strict server over raw HTTP: it answers whatever comes, and it always ends."""

import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio
import pytest

from convnorm import Context, ConvnormError, check
from convnorm.delivery import Ledger
from convnorm.rules import CATALOGUE, KEYS, RULES, Rule, judge
from convnorm.targets import find_target
from convnorm.testing import Failure, Reply, StrictServer, call, delay, reasoning, text

PATHS = {
    "openai.chat": "/v1/chat/completions",
    "openai.responses": "/v1/responses",
    "anthropic.messages": "/v1/messages",
}
CHAT = PATHS["openai.chat"]
RESPONSES = PATHS["openai.responses"]
HELLO: dict[str, Any] = {"model": "gpt-5.1", "messages": [{"role": "user", "content": "hello"}]}
ASK: dict[str, Any] = {"model": "gpt-5.1", "input": "hello"}
LONG = 3600.0
"""Seconds that no test waits: whoever waits for them hangs."""


def connect(server: StrictServer) -> http.client.HTTPConnection:
    host, _, port = server.url.removeprefix("http://").partition(":")
    return http.client.HTTPConnection(host, int(port), timeout=30)


def ask(
    server: StrictServer, body: Any = None, path: str = CHAT, method: str = "POST"
) -> tuple[int, Any]:
    """The status and the JSON of one request on a connection of its own."""
    connection = connect(server)
    try:
        connection.request(method, path, None if body is None else json.dumps(body))
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def respond(server: StrictServer, **body: Any) -> dict[str, Any]:
    """A response that must be one."""
    status, found = ask(server, {"model": "gpt-5.1", **body}, RESPONSES)
    assert 200 == status, found
    return dict(found)


def raw(server: StrictServer, *pieces: bytes) -> bytes:
    """Everything the server answers to these bytes, after which the client has no more to say."""
    host, _, port = server.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=30) as client:
        for piece in pieces:
            client.sendall(piece)
        client.shutdown(socket.SHUT_WR)
        found = b""
        while more := client.recv(65536):
            found += more
        return found


def posted(body: bytes, *headers: bytes, path: str = CHAT) -> bytes:
    """A request whose headers are all given, beside the host."""
    lines = [b"POST " + path.encode() + b" HTTP/1.1", b"host: localhost", *headers, b"", body]
    return b"\r\n".join(lines)


def sized(body: bytes) -> bytes:
    return posted(body, b"content-length: %d" % len(body))


def answered(answer: bytes) -> tuple[int, Any]:
    """The status and the JSON of a raw answer."""
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


@pytest.fixture(autouse=True)
def no_thread_left() -> Iterator[None]:
    """Whatever a test did to a server, nothing of it runs on."""
    yield
    assert [one.name for one in threading.enumerate() if one.name.startswith("strict-")] == []


@pytest.fixture
def server() -> Iterator[StrictServer]:
    with StrictServer(lambda _: "yes") as running:
        yield running


# ---------------------------------------------------------------- what is no request

UNREADABLE = {
    "garbage": b"\x00\xff\x16\x03\x01 what is this\r\n\r\n",
    "no version": b"POST\r\n\r\n",
    "a version of tomorrow": b"POST /v1/responses HTTP/9.9\r\n\r\n",
    "a line without end": b"POST /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
    "too many headers": posted(b"", *(b"x-%d: 1" % at for at in range(200))),
    "a length that is no number": posted(b"{}", b"content-length: two"),
    "a length below nothing": posted(b"{}", b"content-length: -2"),
    "a length beyond reason": posted(b"{}", b"content-length: 999999999999"),
    "a length of a thousand digits": posted(b"{}", b"content-length: " + b"9" * 1000),
    "half a body": posted(b'{"model"', b"content-length: 100"),
    "an unknown encoding": posted(b"{}", b"transfer-encoding: gzip"),
    "a chunk without length": posted(b"zz\r\n{}\r\n0\r\n\r\n", b"transfer-encoding: chunked"),
    "a chunk of negative length": posted(b"-2\r\n{}\r\n0\r\n\r\n", b"transfer-encoding: chunked"),
    "a chunk that is longer": posted(b"1\r\n{}\r\n0\r\n\r\n", b"transfer-encoding: chunked"),
    "a chunk that is cut": posted(b"ff\r\n{}", b"transfer-encoding: chunked"),
    "chunks without end": posted(b"2\r\n{}\r\n", b"transfer-encoding: chunked"),
    "a chunk beyond reason": posted(b"ffffffffff\r\n{}", b"transfer-encoding: chunked"),
    "no JSON": sized(b"{nothing"),
    "not a number": sized(b'{"model": NaN}'),
    "endless nesting": sized(b"[" * 200_000),
    "no UTF-8": sized(b'{"model": "\xff"}'),
    "a list": sized(b"[]"),
    "a string": sized(b'"hello"'),
    "nothing": sized(b""),
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_read_is_refused(name: str, server: StrictServer) -> None:
    """It gets an error body and is remembered, and the next request is answered as ever."""
    status, body = answered(raw(server, UNREADABLE[name]))

    assert 400 <= status < 500
    assert {"message", "type", "param", "code"} == body["error"].keys()
    assert (status, 200) == (server.requests[0].status, ask(server, HELLO)[0])


def test_anthropic_refusals_have_their_own_shape(server: StrictServer) -> None:
    """Also for a body that cannot be read."""
    broken = posted(b"{", b"content-length: 1", path="/v1/messages")
    _, body = answered(raw(server, broken))

    assert ("error", "invalid_request_error") == (body["type"], body["error"]["type"])


@pytest.mark.parametrize(
    "method, path, status",
    [
        ("POST", "/", 404),
        ("POST", "/v1", 404),
        ("POST", "/v1/completions", 404),
        ("GET", "/v1/models", 404),
        ("GET", CHAT, 405),
        ("DELETE", RESPONSES, 405),
        ("PATCH", "/v1/conversations/conv_1", 405),
        ("OPTIONS", CHAT, 405),
        ("GET", "/v1/responses/resp_nobody", 404),
        ("GET", "/v1/conversations/conv_nobody", 404),
        ("POST", "/v1/../../etc/passwd", 404),
        ("POST", "/v1/responses/%00", 405),
    ],
)
def test_what_nobody_serves_is_refused(
    method: str, path: str, status: int, server: StrictServer
) -> None:
    """Wrong paths and methods get an error body."""
    found = ask(server, {} if method == "POST" else None, path, method)

    assert status == found[0]
    assert found[1]["error"]["message"]


def test_a_client_that_goes_away_disturbs_nobody(server: StrictServer) -> None:
    """In the middle of its head, of its body, or before it reads the answer."""
    host, _, port = server.url.removeprefix("http://").partition(":")
    for piece in (
        b"POST /v1/ch",
        posted(b"{", b"content-length: 9"),
        sized(json.dumps(HELLO).encode()),
    ):
        with socket.create_connection((host, int(port)), timeout=30) as client:
            client.sendall(piece)
    assert 200 == ask(server, HELLO)[0]


def test_chunks_and_slow_clients_are_understood(server: StrictServer) -> None:
    """A body may come in chunks with extensions and trailers, and byte by byte."""
    body = json.dumps(HELLO).encode()
    head = posted(b"", b"transfer-encoding: chunked", b"connection: close")
    chunks = [b"%x;a=b\r\n%b\r\n" % (1, body[at : at + 1]) for at in range(len(body))]

    status, found = answered(raw(server, head, *chunks, b"0\r\nx-trailer: 1\r\n\r\n"))
    assert (200, "yes") == (status, found["choices"][0]["message"]["content"])


def test_odd_but_legal_json_is_judged(server: StrictServer) -> None:
    """Lone surrogates, repeated keys and huge numbers are the rules' business."""
    for body in (
        b'{"messages": [{"role": "user", "content": "\\ud83d"}]}',
        b'{"messages": 1, "messages": [{"role": "user", "content": "x"}]}',
        b'{"messages": [{"role": "user", "content": "x"}], "seed": ' + b"9" * 400 + b"}",
    ):
        closing = posted(body, b"content-length: %d" % len(body), b"connection: close")
        assert 200 == answered(raw(server, closing))[0]


def test_a_connection_is_kept(server: StrictServer) -> None:
    """Several requests go over one connection, a refused one and one of bad JSON among them."""
    connection = connect(server)
    statuses = []
    for body in (json.dumps(HELLO), "{", json.dumps({"messages": []}), json.dumps(HELLO)):
        connection.request("POST", CHAT, body)
        answer = connection.getresponse()
        answer.read()
        statuses.append(answer.status)
    connection.close()

    assert [200, 400, 400, 200] == statuses == [one.status for one in server.requests]


# ---------------------------------------------------------------- the end


def waiting_client(server: StrictServer, body: Mapping[str, Any]) -> http.client.HTTPConnection:
    """A client whose request the server has, and whose answer takes long."""
    connection = connect(server)
    connection.request("POST", CHAT, json.dumps(body))
    return connection


@pytest.mark.parametrize("stream", [False, True])
def test_it_stops_in_the_middle_of_a_delay(stream: bool) -> None:
    """A client that waits is cut off; the end does not wait for its answer."""
    came = threading.Event()
    server = StrictServer([Reply(delay(LONG), "never")], on_answer=lambda _: came.set())
    with server:
        client = waiting_client(server, {**HELLO, "stream": stream})
        assert came.wait(30)
        idle = [connect(server) for _ in range(3)]
        for one in idle:
            one.connect()
    with pytest.raises((http.client.HTTPException, OSError)):
        client.getresponse().read()
    for one in (client, *idle):
        one.close()


def test_it_stops_while_a_script_is_blocked() -> None:
    """The thread of a script that waits for the test ends when the script does."""
    came, go = threading.Event(), threading.Event()

    def script(_: Any) -> str:
        came.set()
        go.wait()
        return "late"

    with StrictServer(script) as server:
        client = waiting_client(server, HELLO)
        assert came.wait(30)
        go.set()
    client.close()


def test_it_can_be_stopped_twice_and_started_again() -> None:
    """The port, the script and what it holds stay the same."""
    server = StrictServer(["one", "two"]).start()
    url, first = server.url, respond(server, input="?")
    server.stop()
    server.stop()
    with pytest.raises(RuntimeError, match="does not run"):
        _ = server.url
    with server:
        second = respond(server, input="?", previous_response_id=first["id"])
        assert (url, "two") == (server.url, second["output"][0]["content"][0]["text"])


def test_a_cancelled_test_leaves_no_server() -> None:
    """The asynchronous context manager ends also under cancellation."""

    async def run() -> None:
        with anyio.CancelScope() as scope:
            async with StrictServer(["never"]):
                scope.cancel()
                await anyio.sleep_forever()

    anyio.run(run)


def test_many_clients_at_once() -> None:
    """Every reply is given once, under an id of its own, and nothing is lost."""
    number = 60
    with StrictServer([f"reply {at}" for at in range(number)]) as server:
        with ThreadPoolExecutor(20) as pool:
            found = list(pool.map(lambda _: respond(server, input="?"), range(number)))
        seen = len(server.requests)

    texts = {one["output"][0]["content"][0]["text"] for one in found}
    assert (number, number, number) == (len(texts), len({one["id"] for one in found}), seen)


# ---------------------------------------------------------------- the rules


def setting_of(rule: Rule) -> dict[str, Any] | None:
    """How the server must be set up for a rule's example; None where it cannot be."""
    if not {*rule.setting} <= {"provider", "model", "state"}:
        return None
    given = {key: rule.setting[key] for key in ("provider", "model") if key in rule.setting}
    state = rule.setting.get("state")
    return given if state is None else {**given, "ledger": Ledger.from_state(state)}


def expected(api: str, rule: Rule, setting: Mapping[str, Any]) -> list[str]:
    """What `judge` says of the example as it comes to the server."""
    body = json.loads(json.dumps(rule.example))
    target = find_target(api, provider=setting.get("provider"), model=setting.get("model"))
    store = True if api == "openai.responses" and body.get("store") is None else None
    context = Context(store=store, ledger=setting.get("ledger", Ledger()))
    found = judge(
        body.get(KEYS[api]),
        target=target,
        context=context.with_body(body),
        fields=body,
    )
    return [one.rule for one in found]


REFUSED = [
    pytest.param(api, rule, id=f"{api}-{rule.id}")
    for api, rules in CATALOGUE.items()
    for rule in rules
    if rule.api == api and (setting := setting_of(rule)) is not None
    if rule.id in expected(api, rule, setting)
]


def test_most_rules_can_be_shown() -> None:
    """What is left out needs facts that no server has, or is refused only by disputed sources."""
    assert len(REFUSED) > 100


@pytest.mark.parametrize("api, rule", REFUSED)
def test_the_server_refuses_what_the_rules_refuse(api: str, rule: Rule) -> None:
    """Each rule's example gets the provider's status, wording and shape, and all violations."""
    setting = setting_of(rule) or {}
    with StrictServer(["never said"], **setting) as server:
        status, body = ask(server, rule.example, PATHS[api])
        [request] = server.requests

    assert expected(api, rule, setting) == [one.rule for one in request.violations]
    first = RULES[request.violations[0].rule]
    assert (first.status, first.id) == (status, body["convnorm"]["rule"])
    assert body["error"]["message"] in first.error
    assert request.answer is None


ACCEPTED: Mapping[str, Mapping[str, Any]] = {
    "openai.chat": HELLO,
    "openai.responses": ASK,
    "anthropic.messages": {**HELLO, "model": "claude-sonnet-4-5", "max_tokens": 9},
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", PATHS)
def test_what_is_in_order_is_answered(api: str, stream: bool) -> None:
    """JSON, or events that end as the provider's do."""
    ends = {"openai.chat": b"[DONE]", "openai.responses": b"response.completed"}
    with StrictServer([Reply(reasoning("hm"), "yes", call("f", x=1))]) as server:
        connection = connect(server)
        body = {**ACCEPTED[api], "stream": stream}
        connection.request("POST", PATHS[api], json.dumps(body))
        answer = connection.getresponse()
        found = answer.read()
        connection.close()

    assert 200 == answer.status
    if stream:
        assert "text/event-stream" in str(answer.getheader("content-type"))
        assert ends.get(api, b"message_stop") in found.rstrip().rsplit(b"\n\n", 1)[-1]
    else:
        assert server.requests[0].answer == json.loads(found)["id"]


def test_check_with_its_ledger_says_the_same() -> None:
    """What the server would refuse, `check` refuses when it is given what the server holds."""
    with StrictServer([Reply(call("weather")), "never"]) as server:
        first = respond(server, input="?")
        follow = {**ASK, "previous_response_id": first["id"]}
        found = check(follow, "openai.responses", context=Context(ledger=server.ledger))
        status, body = ask(server, follow, RESPONSES)

    assert (400, "resp-call-output-missing") == (status, body["convnorm"]["rule"])
    assert [one.rule for one in found] == [one.rule for one in server.requests[-1].violations]


# ---------------------------------------------------------------- what it holds


def test_a_chain_is_what_the_model_sees() -> None:
    """`seen` is the stored chain and then the input; a response that is not stored ends nothing."""
    with StrictServer(lambda _: "yes") as server:
        first = respond(server, input="one")
        second = respond(server, input="two", previous_response_id=first["id"])
        unstored = respond(server, input="three", previous_response_id=second["id"], store=False)
        status, _ = ask(server, {**ASK, "previous_response_id": unstored["id"]}, RESPONSES)
        roles = [one["role"] for one in server.requests[2].seen]

    assert status in (400, 404)
    assert ["user", "assistant", "user", "assistant", "user"] == roles


def test_references_stand_for_stored_items() -> None:
    """An item is found by its id if it is stored, and only then."""
    with StrictServer(lambda _: "yes") as server:
        stored, unstored = (respond(server, input="?", store=store) for store in (True, False))
        statuses = [
            ask(
                server,
                {"input": [{"type": "item_reference", "id": one["output"][0]["id"]}]},
                RESPONSES,
            )[0]
            for one in (stored, unstored)
        ]

    assert 200 == statuses[0]
    assert 400 <= statuses[1] < 500


def test_conversations_grow() -> None:
    """What was said in a conversation is put before what comes next; a deleted one is gone."""
    with StrictServer(lambda _: "yes") as server:
        items = [{"role": "user", "content": "first"}]
        _, made = ask(server, {"items": items}, "/v1/conversations")
        for said in ("second", "third"):
            respond(server, input=said, conversation=made["id"])
        path = f"/v1/conversations/{made['id']}"
        _, listed = ask(server, None, f"{path}/items?order=asc", "GET")
        seen = server.requests[2].seen
        ask(server, None, path, "DELETE")
        status, _ = ask(server, {**ASK, "conversation": made["id"]}, RESPONSES)

    assert (4, 5, 404) == (len(seen), len(listed["data"]), status)


def test_reasoning_is_sealed_on_request() -> None:
    """Encrypted content is in the answer only if `include` asks for it."""
    sealed = ["reasoning.encrypted_content"]
    with StrictServer(lambda _: Reply(reasoning("hm"), "yes")) as server:
        plain, asked = respond(server, input="?"), respond(server, input="?", include=sealed)

    assert [False, True] == ["encrypted_content" in one["output"][0] for one in (plain, asked)]


def test_a_stream_that_is_cut_stores_nothing() -> None:
    """Its ids were issued, and nobody can continue it; the script goes on."""
    with StrictServer([Reply("a b c", abort_after=4), "yes"]) as server:
        connection = connect(server)
        connection.request("POST", RESPONSES, json.dumps({**ASK, "stream": True}))
        with pytest.raises(http.client.IncompleteRead):
            connection.getresponse().read()
        connection.close()
        status, _ = ask(server, None, "/v1/responses/resp_1", "GET")
        held = server.ledger.responses["resp_1"].stored
        respond(server, input="?")

    assert (404, False) == (status, held)


def test_stored_responses_are_shown_and_deleted() -> None:
    """By id, with their input items."""
    with StrictServer(["yes"]) as server:
        made = respond(server, input="?")
        path = f"/v1/responses/{made['id']}"
        shown = ask(server, None, path, "GET")[1]
        items = ask(server, None, f"{path}/input_items", "GET")[1]["data"]
        gone = [ask(server, None, path, method)[0] for method in ("DELETE", "DELETE", "GET")]

    assert (made, "?", [200, 404, 404]) == (shown, items[0]["content"][0]["text"], gone)


# ---------------------------------------------------------------- the script


def said(server: StrictServer) -> Any:
    return ask(server, HELLO)[1]["choices"][0]["message"]


def test_both_forms_of_a_script_say_the_same() -> None:
    """Python and plain JSON."""
    python = [
        "yes",
        Reply(text("a"), text("b")),
        Reply(reasoning("hm"), call("f", {"x": 1}, call_id="c1"), call("g", "{broken")),
        Failure(429, "slow down", code="rate"),
    ]
    plain = [
        "yes",
        ["a", {"text": "b"}],
        {
            "reply": [
                {"reasoning": "hm"},
                {"call": "f", "arguments": {"x": 1}, "id": "c1"},
                {"call": "g", "arguments": "{broken"},
            ]
        },
        {"failure": 429, "message": "slow down", "code": "rate"},
    ]
    answers = []
    for script in (python, plain):
        with StrictServer(script) as server:
            answers.append([ask(server, HELLO) for _ in script])
    assert answers[0] == answers[1]
    assert [200, 200, 200, 429] == [status for status, _ in answers[0]]
    calls = answers[0][2][1]["choices"][0]["message"]["tool_calls"]
    assert ["c1", "{broken"] == [calls[0]["id"], calls[1]["function"]["arguments"]]


@pytest.mark.parametrize(
    "script",
    [
        [3],
        [None],
        [{"say": "x"}],
        [{"text": 3}],
        [{"call": "f", "argument": {}}],
        [{"reply": "x", "abort": 1}],
        [{"reply": "x", "abort_after": "1"}],
        [{"failure": "400"}],
        [{"failure": 400, "body": object()}],
        [{"delay": "long"}],
        {"text": True},
        3,
    ],
)
def test_a_bad_script_is_refused_at_once(script: Any) -> None:
    """With an error that says what a script is made of."""
    with pytest.raises(ConvnormError, match=r"repl|part|failure|abort_after|has no"):
        StrictServer(script)


def test_a_script_can_be_a_function() -> None:
    """It sees the request; what it raises or wrongly returns is shown to the client as a 500."""

    def fails(_: Any) -> str:
        raise KeyError("oh")

    results: list[Callable[[Any], Any]] = [
        lambda request: request.body["messages"][0]["content"],
        fails,
        lambda _: 3,
        lambda _: None,
    ]
    found = []
    with StrictServer() as server:
        for one in results:
            server.play(one)
            found.append(ask(server, HELLO))
    assert [200, 500, 500, 500] == [status for status, _ in found]
    assert "hello" == found[0][1]["choices"][0]["message"]["content"]
    messages = [body["error"]["message"] for _, body in found[1:]]
    assert ["KeyError" in messages[0], "exhausted" in messages[2]] == [True, True]


def test_a_script_goes_on_where_play_adds() -> None:
    """Replies come in order; what is refused uses none up; at the end it says that it is done."""
    with StrictServer("one") as server:
        server.play("two", "three")
        ask(server, {"messages": []})
        assert ["one", "two", "three"] == [said(server)["content"] for _ in range(3)]
        status, body = ask(server, HELLO)

    assert (500, "script_exhausted") == (status, body["error"]["code"])


def test_a_failure_can_have_any_body() -> None:
    """As an API in trouble has: a page of text, headers of its own."""
    failure = Failure(503, body="<html>", headers={"retry-after": "3"})
    with StrictServer([failure]) as server:
        connection = connect(server)
        connection.request("POST", CHAT, json.dumps(HELLO))
        answer = connection.getresponse()
        found = answer.read()
        connection.close()

    assert (503, "3", b"<html>") == (answer.status, answer.getheader("retry-after"), found)


def test_secrets_are_not_recorded(server: StrictServer) -> None:
    """The headers that are kept hold no key."""
    connection = connect(server)
    headers = {"authorization": "Bearer sk-secret", "x-api-key": "sk-secret", "user-agent": "me"}
    connection.request("POST", CHAT, json.dumps(HELLO), headers)
    connection.getresponse().read()
    connection.close()

    kept = server.requests[0].headers
    assert ("me", False) == (kept["user-agent"], "sk-secret" in str(kept))


def test_the_fixture_runs(strict_server: StrictServer) -> None:
    """pytest finds it by itself, and it has no script yet."""
    strict_server.play("yes")
    assert "yes" == said(strict_server)["content"]
