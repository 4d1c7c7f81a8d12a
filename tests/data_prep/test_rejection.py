"""What rejection sampling keeps of the trajectories of a question."""

from typing import Any

import pytest

from data_prep.rejection import Preference, Selection, Tally, select

Row = dict[str, Any]


def row(number: int, em: float, tokens: int = 5, question: str = "nq/1") -> Row:
    return {
        "id": question,
        "hops": 1,
        "input_ids": [number, number],
        "mask": [0, 1],
        "sampled_tokens": tokens,
        "reward_parts": {"em": em, "f1": 1.0},
        "answer": "x",
    }


SAMPLES = [row(1, 1.0, 9), row(2, 0.0, 1), row(3, 1.0, 4), row(4, 1.0, 9), row(5, 1.0, 2)]


def picked(selection: Selection) -> list[int]:
    return [kept["input_ids"][0] for kept in selection.pick(SAMPLES)]


def test_every_right_one_is_kept_as_in_the_paper() -> None:
    assert picked(Selection()) == [1, 3, 4, 5]


@pytest.mark.parametrize(
    ("keep", "prefer", "expected"),
    [
        (2, Preference.FIRST, [1, 3]),
        (2, Preference.SHORTEST, [5, 3]),
        (3, Preference.SHORTEST, [5, 3, 1]),
        (9, Preference.SHORTEST, [1, 3, 4, 5]),
    ],
)
def test_at_most_so_many_are_kept(keep: int, prefer: Preference, expected: list[int]) -> None:
    assert picked(Selection(keep, prefer)) == expected


def test_a_random_choice_is_that_of_its_seed() -> None:
    choices = [tuple(picked(Selection(2, Preference.RANDOM, seed))) for seed in range(20)]
    assert choices == [tuple(picked(Selection(2, Preference.RANDOM, s))) for s in range(20)]
    assert len(set(choices)) > 5
    assert all(set(choice) < {1, 3, 4, 5} for choice in choices)


def test_everything_that_goes_by_is_counted() -> None:
    tally = Tally()
    wrong = [row(6, 0.0, question="nq/2"), row(7, 0.0, question="nq/2")]
    rows = list(select([SAMPLES, wrong], Selection(keep=3), tally))
    assert rows[0] == {"id": "nq/1", "hops": 1, "input_ids": [1, 1], "mask": [0, 1]}
    assert [one["input_ids"][0] for one in rows] == [1, 3, 4]
    assert tally.to_json() == {
        "questions": 2,
        "sampled": 7,
        "right": 4,
        "kept": 3,
        "questions_without": 1,
    }


def test_nothing_right_is_an_error_with_its_counts() -> None:
    with pytest.raises(ValueError, match=r"no trajectory is right \(1 trajectories of 1 questions"):
        list(select([[row(1, 0.0)]], Selection(), Tally()))


def test_a_choice_of_none_is_refused() -> None:
    with pytest.raises(ValueError, match="keep: 0 must be at least 1"):
        Selection(keep=0)
