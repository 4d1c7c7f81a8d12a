import json
from pathlib import Path
from typing import Any

import pytest

from search_r1.evaluation.comparison import McNemar, compare, read_answers
from search_r1.evaluation.difference_table import comparison_text, write_changes


def answers(*em: float, source: str = "nq", **changes: Any) -> dict[str, dict[str, Any]]:
    return {
        f"{source}/{i}": {
            "id": f"{source}/{i}",
            "data_source": source,
            "question": f"Who is {i}?",
            "golden_answers": ["x", "y"],
            "answer": "x" if right else None,
            "reward_parts": {"em": right, "f1": right, "sub_em": 1.0},
        }
        | changes
        for i, right in enumerate(em)
    }


A = answers(1, 1, 0, 0, 0) | answers(1, 0, source="popqa")
B = answers(1, 0, 1, 1, 1) | answers(1, 0, source="popqa")


def test_the_difference_is_b_minus_a() -> None:
    found = compare(A, B)
    assert [(one.name, one.questions) for one in found.sets] == [("nq", 5), ("popqa", 2)]
    assert found.sets[0].differences["em"].mean == pytest.approx(0.4)
    assert found.sets[0].differences["sub_em"].mean == 0
    assert found.overall.differences["em"].mean == pytest.approx(0.2)
    assert found.overall.questions == 7
    assert (found.overall.test.only_a, found.overall.test.only_b) == (1, 3)


def test_equal_changes_have_no_width() -> None:
    found = compare(answers(0, 0, 0), answers(1, 1, 1)).overall.differences["em"]
    assert (found.mean, found.low, found.high) == (1, 1, 1)


@pytest.mark.parametrize(
    ("only_a", "only_b", "p"),
    [(0, 0, 1.0), (1, 3, 0.625), (0, 6, 0.03125), (6, 0, 0.03125), (5, 5, 1.0)],
)
def test_mcnemars_exact_p(only_a: int, only_b: int, p: float) -> None:
    assert McNemar.of(only_a, only_b).p == pytest.approx(p)


def test_what_changed_is_listed_with_both_answers() -> None:
    changed = compare(A, B).changed
    assert [(one["id"], one["right"]) for one in changed] == [
        ("nq/1", "a"),
        ("nq/2", "b"),
        ("nq/3", "b"),
        ("nq/4", "b"),
    ]
    assert (changed[0]["a"], changed[0]["b"]) == ("x", None)


def test_the_order_of_b_does_not_matter() -> None:
    assert compare(A, dict(reversed(B.items()))) == compare(A, B)


def test_questions_that_are_not_in_both_are_counted() -> None:
    message = r"of 5 questions in A, 3 are not in B, and of 4 in B, 2 are not in A.*'nq/2'"
    with pytest.raises(ValueError, match=message):
        compare(answers(1, 1, 1, 1, 1), answers(1, 1) | answers(0, 0, source="popqa"))


def test_other_gold_answers_are_refused() -> None:
    with pytest.raises(ValueError, match="golden_answers of 'nq/0' differ"):
        compare(answers(1), answers(1, golden_answers=["z"]))


def test_the_text_shows_every_set_and_the_first_changes(tmp_path: Path) -> None:
    found = compare(A, B)
    text = comparison_text(found, 1)
    lines = text.splitlines()
    assert lines[0] == "| set | questions | EM | F1 | sub-EM | only A right | only B right | p |"
    assert lines[2].startswith("| nq | 5 | +0.400 [")
    assert lines[4].endswith("| 1 | 3 | 0.625 |")
    assert text.count("right):") == 1
    assert "nq/1 (A right): Who is 1?\n  A: 'x', B: None; gold: x | y" in text
    assert "right):" not in comparison_text(found, 0)
    write_changes(tmp_path / "c.jsonl", found)
    written = [json.loads(line) for line in (tmp_path / "c.jsonl").read_text().splitlines()]
    assert written == list(found.changed)


def test_small_p_and_clear_differences_are_marked() -> None:
    text = comparison_text(compare(answers(*[0] * 20), answers(*[1] * 20)), 0)
    assert "+1.000 [+1.000, +1.000] *" in text
    assert "1.9e-06" in text


def test_an_unfinished_evaluation_cannot_be_compared(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="finish the evaluation"):
        read_answers(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"data_source": 1}, r"jsonl:1: data_source must be text, not 1; mend it"),
        (
            {"reward_parts": {"score": 1, "em": 1, "sub_em": 1}},
            r"jsonl:1: no field reward_parts\.f1; mend it",
        ),
        (None, "holds no trajectories"),
    ],
)
def test_what_is_no_answer_is_named(
    tmp_path: Path, changes: dict[str, Any] | None, message: str
) -> None:
    [row] = answers(1, stop_reason="answered", transcript=[]).values()
    row["reward_parts"]["score"] = 1
    path = tmp_path / "trajectories.jsonl"
    path.write_text(json.dumps(row))
    assert read_answers(tmp_path).keys() == {"nq/0"}
    path.write_text("" if changes is None else json.dumps(row | changes))
    with pytest.raises(ValueError, match=message):
        read_answers(tmp_path)
