import pytest

from search_r1.prompts import (
    INVALID_ACTION_MESSAGE,
    STOP_STRINGS,
    Tag,
    build_messages,
    messages_of_row,
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


GOLDEN = (
    "Answer the question at the end. Whenever you have new information, first reason about it "
    "between <think> and </think>. If you find that you lack some knowledge, call a search engine "
    "with <search> query </search>; the top results come back between <information> and "
    "</information>. You can search as many times as you want. Once you need no more knowledge, "
    "give the final answer between <answer> and </answer>, without explanation. For example: "
    "<answer> Beijing </answer>. Question: who wrote it?"
)
GOLDEN_WITHOUT_SEARCH = (
    "Answer the question at the end. First reason about it between <think> and </think>. Then "
    "give the final answer between <answer> and </answer>, without explanation. For example: "
    "<answer> Beijing </answer>. Question: who wrote it?"
)


@pytest.mark.parametrize(("may_search", "golden"), [(True, GOLDEN), (False, GOLDEN_WITHOUT_SEARCH)])
def test_the_prompt_word_for_word(may_search: bool, golden: str) -> None:
    messages = build_messages("who wrote it", may_search=may_search)
    assert messages == [{"role": "user", "content": golden}]


def test_a_policy_that_may_not_search_is_told_of_no_search_engine() -> None:
    assert "search" not in GOLDEN_WITHOUT_SEARCH
    assert "information" not in GOLDEN_WITHOUT_SEARCH


def test_a_row_of_training_data_opens_with_its_own_prompt_unless_searches_are_off() -> None:
    row = {
        "raw_prompt": [{"role": "user", "content": "mine"}],
        "extra_info": {"question": "who wrote it"},
    }
    assert messages_of_row(row, may_search=True) == [{"role": "user", "content": "mine"}]
    [message] = messages_of_row(row, may_search=False)
    assert message["content"] == GOLDEN_WITHOUT_SEARCH


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
