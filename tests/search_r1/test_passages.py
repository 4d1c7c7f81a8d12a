import pytest

from search_r1.passages import MalformedReplyError, Passage, parse_reply, read_reply

DOCUMENT = {"id": "7", "contents": '"Ada Lovelace"\nAda was a mathematician.\nShe wrote.'}
PASSAGE = ("7", "Ada Lovelace", "Ada was a mathematician.\nShe wrote.")


def test_hits_with_scores() -> None:
    reply = {"result": [[{"document": DOCUMENT, "score": 0.5}], []]}
    assert parse_reply(reply, 2) == [[Passage(*PASSAGE, 0.5)], []]


def test_documents_alone() -> None:
    assert parse_reply({"result": [[DOCUMENT]]}, 1) == [[Passage(*PASSAGE, None)]]


def test_title_and_text_come_before_contents() -> None:
    document = {"id": 7, "title": 'The "Q"', "text": "t", "contents": '"other"\nother'}
    assert parse_reply({"result": [[document]]}, 1) == [[Passage("7", 'The "Q"', "t")]]


@pytest.mark.parametrize(
    ("contents", "title", "text"),
    [
        ("Title\ntext", "Title", "text"),
        ("only text", "", "only text"),
        ("", "", ""),
        ("T\ud83d\ntext\ud83d", "T?", "text?"),
        ('""Heroes" (album)"\ntext', '"Heroes" (album)', "text"),
    ],
)
def test_contents_with_other_titles_or_none(contents: str, title: str, text: str) -> None:
    assert parse_reply({"result": [[{"contents": contents}]]}, 1) == [[Passage("", title, text)]]


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ([], "'result' is not a list"),
        ({}, "'result' is not a list"),
        ({"result": {}}, "'result' is not a list"),
        ({"result": []}, "0 lists for 1 queries"),
        ({"result": [[], []]}, "2 lists for 1 queries"),
        ({"result": [None]}, r"result\[0\] is not a list"),
        ({"result": [["text"]]}, r"result\[0\]\[0\] is not an object"),
        ({"result": [[{"document": "text"}]]}, r"result\[0\]\[0\].document is not an object"),
        ({"result": [[{"id": "1", "title": "t"}]]}, "neither 'contents' nor 'title' and 'text'"),
        ({"result": [[{"document": DOCUMENT, "score": "high"}]]}, "score is not a number: 'high'"),
        ({"result": [[{"document": DOCUMENT, "score": float("nan")}]]}, "score is not a number"),
        ({"result": [[{"document": DOCUMENT, "score": 10**400}]]}, "score is not a number"),
    ],
)
def test_a_reply_that_breaks_the_api_is_refused(reply: object, reason: str) -> None:
    with pytest.raises(MalformedReplyError, match=reason):
        parse_reply(reply, 1)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<html>", "the reply is not JSON"),
        (b"", "the reply is not JSON"),
        (b"\xff", "the reply is not JSON"),
        (b"[" * 100_000, "the reply is nested too deeply"),
        (b"[]", "'result' is not a list"),
    ],
)
def test_a_body_that_is_no_reply_is_refused(body: bytes, reason: str) -> None:
    with pytest.raises(MalformedReplyError, match=reason):
        read_reply(body, 1)
