"""Sets as `search-r1 prepare qa` writes them, read by an evaluation."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from data_prep.parquet import write_parquet
from data_prep.qa import QaFile, write_files
from data_prep.questions import Question
from search_r1.evaluation.question_sets import read_files

Questions = Callable[..., list[Question]]


@pytest.fixture
def folder(tmp_path: Path, questions_of: Questions) -> Path:
    """Three files: popqa and nq, in this order, and training data."""
    splits = {"popqa": "test", "nq": "test", "train": "train"}
    files = [
        QaFile(name, split, tuple(questions_of(3, name)), ()) for name, split in splits.items()
    ]
    write_files(files, tmp_path / "qa", {"seed": 1})
    return tmp_path / "qa"


def test_a_folder_stands_for_its_evaluation_sets(folder: Path) -> None:
    read = read_files([folder])
    assert [path.name for path in read] == ["popqa.parquet", "nq.parquet"]
    assert [len(questions) for questions in read.values()] == [3, 3]
    assert list(read_files([folder / "nq.parquet"])) == [folder / "nq.parquet"]


def test_a_set_of_the_folder_is_not_given_twice(folder: Path) -> None:
    with pytest.raises(ValueError, match=r"nq\.parquet is repeated"):
        read_files([folder, folder / "nq.parquet"])


@pytest.mark.parametrize("how", [lambda path: path, lambda path: path.parent])
def test_another_number_of_rows_is_an_error_with_both(
    folder: Path, how: Callable[[Path], Path], questions_of: Questions
) -> None:
    write_parquet(questions_of(2, "nq"), folder / "nq.parquet", "test")
    message = r"nq\.parquet: 2 rows here, 3 in .*manifest\.json; make the folder anew"
    with pytest.raises(ValueError, match=message):
        read_files([how(folder / "nq.parquet")])


def test_another_split_is_an_error_with_both(folder: Path, questions_of: Questions) -> None:
    write_parquet(questions_of(3, "nq"), folder / "nq.parquet", "dev")
    with pytest.raises(ValueError, match=r"nq\.parquet: split dev here, test in .*manifest"):
        read_files([folder / "nq.parquet"])


def test_a_file_of_the_folder_that_is_gone_is_named(folder: Path) -> None:
    (folder / "nq.parquet").unlink()
    with pytest.raises((OSError, ValueError), match=r"nq\.parquet"):
        read_files([folder])


@pytest.mark.parametrize("manifest", [None, "no", "[]", '{"files": []}', '{"files": {"a": 1}}'])
def test_a_folder_of_another_kind_is_refused_and_its_files_are_not(
    tmp_path: Path,
    manifest: str | None,
    questions_of: Questions,
    write_set: Callable[..., Path],
) -> None:
    data = write_set(tmp_path / "nq" / "test.jsonl", questions_of(2))
    if manifest is not None:
        (tmp_path / "nq" / "manifest.json").write_text(manifest)
    assert len(read_files([data])[data]) == 2
    with pytest.raises(ValueError, match=r"data: the folder .*nq holds no manifest\.json"):
        read_files([tmp_path / "nq"])


def test_a_folder_with_training_data_only_is_refused(folder: Path) -> None:
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["files"] = {"train.parquet": manifest["files"]["train.parquet"]}
    path.write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match="names evaluation sets"):
        read_files([folder])
