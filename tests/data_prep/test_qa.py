"""`search-r1 prepare qa` on small made-up sets, as a folder and as the hub would give them."""

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer import Typer
from typer.testing import CliRunner

from data_prep import qa_command
from data_prep.parquet import SCHEMA
from data_prep.qa_sets import EVALUATION, TRAINING, QaSplit, evaluation_sets

SIZES = {"nq": 8, "triviaqa": 9, "popqa": 7, "hotpotqa": 6, "2wikimultihopqa": 6, "musique": 5}
SIZES["bamboogle"] = 2


def rows_of(split: str, count: int) -> list[dict[str, Any]]:
    extra = {"metadata": {"context": ["long"] * 9}}
    return [
        {"id": f"{split}_{n}", "question": "who", "golden_answers": ["A"], **extra}
        for n in range(count)
    ]


def write(folder: Path, split: QaSplit, count: int) -> Path:
    path = folder / split.name / f"{split.split}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows_of(split.split, count)))
    return path


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "flashrag"
    for split in EVALUATION:
        write(folder, split, SIZES[split.name])
    for split in TRAINING:
        write(folder, split, 10)
    return folder


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "out"


def run(*arguments: object) -> tuple[int, str]:
    app = Typer()
    app.command()(qa_command.qa_command)
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.output


def ids(output: Path, name: str) -> list[str]:
    return [row["id"] for row in pq.read_table(output / f"{name}.parquet").to_pylist()]


def manifest(output: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((output / "manifest.json").read_text())
    return found


def test_the_pinned_sets_are_those_of_the_paper() -> None:
    assert sum(split.rows for split in EVALUATION) == 51_713
    assert sum(split.rows for split in TRAINING) == 169_615
    assert [split.name for split in evaluation_sets(["bamboogle", "nq"])] == ["nq", "bamboogle"]


def test_every_set_becomes_a_parquet_file_in_its_order(source: Path, output: Path) -> None:
    code, text = run("--source", source, "--output", output, "--any-count")
    assert code == 0, text
    assert "note: nq test: 8 rows here, 3,610 published" in text
    assert {path.stem for path in output.glob("*.parquet")} == set(SIZES)
    assert ids(output, "nq") == [f"nq/test_{n}" for n in range(8)]
    row = pq.read_table(output / "musique.parquet").to_pylist()[1]
    assert (row["data_source"], row["extra_info"]["split"]) == ("musique", "dev")
    assert pq.read_schema(output / "popqa.parquet").equals(SCHEMA)


def test_training_data_is_merged_and_shuffled(source: Path, output: Path) -> None:
    arguments = ("--source", source, "--output", output, "--any-count", "--train")
    assert run(*arguments, "--seed", 1)[0] == 0
    first = ids(output, "train")
    names = [f"{name}/train_{n}" for name in ("nq", "hotpotqa") for n in range(10)]
    assert first != sorted(first)
    assert sorted(first) == sorted(names)
    assert run(*arguments, "--seed", 2)[0] == 0
    assert ids(output, "train") != first


def test_the_manifest_says_what_went_in(source: Path, output: Path) -> None:
    arguments = ("--output", output, "--any-count", "--train", "--set", "nq", "--sample", 3)
    assert run("--source", source, *arguments)[0] == 0
    found = manifest(output)
    assert (found["source"], found["sample"], found["seed"]) == (str(source), 3, 42)
    assert set(found["files"]) == {"nq.parquet", "train.parquet"}
    assert found["files"]["nq.parquet"]["rows"] == 3
    (origin,) = found["files"]["nq.parquet"]["from"]
    assert (origin["split"], origin["rows"], origin["published_rows"]) == ("test", 8, 3_610)
    origins = found["files"]["train.parquet"]["from"]
    assert [origin["set"] for origin in origins] == ["nq", "hotpotqa"]


def test_a_checksum_changes_with_the_rows_and_not_with_their_file(
    source: Path, output: Path
) -> None:
    def checksum() -> str:
        arguments = ("--output", output, "--any-count", "--set", "nq")
        assert run("--source", source, *arguments)[0] == 0
        sha256: str = manifest(output)["files"]["nq.parquet"]["from"][0]["sha256"]
        return sha256

    plain = source / "nq" / "test.jsonl"
    before = checksum()
    plain.with_suffix(".jsonl.gz").write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    assert checksum() == before
    plain.write_text(json.dumps(rows_of("test", 1)[0] | {"golden_answers": ["B"]}))
    assert checksum() != before


def test_other_row_counts_are_an_error_that_writes_nothing(source: Path, output: Path) -> None:
    code, text = run("--source", source, "--output", output, "--set", "nq", "--set", "bamboogle")
    assert code == 2
    last = text.splitlines()[-1]
    assert "nq test: 8 rows here, 3,610 published; bamboogle test: 2 rows here, 125" in last
    assert "--any-count" in last
    assert not output.exists()


def test_the_published_row_count_needs_no_permission(source: Path, output: Path) -> None:
    write(source, QaSplit("bamboogle", "test", 125), 125)
    code, text = run("--source", source, "--output", output, "--set", "bamboogle")
    assert (code, "note" in text) == (0, False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--set", "squad"), "error: set: 'squad' is none of nq, triviaqa"),
        (("--source", "/nowhere"), "error: source: /nowhere is not a folder"),
        (("--sample", 6), "error: sample: 6 is out of range; 7 sets of 43 rows together"),
        (("--sample", 44), "error: sample: 44 is out of range"),
    ],
)
def test_a_bad_setting_is_refused_in_one_line(
    source: Path, output: Path, arguments: tuple[object, ...], message: str
) -> None:
    code, text = run("--source", source, "--output", output, "--any-count", *arguments)
    assert code == 2
    assert text.splitlines()[-1].startswith(message)
    assert not output.exists()


