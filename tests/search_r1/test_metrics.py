from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_r1.metrics import failed_search_rate, step_line, summarise, validation_line


def row(**changes: Any) -> dict[str, Any]:
    return {
        "searches": 2,
        "failed_searches": 0,
        "turns": 3,
        "valid_actions": 3,
        "sampled_tokens": 30,
        "inserted_tokens": 70,
        "generate_seconds": 1.5,
        "search_seconds": 0.5,
        "hops": 2,
        "stop_reason": "answered",
        "reward_parts": {"score": 1.0, "em": 1.0},
    } | changes


def test_means_are_per_trajectory() -> None:
    metrics = summarise([row(), row(searches=4, sampled_tokens=10, generate_seconds=0.5)])
    assert metrics["search/searches_per_question"] == 3
    assert metrics["tokens/sampled"] == 20
    assert metrics["tokens/inserted"] == 70
    assert metrics["tokens/response"] == 90
    assert metrics["time/generate_s"] == 1.0
    assert metrics["time/search_s"] == 0.5


def test_shares_are_over_all_tokens_turns_and_searches() -> None:
    long = row(turns=9, valid_actions=3, searches=8, failed_searches=5, inserted_tokens=270)
    metrics = summarise([row(), long])
    assert metrics["tokens/masked_share"] == pytest.approx(340 / 400)
    assert metrics["search/valid_action_rate"] == 0.5
    assert metrics["search/failed_search_rate"] == 0.5


def test_only_what_is_masked_counts_as_masked() -> None:
    # A row without the count was stored when all that was inserted was masked.
    metrics = summarise([row(masked_tokens=10), row()])
    assert metrics["tokens/inserted"] == 70
    assert metrics["tokens/masked"] == 40
    assert metrics["tokens/masked_share"] == pytest.approx(80 / 200)


def test_retries_are_shown_where_they_were_counted() -> None:
    rows = [row(search_retries=3), row(search_retries=0)]
    assert summarise(rows)["search/retries_per_search"] == 0.75
    assert "search/retries_per_search" not in summarise([row()])


def test_exact_match_by_hops_leaves_out_rows_that_name_none() -> None:
    wrong = {"score": 0.0, "em": 0.0}
    metrics = summarise([row(), row(reward_parts=wrong), row(hops=1), row(hops=0)])
    assert (metrics["em/1_hop"], metrics["em/2_hop"]) == (1.0, 0.5)
    assert "em/0_hop" not in metrics
    assert metrics["reward/em"] == 0.75


def test_nothing_happened() -> None:
    idle = row(searches=0, turns=0, valid_actions=0, sampled_tokens=0, inserted_tokens=0)
    assert summarise([]) == {}
    assert failed_search_rate([]) == 0.0
    assert summarise([idle])["tokens/masked_share"] == 0.0


ROWS = st.lists(
    st.builds(
        lambda sampled, inserted, searches, failed, reason: row(
            sampled_tokens=sampled,
            inserted_tokens=inserted,
            searches=searches,
            failed_searches=min(failed, searches),
            stop_reason=reason,
        ),
        *[st.integers(0, 5000)] * 4,
        st.sampled_from(["answered", "token_budget", "search_budget"]),
    ),
    min_size=1,
)


@given(ROWS)
def test_shares_are_shares(rows: list[dict[str, Any]]) -> None:
    metrics = summarise(rows)
    stops = [value for name, value in metrics.items() if name.startswith("stop/")]
    assert sum(stops) == pytest.approx(1.0)
    assert 0 <= metrics["tokens/masked_share"] <= 1
    assert 0 <= failed_search_rate(rows) <= 1
    lengths = metrics["tokens/sampled"] + metrics["tokens/inserted"]
    assert metrics["tokens/response"] == pytest.approx(lengths)


def test_a_step_in_one_line() -> None:
    times = {"timing_s/gen": 8.2, "timing_s/old_log_prob": 3.0, "timing_s/ref": 2.0}
    line = step_line(3, summarise([row()]) | times)
    assert line == (
        "search-r1 | step 3: EM 1.000, searches 2.00, valid actions 100%, "
        "tokens 30 sampled, 70 inserted; seconds: rollout 8, log-probs 5"
    )


def test_a_step_names_the_alarms_that_last() -> None:
    alarms = {"alarm/repetition": 1.0, "alarm_value/repetition": 0.41234, "alarm/non_finite": 0.0}
    assert step_line(3, summarise([row()]) | alarms).endswith("; ALARM repetition 0.412")


def test_a_validation_in_one_line() -> None:
    line = validation_line(10, 1, summarise([row()]))
    assert line.startswith("search-r1 | validation at step 10, n=1: EM 1.000")
    assert line.endswith("em/2_hop 1.000")
