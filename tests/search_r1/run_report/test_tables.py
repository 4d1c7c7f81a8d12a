from pathlib import Path
from typing import Any

from search_r1.run_report.runs import read_runs
from search_r1.run_report.tables import (
    alarm_table,
    failure_table,
    run_table,
    settings_table,
    validation_table,
)
from search_r1.stability.events import Event, append_events


def test_alarms_in_the_order_they_began(made_run: Any) -> None:
    run = made_run("ppo")
    first = Event(7, "equal_groups", begins=True, measured=0.95, limit=0.9, action="roll_back")
    second = Event(9, "equal_groups", begins=False, measured=0.5, limit=0.72, action="roll_back")
    append_events(run, [first, second])
    table = alarm_table(read_runs([run, made_run("grpo")], 1, 0))
    assert table.rows == [
        ("ppo", "equal_groups", "step 7", "begins: roll back", "0.950", "0.900"),
        ("ppo", "equal_groups", "step 9", "ends", "0.500", "0.720"),
    ]


def test_validations_stand_side_by_side(made_run: Any) -> None:
    runs = read_runs([made_run("ppo"), made_run("grpo", (0, 1, 2))], 1, 0)
    table = validation_table(runs)
    assert table.heads[:5] == ("run", "validation", "questions", "exact match", "1 hop")
    assert [row[:4] for row in table.rows] == [
        ("ppo", "before", "2", "0.500"),
        ("ppo", "step 2", "2", "0.500"),
        ("grpo", "before", "2", "0.500"),
        ("grpo", "step 1", "2", "0.500"),
        ("grpo", "step 2", "2", "0.500"),
    ]
    assert all(len(row) == len(table.heads) for row in table.rows)


def test_failures_of_the_first_and_the_last_validation(made_run: Any) -> None:
    table = failure_table(read_runs([made_run("ppo", (0, 1, 2)), made_run("one", (2,))], 1, 0))
    assert table.heads == ("", "ppo\nbefore", "ppo\nstep 2", "one\nstep 2")
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows["right"] == rows["not retrieved"] == ("1 (50%)",) * 3
    assert rows["format"] == ("-",) * 3


def test_a_run_that_has_only_trained(made_run: Any) -> None:
    runs = read_runs([made_run("ppo", ())], 1, 0)
    assert run_table(runs).rows == [("ppo", str(runs[0].folder), "2", "0")]
    assert validation_table(runs).rows == []
    assert settings_table(runs).rows == []


def test_settings_have_a_column_for_each_run(made_run: Any, tmp_path: Path) -> None:
    folders = [made_run("ppo"), made_run("grpo")]
    (folders[0] / "config.yaml").write_text("search:\n  top_k: 3\n")
    table = settings_table(read_runs(folders, 1, 0))
    assert table.heads == ("field", "ppo", "grpo")
    assert table.rows == [("search.top_k", "3", "-")]
