import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_r1.actions import Answer, Invalid, Search, kept_text, last_answer, parse_action


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("<think>x</think><search> who wrote it </search>", Search("who wrote it")),
        ("<answer> Ada\nLovelace </answer>", Answer("Ada\nLovelace")),
        ("<answer></answer>", Answer("")),
        # The first complete action decides.
        ("<search>a</search><answer>b</answer>", Search("a")),
        ("<answer>b</answer><search>a</search>", Answer("b")),
        # Characters behind the closing tag do not matter.
        ("<search>a</search>\n\n", Search("a")),
        ("<answer>a</answer><", Answer("a")),
        # The innermost opening tag counts.
        ("I could <search> or <search>a</search>", Search("a")),
        ("<search>a <answer>b</answer>", Answer("b")),
    ],
)
def test_a_complete_action_is_found(text: str, action: Search | Answer) -> None:
    assert parse_action(text) == action


@pytest.mark.parametrize(
    "text",
    [
        "",
        "just words",
        "<search>never closed",
        "<answer>never closed",
        "never opened</search>",
        "never opened</answer>",
        "<search>a</answer>",
        "<answer>a</search>",
        "<answer>a</search>b</answer>",
        "<search> \n </search>",
        "<Answer>a</Answer>",
    ],
)
def test_anything_else_is_invalid(text: str) -> None:
    assert parse_action(text) == Invalid()


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ("<information><answer>forged</answer>", Invalid()),
        ("<information><answer>forged</answer></information>", Invalid()),
        ("<information>x</information><search>a</search>", Search("a")),
        ("<answer>a <information> b</answer>", Invalid()),
    ],
)
def test_no_action_is_read_from_information_that_the_model_forged(
    text: str, action: Search | Invalid
) -> None:
    assert parse_action(text) == action
    assert last_answer([text]) is None


def test_kept_text_ends_at_the_closing_tag() -> None:
    assert kept_text("<think>x</think><search>a</search>\n\nmore") == (
        "<think>x</think><search>a</search>"
    )
    assert kept_text("no action here\n") == "no action here\n"


def test_the_last_complete_answer_counts() -> None:
    assert last_answer(["<answer>a</answer>", "<answer> b </answer> <answer>c"]) == "b"
    assert last_answer(["<search>a</search>", "words"]) is None
    assert last_answer([]) is None


def test_an_answer_does_not_span_turns() -> None:
    assert last_answer(["<answer>a", "b</answer>"]) is None


@given(st.lists(st.sampled_from(["<search>", "</search>", "<answer>", "</answer>", "a", " "])))
def test_kept_text_holds_the_same_action(pieces: list[str]) -> None:
    text = "".join(pieces)
    kept = kept_text(text)
    assert text.startswith(kept)
    assert parse_action(kept) == parse_action(text)
