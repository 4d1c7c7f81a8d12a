from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_prep.parquet import write_parquet
from data_prep.questions import Question
from search_r1.evaluation.question_sets import join, read_files, sample, set_name

Questions = Callable[..., list[Question]]
Write = Callable[..., Path]


def test_parquet_and_json_lines_are_the_same_questions(
    tmp_path: Path, questions_of: Questions, write_set: Write
) -> None:
    questions = questions_of(7)
    lines = write_set(tmp_path / "nq" / "test.jsonl", questions)
    table = tmp_path / "t.parquet"
    write_parquet(questions, table, "test")
    assert [q.id for q in join([read_files([table])[table]])] == [q.id for q in questions]
    read = read_files([lines, table])
    for one, other in zip(read[lines], read[table], strict=True):
        assert (one.id, one.question) == (other.id, other.question)
        assert (one.golden_answers, one.data_source) == (other.golden_answers, "nq")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("nq/test.jsonl", "nq"),
        ("hotpotqa/dev.jsonl.gz", "hotpotqa"),
        ("sets/popqa.jsonl", "popqa"),
        ("sets/musique.jsonl.gz", "musique"),
    ],
)
def test_a_set_is_called_as_its_folder_or_file(path: str, name: str) -> None:
    assert set_name(Path(path)) == name


def test_ids_of_two_sets_do_not_meet(tmp_path: Path, write_set: Write) -> None:
    same = [Question("test_0", "Who", ("x",), "")]
    paths = [write_set(tmp_path / name / "test.jsonl", same) for name in ("nq", "popqa")]
    assert [q.id for q in join(read_files(paths).values())] == ["nq/test_0", "popqa/test_0"]


@pytest.mark.parametrize("text", ["", "\n", "{}\n", '{"id": "1", "question": "?"}\n'])
def test_a_file_without_proper_questions_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"bad\.jsonl"):
        read_files([path])


def test_a_repeated_file_is_named(
    tmp_path: Path, questions_of: Questions, write_set: Write
) -> None:
    path = write_set(tmp_path / "nq" / "test.jsonl", questions_of(2))
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)
    for again in (path, link, path.parent / ".." / "nq" / "test.jsonl"):
        with pytest.raises(
            ValueError, match=r"data: the file .*test\.jsonl is repeated; give each"
        ):
            read_files([path, again])


def test_files_of_other_kinds_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").touch()
    with pytest.raises(ValueError, match=r"a\.csv: neither \.parquet"):
        read_files([tmp_path / "a.csv"])
    (tmp_path / "a.parquet").write_text("no")
    with pytest.raises(ValueError, match=r"a\.parquet.*prepare questions"):
        read_files([tmp_path / "a.parquet"])


def test_a_parquet_row_without_a_gold_answer_is_named(tmp_path: Path) -> None:
    row = {
        "data_source": "nq",
        "reward_model": {"ground_truth": {"target": ["x"]}},
        "extra_info": {"id": "1", "question": "Who?"},
    }
    bad = row | {"reward_model": {"ground_truth": {"target": []}}}
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist([row, bad]), path)
    with pytest.raises(ValueError, match=r"row 2: .*ground_truth.target"):
        read_files([path])
    pq.write_table(pa.table({"data_source": ["nq"]}), path)
    missing = r"a\.parquet has no column reward_model, extra_info; .*prepare questions"
    with pytest.raises(ValueError, match=missing):
        read_files([path])


@pytest.mark.parametrize(
    ("extra", "target", "message"),
    [
        ({"id": "1", "question": 1}, ["x"], r"extra_info\.question must be text"),
        ({"id": "1", "question": "Who?"}, "x", r"ground_truth\.target must be a list of texts"),
        (
            {"id": "1", "question": "Who?", "hops": "two"},
            ["x"],
            r"extra_info\.hops must be a whole",
        ),
        ({"id": "1"}, ["x"], "no field 'question'"),
    ],
)
def test_a_parquet_row_of_the_wrong_shape_is_named(
    tmp_path: Path, extra: dict[str, Any], target: Any, message: str
) -> None:
    model = {"ground_truth": {"target": target}}
    row = {"data_source": "nq", "reward_model": model, "extra_info": extra}
    pq.write_table(pa.Table.from_pylist([row]), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=rf"a\.parquet, row 1: .*{message}.*prepare questions"):
        read_files([tmp_path / "a.parquet"])


@given(
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=5),
    share=st.floats(0, 1),
    seed=st.integers(0, 3),
)
def test_a_sample_has_its_size_and_equal_shares(
    questions_of: Questions, sizes: list[int], share: float, seed: int
) -> None:
    questions = [q for i, size in enumerate(sizes) for q in questions_of(size, f"s{i}")]
    count = len(sizes) + int(share * (len(questions) - len(sizes)))
    chosen = sample(questions, count, seed)
    assert len(chosen) == count
    taken = Counter(q.data_source for q in chosen)
    whole = {f"s{i}" for i, size in enumerate(sizes) if taken[f"s{i}"] == size}
    shares = [taken[name] for name in taken if name not in whole]
    assert not shares or max(shares) - min(shares) <= 1
    assert all(taken[name] <= min(shares) for name in whole if shares and taken[name] < min(shares))


def test_a_sample_depends_on_seed_and_ids_alone(questions_of: Questions) -> None:
    questions = questions_of(50, "a") + questions_of(50, "b")
    chosen = {q.id for q in sample(questions, 20, 1)}
    assert {q.id for q in sample(questions[::-1], 20, 1)} == chosen
    assert {q.id for q in sample(questions, 20, 2)} != chosen
    ids = [q.id for q in sample(questions, 20, 1)]
    assert ids == [q.id for q in questions if q.id in chosen]


@pytest.mark.parametrize("count", [0, 1, 11])
def test_a_sample_that_cannot_be_drawn(questions_of: Questions, count: int) -> None:
    with pytest.raises(ValueError, match=f"sample: {count} is out of range; 2 sets of 10 rows"):
        sample(questions_of(5, "a") + questions_of(5, "b"), count, 0)
