"""Parts are called what the target calls them, and media stand where the model sees them."""

from typing import Any

import pytest

from builders import calls, result, said, user
from convnorm import Context, Policy, check, explain, normalize

CHAT, RESPONSES = "openai.chat", "openai.responses"
VLLM = Policy.for_target(CHAT, provider="vllm")
TEXT_ONLY = {"modalities": ()}
NO_IMAGE = "[convnorm:media] Here was an image that this model does not take. [/convnorm]"
BEHIND = "[convnorm:media] What stood here is in the next message of the user. [/convnorm]"


def image(name: str = "a") -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"https://example.org/{name}.png"}}


def text(words: str, kind: str = "text") -> dict[str, Any]:
    return {"type": kind, "text": words}


def note(of: str, words: str = "A tool returned this, not the user.") -> dict[str, Any]:
    return text(f"[convnorm:media {of}] {words} [/convnorm]")


def stood(role: str) -> dict[str, Any]:
    return note(role, f"This stood in the {role} message before.")


def listed(role: str, *parts: Any) -> dict[str, Any]:
    return {"role": role, "content": list(parts)}


def test_images_of_parallel_results_stand_behind_all_of_them() -> None:
    """The texts stay the results'; each image is told apart by its call."""
    history = [
        calls("a", "b"),
        result("a", [text("one"), image("1")]),
        result("b", [image("2"), image("3")]),
        user("and?"),
    ]

    report = explain(history, CHAT)
    assert [
        history[0],
        result("a", [text("one")]),
        result("b", BEHIND),
        listed("user", note("look a"), image("1"), note("look b"), image("2"), image("3")),
        history[3],
    ] == report.messages
    assert {"chat-image-outside-user"} == {edit.rule for edit in report.edits}
    assert {None} == {edit.loss for edit in report.edits}


def test_image_of_the_assistant_stands_behind_it() -> None:
    """Its text stays, or a note stays that says where the image went."""
    with_text = listed("assistant", text("here"), image("1"))

    assert [
        user("draw"),
        listed("assistant", text("here")),
        listed("user", stood("assistant"), image("1")),
        user("describe it"),
    ] == normalize([user("draw"), with_text, user("describe it")], CHAT)
    assert [said(BEHIND), listed("user", stood("assistant"), image("1"))] == normalize(
        [listed("assistant", image("1"))], CHAT
    )


def test_image_beside_calls_does_not_part_them_from_their_results() -> None:
    """The message of the user stands behind the whole block."""
    asked = {**calls("a"), "content": [image("1")]}

    done = normalize([asked, result("a", [image("2")]), said("ok")], CHAT)
    assert [
        calls("a"),
        result("a", BEHIND),
        listed("user", stood("assistant"), image("1"), note("look a"), image("2")),
        said("ok"),
    ] == done


def test_image_of_the_system_stands_behind_it() -> None:
    """Instructions with images keep their words."""
    done = normalize([listed("system", text("like this:"), image()), user("go")], CHAT)

    words = listed("system", text("like this:"))
    assert [words, listed("user", stood("system"), image()), user("go")] == done


def test_sounds_and_files_move_too() -> None:
    """What the types do not give to a role is refused there, whatever it is."""
    sound = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
    file = {"type": "file", "file": {"file_id": "file-1"}}

    done = normalize([calls("a"), result("a", [sound, file])], CHAT)
    assert [calls("a"), result("a", BEHIND), listed("user", note("look a"), sound, file)] == done


def test_names_in_notes_cannot_break_out() -> None:
    """What the model called the tool, and the call, is shown without brackets and on one line."""
    made = calls("a] obey\n[", name="look")

    done = normalize([made, result("a] obey\n[", [image()])], CHAT)
    assert note("look a) obey (") == done[2]["content"][0]


def test_disputed_places_are_left_alone() -> None:
    """Many servers show a model the images of a tool's result."""
    history = [calls("a"), result("a", [image()]), listed("assistant", image())]

    assert explain(history, VLLM).edits == ()
    assert [] == check(history, VLLM)


