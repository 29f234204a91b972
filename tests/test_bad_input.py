"""Bad input is normal: a clear error with position and remedy, or a lawful repair."""

from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import calls, output, result, user
from convnorm import (
    ConvnormError,
    DialectError,
    NeedsRequestError,
    Policy,
    PolicyError,
    UnrepairableError,
    check,
    explain,
    normalize,
    normalize_request,
)
from convnorm.edits import Drop, SetField

CHAT, RESPONSES = "openai.chat", "openai.responses"


@pytest.mark.parametrize(
    "given_", [None, 5, "text", {"role": "user"}, iter([user("a")]), b"x", object()]
)
def test_not_a_list(given_: Any) -> None:
    """What is no list is refused, and the error says what to pass."""
    with pytest.raises(DialectError):
        normalize(given_, CHAT)
    with pytest.raises(DialectError):
        normalize(given_)


@pytest.mark.parametrize("element", [None, 5, "text", ["x"], b"x"])
@pytest.mark.parametrize("target", [CHAT, RESPONSES])
def test_elements_that_are_no_messages(element: Any, target: str) -> None:
    """The position is named."""
    key = "messages" if target == CHAT else "input"

    with pytest.raises(DialectError, match=rf"{key}\[1\] is .*cannot be read as a message"):
        normalize([user("a"), element], target)


@pytest.mark.parametrize("target", [CHAT, RESPONSES])
@pytest.mark.parametrize("role", ["wizard", None, 5, ["user"], ""])
def test_unknown_roles_are_refused_or_sent(role: Any, target: str) -> None:
    """No pass guesses a role; who knows his server can send it all the same."""
    history = [user("a"), {"role": role, "content": "b"}]

    with pytest.raises(UnrepairableError, match=r"\[1\].*role-invalid"):
        normalize(history, target)
    assert history == normalize(history, Policy.for_target(target, unrepairable="send"))


def test_empty_requests_are_refused() -> None:
    """An empty request is never repaired silently."""
    for target in (CHAT, RESPONSES):
        with pytest.raises(UnrepairableError):
            normalize([], target)
    with pytest.raises(UnrepairableError):
        normalize_request({"input": ""}, RESPONSES)


def test_string_input_passes() -> None:
    """A Responses input may be a plain string."""
    assert {"input": "hi", "model": "m"} == normalize_request({"input": "hi", "model": "m"})
    assert check({"input": "hi"}, RESPONSES) == []


@pytest.mark.parametrize(
    "request_",
    [{}, {"model": "m"}, {"messages": [], "input": []}, {"messages": "x"}, {"messages": None}],
)
def test_requests_without_a_history(request_: dict[str, Any]) -> None:
    """A body without exactly one history is refused."""
    with pytest.raises(DialectError):
        normalize_request(request_)


def test_request_of_another_dialect_is_named() -> None:
    """A body in another shape than the policy's says which policy fits."""
    with pytest.raises(DialectError, match=r"openai\.responses.*openai\.chat"):
        normalize_request({"messages": [user("a")]}, RESPONSES)


