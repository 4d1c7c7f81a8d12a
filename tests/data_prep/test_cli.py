import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from data_prep.cli import app

RUNNER = CliRunner()


def run(*arguments: object) -> tuple[int, str]:
    result = RUNNER.invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.output


def test_world_writes_corpus_questions_and_parquet(tmp_path: Path) -> None:
    sizes = ("--articles", 150, "--train-questions", 20, "--test-questions", 10)
    code, output = run("world", "--output", tmp_path, "--seed", 4, "--hops", 2, *sizes)
    assert code == 0, output
    assert len((tmp_path / "corpus.jsonl").read_text().splitlines()) == 150
    train = [json.loads(line) for line in (tmp_path / "train.jsonl").read_text().splitlines()]
    rows = pq.read_table(tmp_path / "train.parquet").to_pylist()
    assert [row["id"] for row in rows] == [row["id"] for row in train]
    assert {row["extra_info"]["hops"] for row in rows} == {2}
    assert {row["extra_info"]["split"] for row in rows} == {"train"}
    assert pq.read_table(tmp_path / "test.parquet").num_rows == 10


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--articles", 99), "error: articles: 99 is out of range"),
        (("--hops", 4), "error: hops: 4 is out of range"),
        (("--hops", 1, "--hops", 1), "error: hops: (1, 1) must list"),
        (("--distractors", 0.7), "error: distractors: 0.7 is out of range"),
        (("--articles", 100), "error: test_questions: a world of 100 articles has too few"),
    ],
)
def test_world_refuses_a_bad_setting_in_one_line(
    tmp_path: Path, arguments: tuple[object, ...], message: str
) -> None:
    code, output = run("world", "--output", tmp_path / "world", *arguments)
    assert code == 2
    assert output.splitlines()[-1].startswith(message)
    assert "Traceback" not in output
    assert not list(tmp_path.glob("world/*"))


def test_a_world_that_fails_leaves_the_earlier_one_whole(tmp_path: Path) -> None:
    sizes = ("--articles", 150, "--train-questions", 20, "--test-questions", 10)
    assert run("world", "--output", tmp_path, *sizes)[0] == 0
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    assert run("world", "--output", tmp_path, "--articles", 100)[0] == 2
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.fixture
def sets(tmp_path: Path) -> list[Path]:
    paths = []
    for name in ("one", "two"):
        path = tmp_path / f"{name}.jsonl"
        rows = [{"id": str(i), "question": "who", "golden_answers": ["A"]} for i in range(8)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        paths.append(path)
    return paths


def test_questions_merges_shuffles_and_limits(tmp_path: Path, sets: list[Path]) -> None:
    output = tmp_path / "out" / "train.parquet"
    names = ("--data-source", "nq", "--data-source", "hotpotqa")
    code, text = run("questions", *sets, "--output", output, *names, "--seed", 1, "--limit", 10)
    assert code == 0, text
    rows = pq.read_table(output).to_pylist()
    assert len({row["id"] for row in rows}) == len(rows) == 10
    assert {row["data_source"] for row in rows} == {"nq", "hotpotqa"}
    assert {row["id"].split("/")[0] for row in rows} == {"nq", "hotpotqa"}


def test_questions_keeps_the_order_without_a_seed(tmp_path: Path, sets: list[Path]) -> None:
    output = tmp_path / "dev.parquet"
    arguments = ("--output", output, "--data-source", "nq", "--split", "dev")
    assert run("questions", sets[0], *arguments)[0] == 0
    rows = pq.read_table(output).to_pylist()
    assert [row["id"] for row in rows] == [f"nq/{i}" for i in range(8)]
    assert {row["extra_info"]["split"] for row in rows} == {"dev"}


def test_questions_refuses_bad_input_in_one_line(tmp_path: Path, sets: list[Path]) -> None:
    output = ("--output", tmp_path / "out.parquet")
    name = ("--data-source", "nq")
    (tmp_path / "empty.jsonl").write_text("\n")
    cases = [
        ((sets[0],), "one.jsonl:1: data_source: missing"),
        ((*sets, *name), "two.jsonl: id: 'nq/0' occurs twice"),
        ((sets[0], sets[0], *name), "one.jsonl is given twice; give each file once"),
        ((tmp_path / "empty.jsonl", *name), "empty.jsonl: has no rows"),
        ((*sets, sets[0], *name, *name), "data-source: given 2 times for 3 inputs"),
        ((tmp_path / "none.jsonl", *name), "none.jsonl"),
    ]
    for arguments, message in cases:
        code, text = run("questions", *arguments, *output)
        assert code == 2
        assert message in text.splitlines()[-1]
        assert not output[1].exists()


def test_questions_never_replaces_an_input(tmp_path: Path, sets: list[Path]) -> None:
    link = tmp_path / "link.parquet"
    link.symlink_to(sets[0])
    before = sets[0].read_bytes()
    for output, message in [
        (sets[0], "one.jsonl must end in .parquet"),
        (link, "link.parquet is also an input"),
        (tmp_path / "out", "out must end in .parquet"),
    ]:
        code, text = run("questions", *sets, "--output", output, "--data-source", "nq")
        assert code == 2
        assert message in text.splitlines()[-1]
        assert sets[0].read_bytes() == before
    assert link.is_symlink()
