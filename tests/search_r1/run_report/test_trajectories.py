from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_r1.run_report.trajectories import Piece, ShownPassage, shape, split_by_tags

HITS = [{"id": "a", "title": "Ada", "score": 0.5}, {"id": "b", "title": "Bo", "score": None}]
OBSERVATION = (
    '\n\n<information>Doc 1(Title: "Ada") Text one.\nDoc 2(Title: "Bo") Text two.</information>\n\n'
)


def test_text_is_split_by_the_tags_of_the_model() -> None:
    text = "So <think>a</think>\n<search> b </search> rest <information>x</information>"
    assert split_by_tags(text) == [
        Piece("text", "So "),
        Piece("think", "<think>a</think>"),
        Piece("search", "<search> b </search>"),
        Piece("text", " rest <information>x</information>"),
    ]


@pytest.mark.parametrize("text", ["<think>and on", "<think>a <search>b</search>"])
def test_a_block_that_is_never_closed_goes_to_the_end(text: str) -> None:
    assert split_by_tags(text) == [Piece("think", text)]


@given(st.lists(st.sampled_from(["<think>", "</think>", "<answer>", "</answer>", "a", " "])))
def test_no_word_is_lost(parts: list[str]) -> None:
    text = "".join(parts)
    shown = "".join(piece.text for piece in split_by_tags(text))
    assert shown.replace(" ", "") == text.replace(" ", "")


def test_each_passage_has_its_line(record: Any, turn: Any) -> None:
    searched = turn(observation=OBSERVATION, passages=HITS)
    [shown] = shape(record(transcript=[searched])).turns
    assert shown.message == ""
    assert shown.passages == [
        ShownPassage("Ada", "Text one.", 0.5),
        ShownPassage("Bo", "Text two.", None),
    ]


@pytest.mark.parametrize("hits", [[], HITS[:1]])
def test_what_does_not_match_its_passages_is_shown_whole(
    record: Any, turn: Any, hits: list[Any]
) -> None:
    searched = turn(observation=OBSERVATION, passages=hits)
    [shown] = shape(record(transcript=[searched])).turns
    assert shown.passages == []
    assert shown.message == OBSERVATION.strip()