def test_a_missing_split_and_a_bad_row_are_named(source: Path, output: Path) -> None:
    arguments = ("--source", source, "--output", output, "--any-count")
    path = source / "nq" / "test.jsonl"
    path.write_text(path.read_text() + '{"id": "x", "question": "who"}\n')
    assert "test.jsonl:9: golden_answers: missing" in run(*arguments)[1]
    path.unlink()
    code, text = run(*arguments)
    assert code == 2
    assert f"{path}: no such file, nor with .gz" in text.splitlines()[-1]


def test_a_failed_run_leaves_the_earlier_files_whole(
    source: Path, output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_at_popqa(questions: object, path: Path, *_: object) -> int:
        if path.stem == "popqa":
            raise OSError("disk full")
        return path.write_bytes(b"new")

    arguments = ("--source", source, "--output", output, "--any-count")
    assert run(*arguments)[0] == 0
    before = {path: path.read_bytes() for path in output.iterdir()}
    monkeypatch.setattr("data_prep.qa.write_parquet", fail_at_popqa)
    assert run(*arguments)[0] == 2
    assert {path: path.read_bytes() for path in output.iterdir()} == before


@pytest.mark.parametrize("text", ["", "\n\n"])
def test_a_split_without_rows_is_named(source: Path, output: Path, text: str) -> None:
    path = source / "popqa" / "test.jsonl"
    path.write_text(text)
    code, said = run("--source", source, "--output", output, "--any-count")
    assert code == 2
    assert said.splitlines()[-1].startswith(f"error: {path}: has no rows")
    assert not output.exists()


def test_the_source_is_not_the_output(source: Path) -> None:
    code, text = run("--source", source, "--output", source / "nq" / "..", "--any-count")
    assert code == 2
    assert "is also an input, and would be replaced" in text.splitlines()[-1]
    assert not (source / "manifest.json").exists()


def test_a_duplicate_id_names_its_split(source: Path, output: Path) -> None:
    path = source / "nq" / "test.jsonl"
    path.write_text(path.read_text() * 2)
    code, text = run("--source", source, "--output", output, "--any-count")
    assert code == 2
    assert text.splitlines()[-1].startswith("error: nq test: id: 'nq/test_0' occurs twice")


@pytest.fixture
def hub(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stands in for the package datasets, which this machine cannot reach the hub with."""

    def load_dataset(path: str, name: str, split: str) -> Iterator[dict[str, Any]]:
        assert path == "RUC-NLPIR/FlashRAG_datasets"
        lines = (source / name / f"{split}.jsonl").read_text().splitlines()
        return map(json.loads, lines)

    monkeypatch.setitem(sys.modules, "datasets", SimpleNamespace(load_dataset=load_dataset))


@pytest.mark.usefixtures("hub")
def test_the_hub_gives_the_same_as_a_folder(source: Path, tmp_path: Path) -> None:
    outputs = tmp_path / "a", tmp_path / "b"
    for output, name in zip(outputs, (source, "hub"), strict=True):
        assert run("--source", name, "--output", output, "--any-count", "--train")[0] == 0
    assert manifest(outputs[0])["files"] == manifest(outputs[1])["files"]
    for name in (*SIZES, "train"):
        files = [(output / f"{name}.parquet").read_bytes() for output in outputs]
        assert files[0] == files[1]


@pytest.mark.usefixtures("hub")
def test_a_bad_row_of_the_hub_is_named(source: Path, output: Path) -> None:
    (source / "nq" / "test.jsonl").write_text('{"id": "x", "question": "who?"}')
    code, text = run("--output", output, "--set", "nq")
    assert code == 2
    assert "FlashRAG_datasets, nq test, row 0: golden_answers: missing" in text


def test_without_datasets_the_hub_says_what_to_install(
    output: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    code, text = run("--output", output)
    assert code == 2
    assert "pip install 'search-r1[retriever]'" in text.splitlines()[-1]
