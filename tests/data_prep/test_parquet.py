from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from data_prep import parquet
from data_prep.parquet import SCHEMA, verl_row, write_parquet
from data_prep.questions import Question
from search_r1.prompts import build_messages

BARE = Question("nq/1", "who wrote it", ("A", "B"), "nq", {"type": "bridge"})
FULL = Question("fictional_1", "Where?", ("C",), "fictional", {"hops": 2, "supporting_ids": ["7"]})


def test_a_row_has_what_verl_and_the_reward_read() -> None:
    assert verl_row(BARE, 5, "train") == {
        "id": "nq/1",
        "data_source": "nq",
        "prompt": build_messages("who wrote it"),
        "ability": "search",
        "reward_model": {"style": "rule", "ground_truth": {"target": ["A", "B"]}},
        "extra_info": {
            "index": 5,
            "split": "train",
            "id": "nq/1",
            "question": "who wrote it",
            "golden_answers": ["A", "B"],
            "hops": 0,
            "supporting_ids": [],
        },
        "agent_name": "search_r1",
    }


def test_the_file_gives_the_rows_back(tmp_path: Path) -> None:
    path = tmp_path / "test.parquet"
    assert write_parquet([BARE, FULL], path, "test") == 2
    rows = [verl_row(BARE, 0, "test"), verl_row(FULL, 1, "test")]
    assert pq.read_table(path).to_pylist() == rows
    assert rows[1]["extra_info"]["hops"] == 2
    assert rows[1]["extra_info"]["supporting_ids"] == ["7"]


@pytest.mark.parametrize("questions", [[], [BARE], [FULL]])
def test_every_file_has_the_same_schema(tmp_path: Path, questions: list[Question]) -> None:
    path = tmp_path / "shard.parquet"
    write_parquet(questions, path, "train")
    assert pq.read_schema(path).equals(SCHEMA)


def test_rows_are_written_in_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "ROWS_PER_GROUP", 3)
    seen: list[int] = []
    path = tmp_path / "train.parquet"
    assert write_parquet([BARE] * 7, path, "train", seen.append) == 7
    assert seen == [3, 3, 1]
    assert pq.ParquetFile(path).num_row_groups == 3
    indexes = [row["extra_info"]["index"] for row in pq.read_table(path).to_pylist()]
    assert indexes == list(range(7))


def test_an_error_on_the_way_leaves_no_file(tmp_path: Path) -> None:
    def failing() -> Iterator[Question]:
        yield BARE
        raise ValueError("bad row")

    with pytest.raises(ValueError, match="bad row"):
        write_parquet(failing(), tmp_path / "train.parquet", "train")
    assert list(tmp_path.iterdir()) == []