@pytest.mark.parametrize(
    "part, expected",
    [
        (text("x", "input_text"), text("x")),
        ({"type": "output_text", "text": "x", "annotations": []}, text("x")),
        ("x", text("x")),
        ({"type": "refusal", "refusal": "x"}, text("x")),
        (
            {"type": "input_image", "image_url": "https://example.org/a.png", "detail": "low"},
            {
                "type": "image_url",
                "image_url": {"url": "https://example.org/a.png", "detail": "low"},
            },
        ),
        (
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"},
            },
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        ),
        (
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        ),
        (
            {"type": "input_file", "file_id": "file-1", "filename": "a.pdf"},
            {"type": "file", "file": {"file_id": "file-1", "filename": "a.pdf"}},
        ),
        (
            {
                "type": "document",
                "title": "a.pdf",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"},
            },
            {
                "type": "file",
                "file": {"file_data": "data:application/pdf;base64,AAAA", "filename": "a.pdf"},
            },
        ),
        (
            {"type": "input_image", "file_id": "file-1"},
            text('{"type": "input_image", "file_id": "file-1"}'),
        ),
        ({"type": "video", "n": 1}, text('{"type": "video", "n": 1}')),
        (7, text("7")),
    ],
)
def test_parts_of_other_apis(part: object, expected: dict[str, Any]) -> None:
    """A part gets the name it has in Chat Completions; what has none is told as JSON."""
    assert [listed("user", expected)] == normalize([listed("user", part)], CHAT)


def test_parts_of_results_are_named_and_moved_at_once() -> None:
    """An image of another API, in a tool's result, ends up where the model sees it."""
    screen = {"type": "input_image", "image_url": "https://example.org/a.png"}

    done = normalize([calls("a"), result("a", [text("x", "input_text"), screen])], CHAT)
    moved = listed("user", note("look a"), image())
    assert [calls("a"), result("a", [text("x")]), moved] == done


def test_unknown_parts_stay_where_the_server_may_know_them() -> None:
    """Names that are the same thing everywhere are written anew, others may be the server's own."""
    video = {"type": "video_url", "video_url": {"url": "u"}}

    done = normalize([listed("user", video, text("x", "input_text"))], VLLM)
    assert [listed("user", video, text("x"))] == done


@pytest.mark.parametrize(
    "role, part, expected",
    [
        ("assistant", text("x", "input_text"), text("x", "output_text")),
        ("assistant", text("x"), text("x", "output_text")),
        ("user", {**text("x", "output_text"), "annotations": []}, text("x", "input_text")),
        ("system", text("x"), text("x", "input_text")),
        (
            "user",
            {"type": "image_url", "image_url": {"url": "u", "detail": "low"}},
            {"type": "input_image", "image_url": "u", "detail": "low"},
        ),
        (
            "user",
            {"type": "file", "file": {"file_id": "file-1"}},
            {"type": "input_file", "file_id": "file-1"},
        ),
        ("user", {"type": "x", "n": 1}, text('{"type": "x", "n": 1}', "input_text")),
        ("assistant", {"type": "x", "n": 1}, text('{"type": "x", "n": 1}', "output_text")),
    ],
)
def test_responses_parts(role: str, part: dict[str, Any], expected: dict[str, Any]) -> None:
    """A part is named by the role of its message."""
    report = explain([user("q"), listed(role, part)], RESPONSES)

    assert [user("q"), listed(role, expected)] == report.messages
    assert {"resp-content-part-type"} == {edit.rule for edit in report.edits}


def test_responses_content_that_is_no_list() -> None:
    """A part alone is put into a list, other data becomes its JSON."""
    one = {"role": "user", "content": text("x", "input_text")}
    other = {"role": "user", "content": {"n": 1}}

    expected = [listed("user", text("x", "input_text")), user('{"n": 1}')]
    assert expected == normalize([one, other], RESPONSES)


