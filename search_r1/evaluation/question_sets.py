"""The questions to answer: parquet of `search-r1 prepare questions`, or FlashRAG JSON lines."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from data_prep.qa_sample import stratified
from data_prep.questions import Question, merge, read_questions
from search_r1.evaluation.prepared_sets import check_pins, expand_folders

_SPLITS = {"train", "dev", "test", "validation", "val"}
_PREPARE = "make the file with `search-r1 prepare questions`"
_COLUMNS = ["data_source", "reward_model", "extra_info"]


def read_files(paths: Sequence[Path]) -> dict[Path, list[Question]]:
    """The questions of each file, in its order.

    Args:
        paths: Files, and folders of `search-r1 prepare qa`, which stand for their evaluation sets.

    Raises:
        OSError: a file cannot be read.
        ValueError: a row is wrong, or a file is empty, of another kind, given twice or not as its
            folder's manifest says; the message says where.
    """
    paths = expand_folders(paths)
    _check_once(paths)
    files = {path: list(_read(path)) for path in paths}
    for path, questions in files.items():
        if not questions:
            raise ValueError(f"{path}: no questions; give a file that has some")
        check_pins(path, questions)
    return files


def join(files: Iterable[Iterable[Question]]) -> list[Question]:
    """All questions in the order given; each id begins with its set, `nq/test_12`.

    Raises:
        ValueError: an id occurs twice in a set.
    """
    return merge(files)


def sample(questions: Sequence[Question], count: int, seed: int) -> list[Question]:
    """`count` questions, from each set as many, in the order given.

    A set that has fewer gives all of them, and the others share the rest: the headline is the mean
    over sets, and no set may be left to chance. Which ones depends on the seed and the ids alone.

    Raises:
        ValueError: there are fewer questions, or more sets, than `count`.
    """
    sets: dict[str, list[Question]] = defaultdict(list)
    for question in questions:
        sets[question.data_source].append(question)
    drawn = stratified([sets[name] for name in sorted(sets)], count, seed)
    chosen = {question.id for some in drawn for question in some}
    return [question for question in questions if question.id in chosen]


def set_name(path: Path) -> str:
    """The name of a set whose rows do not say it: `nq` for nq/test.jsonl and for nq.jsonl.gz."""
    stem = path.name.partition(".")[0]
    return path.resolve().parent.name if stem in _SPLITS else stem


def _check_once(paths: Sequence[Path]) -> None:
    count = Counter(path.resolve() for path in paths)
    for path in paths:
        if count[path.resolve()] > 1:
            raise ValueError(f"data: the file {path} is repeated; give each file once")


def _read(path: Path) -> Iterator[Question]:
    if path.suffix == ".parquet":
        return _read_parquet(path)
    if path.name.endswith((".jsonl", ".jsonl.gz")):
        return read_questions(path, set_name(path))
    raise ValueError(f"{path}: neither .parquet nor .jsonl nor .jsonl.gz")


def _read_parquet(path: Path) -> Iterator[Question]:
    for number, row in enumerate(_parquet_rows(path), start=1):
        try:
            yield _question(row)
        except KeyError as error:
            raise ValueError(f"{path}, row {number}: no field {error}; {_PREPARE}") from error
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}, row {number}: {error}; {_PREPARE}") from error


def _parquet_rows(path: Path) -> list[dict[str, Any]]:
    try:
        if missing := [name for name in _COLUMNS if name not in pq.read_schema(path).names]:
            raise ValueError(f"{path} has no column {', '.join(missing)}; {_PREPARE}")
        rows: list[dict[str, Any]] = pq.read_table(path, columns=_COLUMNS).to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path} is not a parquet file: {error}; {_PREPARE}") from error
    return rows


def _question(row: Mapping[str, Any]) -> Question:
    extra, golds = row["extra_info"], row["reward_model"]["ground_truth"]["target"]
    hops = extra.get("hops") or 0
    if not isinstance(golds, list) or not golds or not all(isinstance(g, str) for g in golds):
        raise ValueError("reward_model.ground_truth.target must be a list of texts, not empty")
    if not isinstance(extra["question"], str) or not extra["question"].strip("? \t\r\n"):
        raise ValueError("extra_info.question must be text that is not empty")
    if not isinstance(hops, int):
        raise ValueError(f"extra_info.hops must be a whole number, not {hops!r}")
    return Question(
        id=str(extra["id"]),
        question=extra["question"],
        golden_answers=tuple(golds),
        data_source=str(row["data_source"]),
        metadata={"hops": hops, "split": extra.get("split")},
    )