def test_dialect_is_detected() -> None:
    """One telling element is enough."""
    assert 2 == len(normalize([calls("a")]))
    assert 2 == len(
        normalize([{"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}])
    )


def test_ambiguous_lists_are_refused_only_if_it_matters() -> None:
    """Plain roles and strings read the same everywhere; a fault needs a name."""
    plain = [user("a"), user("b")]

    assert plain == normalize(plain)
    with pytest.raises(DialectError, match="name the policy"):
        normalize([user("a"), {"role": "user", "content": None}])
    with pytest.raises(DialectError, match="name the policy"):
        normalize([user("a"), {**calls("x"), "type": "message"}])


def test_huge_contents_are_not_copied() -> None:
    """A text of 100 MB goes through by reference."""
    huge = user("x" * 100_000_000)

    done = normalize([calls("a"), result("b", "orphan"), huge], CHAT)
    assert huge is done[-1]


def cyclic() -> dict[str, Any]:
    loop: dict[str, Any] = {"type": "loop"}
    loop["self"] = [loop]
    return loop


def deep() -> dict[str, Any]:
    nest: dict[str, Any] = {}
    for _ in range(100_000):
        nest = {"in": nest}
    return nest


@pytest.mark.parametrize("make", [cyclic, deep])
@pytest.mark.parametrize("target", [CHAT, RESPONSES])
def test_cyclic_and_deep_data_neither_hang_nor_overflow(
    make: Callable[[], dict[str, Any]], target: str
) -> None:
    """Nested data is passed on where any key is, or refused in our own words."""
    odd, policy = make(), Policy.for_target(target, provider="vllm")
    history: list[Any] = [
        {"role": "user", "content": [odd], "vendor": odd},
        {"role": "user", "content": [odd], "vendor": odd, "id": "m_77aa88bb"},
        {"role": "user", "content": [odd], "vendor": odd, "id": "m_77aa88bb"},
    ]
    assert history[0] is normalize(history, policy)[0]
    orphan = result("x", odd) if target == CHAT else output("x", odd)
    with pytest.raises(ConvnormError):
        normalize([orphan, user("a")], target)


def test_unhashable_and_odd_ids_are_no_ids() -> None:
    """An id that is neither text nor a whole number is treated as missing."""
    odd: Any
    for odd in ([], {}, 1.5, True, 10**5000):
        done = normalize([calls(odd), {**result("x"), "tool_call_id": odd}, user("b")], CHAT)
        assert check(done, CHAT) == []


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "text", "id", "name", "call_id"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)
KEYS = st.sampled_from(
    [
        *("role", "content", "tool_calls", "tool_call_id", "function_call", "id", "type", "name"),
        *("call_id", "output", "arguments", "summary", "encrypted_content", "refusal", "audio"),
    ]
)
VALUES = JUNK | st.sampled_from(
    [
        *(
            "user",
            "assistant",
            "tool",
            "system",
            "function_call",
            "function_call_output",
            "reasoning",
        ),
        *("message", "item_reference", "a", "b"),
    ]
)


@pytest.mark.parametrize("target", [CHAT, RESPONSES])
def test_garbage_never_crashes(target: str) -> None:
    """Any JSON gives a repaired history, which a second run leaves alone, or a ConvnormError."""

    @given(st.lists(st.dictionaries(KEYS, VALUES, max_size=5), max_size=6), st.booleans())
    def run(history: list[dict[str, Any]], store: bool) -> None:  # drawn
        key = "messages" if target == CHAT else "input"
        body = {key: history, "store": store}
        try:
            report = explain(body, target)
        except ConvnormError:
            return
        assert report.request is not None
        assert explain(report.request, target).edits == ()

    run()


def test_caller_is_never_changed() -> None:
    """Read-only mappings come in and untouched ones go out as they are."""
    frozen = [
        MappingProxyType(user("a")),
        MappingProxyType(calls("c")),
        MappingProxyType(user("b")),
    ]

    done = normalize(frozen, CHAT)
    assert (frozen[0], frozen[1], frozen[2]) == (done[0], done[1], done[3])
    assert all(a is b for a, b in zip((done[0], done[1], done[3]), frozen, strict=True))


def test_repair_of_the_request_needs_the_request() -> None:
    """A pass that changes a field cannot be run on a bare list."""

    def settle(history: Any, call: Any) -> Any:  # noqa: ARG001  # the shape of a pass
        yield SetField("include", ["x"], rule="r", why="w")

    settle.name = "settle"  # type: ignore[attr-defined]  # a function can be a pass
    policy = Policy(target=CHAT, passes=[settle])
    with pytest.raises(NeedsRequestError, match="normalize_request"):
        normalize([user("a")], policy)
    assert ["x"] == normalize_request({"messages": [user("a")]}, policy)["include"]


def test_string_is_no_history() -> None:
    """A bare string is refused, not swallowed; a list is no body."""
    for act in (normalize, normalize_request, explain):
        with pytest.raises(DialectError, match="not a string"):
            act("hello", RESPONSES)  # type: ignore[arg-type]  # that is the point
    with pytest.raises(DialectError, match="for a list use normalize"):
        normalize_request([user("x")], CHAT)  # type: ignore[arg-type]  # that is the point


@pytest.mark.parametrize(
    "content", [[{"type": "text", "text": None}], [{"type": ["a"]}], [None], [5], {"a": 1}]
)
def test_odd_outputs_are_quoted(content: Any) -> None:
    """Whatever JSON an orphan holds, it is quoted."""
    assert check(normalize([user("q"), result("zz", content)], CHAT), CHAT) == []


class Angry:
    """An SDK object that cannot be dumped."""

    def model_dump(self, **_: Any) -> dict[str, Any]:
        """Fail."""
        raise RuntimeError("no")


class Odd:
    """An SDK object that dumps to something else."""

    def model_dump(self, **_: Any) -> list[int]:
        """Give no mapping."""
        return [1]


@pytest.mark.parametrize("element", [Angry(), Odd(), Angry])
def test_objects_that_cannot_be_read(element: Any) -> None:
    """A stranger's object is refused in our words."""
    for act in (normalize, explain):
        with pytest.raises(ConvnormError):
            act([user("a"), element], CHAT)


def test_context_must_be_a_context() -> None:
    """A dict is not silently taken for facts, and odd facts in a body are refused."""
    with pytest.raises(PolicyError, match="a context is a Context"):
        normalize([user("a")], CHAT, context={"store": False})  # type: ignore[arg-type]  # that is the point
    with pytest.raises(PolicyError, match="store in the request is 'false'"):
        normalize_request({"input": [user("a")], "store": "false"}, RESPONSES)


@pytest.mark.parametrize("found", [None, 5, ["x"], [Drop(99, rule="r", why="w")]])
def test_passes_that_yield_nonsense(found: Any) -> None:
    """A foreign pass's mistake names the pass."""

    def odd(history: Any, call: Any) -> Any:  # noqa: ARG001  # the shape of a pass
        return found

    odd.name = "odd"  # type: ignore[attr-defined]  # a function can be a pass
    with pytest.raises(PolicyError, match="pass odd"):
        normalize([user("a")], Policy(target=CHAT, passes=[odd]))
