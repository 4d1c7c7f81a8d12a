from typing import Any

import pytest

from search_r1.run_report.failures import MEANINGS, Failure, classify, key_words, queries


def test_a_right_answer_is_no_failure(record: Any) -> None:
    assert classify(record(1.0)) is None
    # Right by what the model knew, or after a muddle: still right.
    assert classify(record(1.0, searches=0, transcript=[])) is None


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("turn_budget", Failure.FORMAT),
        ("no_answer", Failure.FORMAT),
        ("empty_generation", Failure.FORMAT),
        ("search_budget", Failure.STOPPED_EARLY),
        ("token_budget", Failure.STOPPED_EARLY),
    ],
)
@pytest.mark.parametrize("hit", [0.0, 1.0])
def test_without_an_answer_the_stop_reason_decides(
    record: Any, reason: str, expected: Failure, hit: float
) -> None:
    assert classify(record(0.0, hit, answer=None, stop_reason=reason)) == expected


@pytest.mark.parametrize(
    ("hops", "searches", "hit", "expected"),
    [
        (2, 1, 0.0, Failure.STOPPED_EARLY),
        (1, 0, 0.0, Failure.STOPPED_EARLY),
        (0, 0, 0.0, Failure.STOPPED_EARLY),
        (2, 1, 1.0, Failure.MISREAD),
        (2, 2, 0.0, Failure.NOT_RETRIEVED),
        (0, 1, 0.0, Failure.NOT_RETRIEVED),
    ],
)
def test_an_answer_is_early_before_a_search_for_each_hop(
    record: Any, hops: int, searches: int, hit: float, expected: Failure
) -> None:
    assert classify(record(0.0, hit, hops=hops, searches=searches)) == expected


def test_a_gold_answer_that_was_shown_was_misread(record: Any, turn: Any) -> None:
    twice = [turn(), turn(), turn("<answer> Ann </answer>")]
    assert classify(record(0.0, 1.0, transcript=twice)) == Failure.MISREAD


def test_the_same_query_twice_whatever_its_case(record: Any, turn: Any) -> None:
    again = turn("<search> BRARBEN works! </search>")
    between = turn("<search> Brarben </search>")
    found = [turn("<search> the Brarben Works </search>"), between, again]
    assert classify(record(transcript=found)) == Failure.REPEATED_QUERY
    assert classify(record(transcript=[found[0], between])) == Failure.NOT_RETRIEVED


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Brarben", Failure.NOT_RETRIEVED),
        ("brarben works founder", Failure.NOT_RETRIEVED),
        ("who founded it", Failure.BAD_QUERY),
        ("Preskuv Industries", Failure.BAD_QUERY),
    ],
)
def test_a_query_beside_the_question(record: Any, turn: Any, query: str, expected: Failure) -> None:
    assert classify(record(transcript=[turn(f"<search> {query} </search>")])) == expected


def test_the_queries_together_are_asked(record: Any, turn: Any) -> None:
    question = "Is Ada Bell older than Cora Dunn?"
    one, other = turn("<search> Ada </search>"), turn("<search> Dunn </search>")
    assert classify(record(question=question, transcript=[one])) == Failure.BAD_QUERY
    assert classify(record(question=question, transcript=[one, other])) == Failure.NOT_RETRIEVED


def test_a_search_that_was_not_executed_asks_nothing(record: Any, turn: Any) -> None:
    refused = turn("<search> late </search>", searched=False)
    assert queries(record(transcript=[turn(), refused])) == ["the Works"]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Who founded the Brarben Works in 1912?", {"brarben", "works", "1912"}),
        ("Which film is by O'Hara?", {"hara", "o"}),
        ("who got the first nobel prize", {"first", "nobel", "prize"}),
        ("Are we so?", set()),
        ("?", set()),
    ],
)
def test_key_words(question: str, expected: set[str]) -> None:
    assert key_words(question) == expected


def test_a_question_without_key_words_has_no_bad_query(record: Any) -> None:
    assert classify(record(question="Is it so?")) == Failure.NOT_RETRIEVED


def test_every_class_is_defined_in_its_order() -> None:
    assert list(MEANINGS) == list(Failure)
