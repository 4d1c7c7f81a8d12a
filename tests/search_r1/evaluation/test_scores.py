import json
from collections.abc import Mapping
from typing import Any

import pytest

from search_r1.evaluation.scores import MACRO, score
from search_r1.evaluation.tables import score_tables


def row(source: str, em: float, **changes: Any) -> dict[str, Any]:
    return {
        "id": "1",
        "data_source": source,
        "question": "Who?",
        "golden_answers": ["x"],
        "answer": "x",
        "hops": 1,
        "turns": 2,
        "searches": 1,
        "failed_searches": 0,
        "valid_actions": 1,
        "sampled_tokens": 20,
        "inserted_tokens": 30,
        "generate_seconds": 0.5,
        "search_seconds": 0.25,
        "stop_reason": "answered",
        "reward_parts": {"em": em, "f1": em, "sub_em": 1.0, "retrieval_hit": 0.5, "score": em},
        "transcript": [],
    } | changes


ROWS = [
    *(row("nq", float(i < 30)) for i in range(100)),
    *(row("popqa", float(i < 6), stop_reason="search_budget") for i in range(10)),
]


def test_sets_count_the_same_in_the_average() -> None:
    scores = score(ROWS, 0)
    assert [(one.name, one.questions) for one in scores.sets] == [("nq", 100), ("popqa", 10)]
    assert [one.estimates["em"].mean for one in scores.sets] == pytest.approx([0.3, 0.6])
    assert scores.macro.estimates["em"].mean == pytest.approx(0.45)
    assert scores.macro.questions == 110


def test_intervals_hold_the_mean_and_narrow_with_rows() -> None:
    nq, popqa = score(ROWS, 0).sets
    for one in (nq, popqa):
        found = one.estimates["em"]
        assert found.low < found.mean < found.high
    # Of a share p among n questions, about 1.96 standard errors to each side.
    assert nq.estimates["em"].high - nq.estimates["em"].low == pytest.approx(0.18, abs=0.03)
    assert popqa.estimates["em"].high - popqa.estimates["em"].low == pytest.approx(0.6, abs=0.11)
    assert nq.estimates["sub_em"].low == nq.estimates["sub_em"].high == 1.0


def test_an_interval_does_not_depend_on_other_sets() -> None:
    alone = score(ROWS[:100], 0).sets[0]
    assert alone.estimates == score(ROWS, 0).sets[0].estimates


def test_how_questions_were_answered_is_counted() -> None:
    scores = score(ROWS, 0)
    means: Mapping[str, float] = scores.macro.means
    assert means["reward/retrieval_hit"] == 0.5
    assert means["search/searches_per_question"] == 1
    assert means["search/valid_action_rate"] == 0.5
    assert (means["tokens/sampled"], means["time/generate_s"]) == (20, 0.5)
    assert (means["stop/answered"], means["stop/search_budget"]) == (0.5, 0.5)
    assert scores.sets[0].means["em/1_hop"] == 0.3
    assert "em/1_hop" not in means


def test_scores_are_json() -> None:
    stored = json.loads(json.dumps(score(ROWS, 0).to_json()))
    assert stored["sets"]["nq"]["em"].keys() == {"mean", "low", "high"}
    assert stored["macro"]["questions"] == 110
    assert stored["interval"]["level"] == 0.95


def test_tables_have_a_line_for_each_set_and_the_average() -> None:
    scores, how, stops = score_tables(score(ROWS, 0)).split("\n\n")
    assert scores.splitlines()[0] == "| set | questions | EM | F1 | sub-EM |"
    assert scores.splitlines()[2].startswith("| nq | 100 | 0.300 [0.2")
    assert scores.splitlines()[4].startswith(f"| {MACRO} | 110 | 0.450 [0.")
    assert how.splitlines()[2] == (
        "| nq | 0.500 | 1.000 | 0.000 | 0.500 | 20.0 | 30.0 | 0.500 | 0.250 |"
    )
    assert stops.splitlines()[0] == "| set | answered | search budget |"
    assert MACRO not in score_tables(score(ROWS[:100], 0))