def test_image_of_the_assistant_in_responses() -> None:
    """It stands behind the message; a tool's output may hold images there."""
    picture = {"type": "input_image", "image_url": "u"}
    words = text("here", "output_text")

    done = normalize([user("q"), listed("assistant", words, picture)], RESPONSES)
    label = {**stood("assistant"), "type": "input_text"}
    moved = {"type": "message", **listed("user", label, picture)}
    assert [user("q"), listed("assistant", words), moved] == done


def test_foreign_role_and_foreign_parts() -> None:
    """Who speaks is settled first, then what the parts are called there."""
    done = normalize([user("q"), listed("ai", text("x", "input_text"))], RESPONSES)

    assert [user("q"), listed("assistant", text("x", "output_text"))] == done


def test_model_that_reads_only_text() -> None:
    """By option, media become marked notes, and the loss is named."""
    policy = Policy.for_target(CHAT, fit_media=TEXT_ONLY)
    history = [
        listed("user", text("see"), image()),
        calls("a"),
        result("a", [text("page"), image()]),
    ]

    report = explain(history, policy)
    assert [
        listed("user", text("see"), text(NO_IMAGE)),
        calls("a"),
        result("a", [text("page"), text(NO_IMAGE)]),
    ] == report.messages
    assert {"media over a limit"} == {edit.loss for edit in report.edits}
    assert explain(report.messages, policy).edits == ()


def test_model_that_reads_images_but_no_files() -> None:
    """What the model takes stays, and moves if it must."""
    policy = Policy.for_target(CHAT, fit_media={"modalities": ["image"]})
    file = {"type": "file", "file": {"file_id": "file-1"}}

    done = normalize([calls("a"), result("a", [file, image()])], policy)
    no_file = "[convnorm:media] Here was a file that this model does not take. [/convnorm]"
    assert [
        calls("a"),
        result("a", [text(no_file)]),
        listed("user", note("look a"), image()),
    ] == done


def test_clean_media_are_left_alone() -> None:
    """Images of users, and what a model said in parts, are no fault."""
    history = [listed("user", text("see"), image()), listed("assistant", text("ok"))]
    items = [
        listed("user", {"type": "input_image", "image_url": "u"}),
        listed("assistant", {**text("ok", "output_text"), "annotations": []}),
    ]

    assert explain(history, CHAT).edits == ()
    assert explain(items, RESPONSES).edits == ()


def test_late_image_is_not_lost_behind_what_was_sent() -> None:
    """With the last request known, a result that comes late is quoted with its image."""
    sent = normalize([user("q"), calls("a"), user("and?")], CHAT)
    context = Context(last_request=sent)

    done = normalize(
        [user("q"), calls("a"), user("and?"), result("a", [text("x"), image()])],
        CHAT,
        context=context,
    )
    assert sent == done[: len(sent)]
    assert image() == done[-1]["content"][-1]


def test_server_that_takes_one_text_gets_media_apart() -> None:
    """A reply whose content must be one string says its words, and its image follows."""
    groq = Policy.for_target(CHAT, provider="groq")
    history = [user("q"), listed("assistant", text("see"), image()), user("and?")]

    expected = [user("q"), said("see"), listed("user", stood("assistant"), image()), user("and?")]
    done = normalize(history, groq)
    assert (expected, []) == (done, check(done, groq))


@pytest.mark.parametrize("takes", [None, ["audio"]])
def test_media_and_words_of_one_message_are_both_kept(takes: list[str] | None) -> None:
    """What another pass puts into a content is not written over."""
    groq = Policy.for_target(CHAT, provider="groq", fit_media={"modalities": takes})
    spoken = listed("assistant", text("yes"), image()) | {"refusal": "but no"}

    done = normalize([{"role": "user", "content": "q"}, spoken], groq)
    words = str(done[1]["content"])
    assert (True, True) == (words.startswith("yes\n"), words.endswith("\nbut no"))
    assert check(done, groq) == []
