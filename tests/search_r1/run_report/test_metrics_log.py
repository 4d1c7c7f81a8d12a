import json
from pathlib import Path

import pytest

from search_r1.run_report.metrics_log import MetricsLog, last_step, read_metrics


def write(run: Path, name: str, *rows: tuple[int, dict[str, object]], tail: str = "") -> Path:
    path = run / "metrics" / f"{name}.jsonl"
    path.parent.mkdir(exist_ok=True)
    lines = [json.dumps({"step": step, "data": data}) + "\n" for step, data in rows]
    path.write_text("".join(lines) + tail)
    return path


def test_numbers_are_kept_and_nothing_else(tmp_path: Path) -> None:
    data = {"a": 1, "b": 0.5, "c": "text", "d": None, "e": float("nan"), "f": float("inf")}
    write(tmp_path, "1", (1, data))
    assert read_metrics(tmp_path) == MetricsLog({1: {"a": 1.0, "b": 0.5}})


def test_steps_come_in_their_order_and_lines_of_one_step_add_up(tmp_path: Path) -> None:
    write(tmp_path, "1", (2, {"a": 2}), (1, {"a": 1}), (2, {"b": 3}))
    log = read_metrics(tmp_path)
    assert list(log.steps.items()) == [(1, {"a": 1.0}), (2, {"a": 2.0, "b": 3.0})]


def test_a_resumed_run_goes_on_from_its_step(tmp_path: Path) -> None:
    write(tmp_path, "20260101", *((step, {"a": step}) for step in range(1, 6)))
    # It first validates the step that it resumes from.
    write(tmp_path, "20260102", (3, {"val/b": 7}), (4, {"a": 40}))
    steps = read_metrics(tmp_path).steps
    assert steps == {1: {"a": 1.0}, 2: {"a": 2.0}, 3: {"a": 3.0, "val/b": 7.0}, 4: {"a": 40.0}}


def test_a_start_that_logged_nothing_takes_nothing_away(tmp_path: Path) -> None:
    write(tmp_path, "1", (1, {"a": 1}))
    write(tmp_path, "2")
    assert read_metrics(tmp_path).steps == {1: {"a": 1.0}}


def test_half_a_last_line_is_left_out_and_said(tmp_path: Path) -> None:
    torn = write(tmp_path, "1", (1, {"a": 1}), tail='{"step": 2, "da')
    assert read_metrics(tmp_path) == MetricsLog({1: {"a": 1.0}}, (torn,))


def test_half_a_character_at_the_end_is_no_error(tmp_path: Path) -> None:
    path = write(tmp_path, "1", (1, {"a": 1}))
    path.write_bytes(path.read_bytes() + '{"é'.encode()[:-1])
    assert read_metrics(tmp_path).torn == (path,)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"step": 2, "da', r"1\.jsonl:2: not JSON.*take out this line"),
        ("", r"1\.jsonl:2: not JSON"),
        ("[1]", r"1\.jsonl:2: field step"),
        ('{"step": 2.5, "data": {}}', r"1\.jsonl:2: field step"),
        ('{"step": 2}', r"1\.jsonl:2: field data"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    write(tmp_path, "1", (1, {"a": 1}), tail=f"{line}\n")
    with pytest.raises(ValueError, match=message):
        read_metrics(tmp_path)


def test_a_run_without_metrics_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="metrics holds no step"):
        read_metrics(tmp_path)
    write(tmp_path, "1", tail='{"st')
    with pytest.raises(FileNotFoundError, match="metrics holds no step"):
        read_metrics(tmp_path)


def test_a_curve_takes_the_first_name_that_is_known() -> None:
    log = MetricsLog({1: {"a": 1.0}, 2: {"b": 2.0}, 3: {"a": 3.0, "b": 9.0}, 4: {"c": 4.0}})
    assert log.curve(["a", "b"]) == [(1, 1.0), (2, 2.0), (3, 3.0)]
    assert log.curve(["z"]) == []


def test_the_last_step_is_that_of_the_newest_start(tmp_path: Path) -> None:
    assert last_step(tmp_path) == 0
    write(tmp_path, "20260101", (8, {}), (9, {}))
    assert last_step(tmp_path) == 9
    write(tmp_path, "20260102", (4, {}), tail='{"step": 5')
    assert last_step(tmp_path) == 4
    write(tmp_path, "20260103")
    assert last_step(tmp_path) == 0
