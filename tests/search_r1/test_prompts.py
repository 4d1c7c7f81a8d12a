import pytest

from search_r1.prompts import (
    INVALID_ACTION_MESSAGE,
    STOP_STRINGS,
    Tag,
    build_messages,
    normalise_question,
)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("who wrote it", "who wrote it?"),
        ("  who wrote it?\n", "who wrote it?"),
        ("who wrote it ??", "who wrote it?"),
        ("Name the author.", "Name the author.?"),
    ],
)
def test_the_question_is_stripped_and_ends_in_one_question_mark(
    question: str, expected: str
) -> None:
    assert normalise_question(question) == expected


@pytest.mark.parametrize("question", ["", "  ", " ? "])
def test_an_empty_question_is_refused(question: str) -> None:
    with pytest.raises(ValueError, match="question is empty"):
        build_messages(question)


def test_one_user_message_shows_every_tag_and_ends_with_the_question() -> None:
    (message,) = build_messages("who wrote it")
    assert message["role"] == "user"
    assert message["content"].endswith("Question: who wrote it?")
    for tag in Tag:
        assert tag.opening in message["content"]
        assert tag.closing in message["content"]


def test_the_prompt_has_exactly_one_example_answer_and_no_doubled_full_stop() -> None:
    content = build_messages("q")[0]["content"]
    assert content.count("<answer> Beijing </answer>") == 1
    assert ".." not in content


def test_generation_stops_at_a_closed_search_or_answer() -> None:
    assert STOP_STRINGS == ("</search>", "</answer>")


def test_the_invalid_action_message_names_both_tags() -> None:
    for tag in (Tag.SEARCH, Tag.ANSWER):
        assert tag.opening in INVALID_ACTION_MESSAGE
        assert tag.closing in INVALID_ACTION_MESSAGE


def test_unwrap_takes_back_what_wrap_does() -> None:
    wrapped = Tag.INFORMATION.wrap("x")
    assert wrapped == "<information>x</information>"
    assert Tag.INFORMATION.unwrap(f"\n\n{wrapped}\n\n") == "x"
