import json
from pathlib import Path
from typing import Any

import pytest

from search_r1.summary import read_trajectories, table_of, validation_files

TURN = {"text": "t", "action": "search", "observation": "", "query": None, "passages": []}
COUNTS = ("hops", "turns", "searches", "failed_searches", "valid_actions", "sampled_tokens")


def row(**changes: Any) -> dict[str, Any]:
    return {
        "id": "q1",
        "question": "Who?",
        "golden_answers": ["x"],
        "answer": None,
        "stop_reason": "answered",
        "reward_parts": {"score": 1.0, "em": 1.0},
        "transcript": [TURN],
        **dict.fromkeys(COUNTS, 1),
        "inserted_tokens": 1,
        "generate_seconds": 0.5,
        "search_seconds": 0.5,
    } | changes


def write(path: Path, *rows: Any) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return path


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": 1}, "id must be text, not 1"),
        ({"golden_answers": "x"}, 'golden_answers must be a list of texts, not "x"'),
        ({"golden_answers": [1]}, "golden_answers must be a list of texts, not a list"),
        ({"answer": 1}, "answer must be text or null, not 1"),
        ({"reward_parts": "em"}, 'reward_parts must be an object, not "em"'),
        ({"reward_parts": {"score": 1.0}}, r"no field reward_parts\.em"),
        ({"reward_parts": {"em": 1.0}}, r"no field reward_parts\.score"),
        ({"reward_parts": {"score": 1, "em": "x"}}, r'reward_parts\.em must be a number, not "x"'),
        ({"reward_parts": {"score": float("nan"), "em": 1}}, r"reward_parts\.score must be a num"),
        ({"reward_parts": {"score": 1, "em": 1, "f1": None}}, r"reward_parts\.f1 must be a number"),
        ({"transcript": {}}, "transcript must be a list of objects, not an object"),
        ({"transcript": [{}]}, r"no field transcript\[0\]\.text"),
        (
            {"transcript": [TURN, TURN | {"query": 1}]},
            r"transcript\[1\]\.query must be text or null",
        ),
        (
            {"transcript": [TURN | {"passages": [{}]}]},
            r"no field transcript\[0\]\.passages\[0\]\.id",
        ),
        ({"hops": "two"}, 'hops must be a whole number, not "two"'),
        ({"hops": 1.5}, "hops must be a whole number"),
        ({"turns": True}, "turns must be a whole number, not true"),
        ({"sampled_tokens": 10**400}, "sampled_tokens must be a whole number, not 1000"),
    ],
)
def test_a_row_of_the_wrong_shape_is_named(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    path = write(tmp_path / "1.jsonl", row(), row(**changes))
    with pytest.raises(ValueError, match=rf"1\.jsonl:2: {message}.*; mend it"):
        read_trajectories(path)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"[" * 100_000, "not JSON"),
        (b"\xff\xfe", "not UTF-8"),
        (b'{"id": "\xe4"}', "not UTF-8"),
        (b"\n", "not JSON"),
        (b"[]", "not a JSON object"),
        (b'{"id": 1}', "id must be text"),
        (b"{}", "no field id"),
    ],
)
def test_a_line_that_is_no_row_is_named(tmp_path: Path, line: bytes, message: str) -> None:
    (tmp_path / "1.jsonl").write_bytes(json.dumps(row()).encode() + b"\n" + line)
    with pytest.raises(ValueError, match=rf"1\.jsonl:2: {message}.*; mend it"):
        read_trajectories(tmp_path / "1.jsonl")


def test_all_rows_have_the_parts_of_the_first(tmp_path: Path) -> None:
    more = row(reward_parts={"score": 1, "em": 1, "f1": 1})
    assert len(read_trajectories(write(tmp_path / "1.jsonl", row(), more))) == 2
    with pytest.raises(ValueError, match=r"1\.jsonl:2: no field reward_parts\.f1"):
        read_trajectories(write(tmp_path / "1.jsonl", more, row()))


def test_a_file_without_rows_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"1\.jsonl holds no trajectories"):
        read_trajectories(write(tmp_path / "1.jsonl"))


@pytest.mark.parametrize("field", [*COUNTS, "inserted_tokens", "generate_seconds"])
def test_a_summary_needs_the_counts(tmp_path: Path, field: str) -> None:
    short = {key: value for key, value in row().items() if key != field}
    path = write(tmp_path / "1.jsonl", short)
    assert read_trajectories(path) == [short]
    with pytest.raises(ValueError, match=rf"1\.jsonl:1: no field {field}"):
        table_of([path])


def test_validations_are_in_the_order_of_their_steps(tmp_path: Path) -> None:
    files = [write(tmp_path / "validation" / f"{step}.jsonl", row()) for step in (0, 9, 10)]
    assert validation_files(tmp_path) == files
    assert table_of(files).title == "held-out questions: 1"


@pytest.mark.parametrize("name", ["best", "-1", "1_0", "\u0661", "1.5"])
def test_a_validation_without_a_step_is_named(tmp_path: Path, name: str) -> None:
    write(tmp_path / "validation" / f"{name}.jsonl", row())
    with pytest.raises(ValueError, match=rf"{name}\.jsonl: the name is no step; call it STEP"):
        validation_files(tmp_path)


def test_a_run_without_validations_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="has the run validated"):
        validation_files(tmp_path)
