"""Where the question sets come from: a folder in FlashRAG's layout, or the Hugging Face hub."""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from data_prep.qa_sets import QaSplit
from data_prep.questions import Question, merge, not_empty, question_from_row, read_questions

HUB: Final = "hub"
HUB_DATASET: Final = "RUC-NLPIR/FlashRAG_datasets"

Source = Callable[[QaSplit], Iterator[Question]]
"""Reads one split, a question at a time."""

# What a row of the output holds. HotpotQA's rows carry ten whole paragraphs beside it.
_KEPT_METADATA = ("hops", "supporting_ids")


@dataclass(frozen=True, slots=True)
class LoadedSplit:
    """All questions of a split, in the order of its source, their ids prefixed by the set."""

    split: QaSplit
    questions: tuple[Question, ...]
    sha256: str
    """Of ids, questions and answers in order: the same from a folder and from the hub."""


def open_source(source: str) -> Source:
    """The reader of `hub` or of a folder.

    Raises:
        ValueError: there is no such folder.
    """
    if source == HUB:
        return lambda split: not_empty(_from_hub(split), f"{HUB_DATASET}, {split}")
    folder = Path(source)
    if not folder.is_dir():
        raise ValueError(
            f"source: {source} is not a folder; give one that holds SET/SPLIT.jsonl, or {HUB!r}"
        )
    return partial(_from_folder, folder)


def load(source: Source, split: QaSplit) -> LoadedSplit:
    """Read one split whole.

    Raises:
        FileNotFoundError: the source does not have it.
        ValueError: a row is wrong, an id occurs twice or there are no rows; the message says
            where.
    """
    digest = hashlib.sha256()
    questions: list[Question] = []
    for question in source(split):
        fields = [question.id, question.question, question.golden_answers]
        digest.update(json.dumps(fields).encode() + b"\n")
        questions.append(_without_contexts(question))
    return LoadedSplit(split, tuple(merge([questions], names=[split])), digest.hexdigest())


def _from_folder(folder: Path, split: QaSplit) -> Iterator[Question]:
    path = _file(folder, split)
    return not_empty(read_questions(path, split.name), path)


def _file(folder: Path, split: QaSplit) -> Path:
    plain = folder / split.name / f"{split.split}.jsonl"
    for path in (plain, plain.with_name(f"{plain.name}.gz")):
        if path.exists():
            return path
    raise FileNotFoundError(
        f"{plain}: no such file, nor with .gz; add it, or leave it out (--set, --train)"
    )


def _from_hub(split: QaSplit) -> Iterator[Question]:
    try:
        from datasets import load_dataset
    except ImportError as error:
        raise ValueError(
            "source: the hub needs the package datasets: pip install 'search-r1[retriever]'"
        ) from error
    rows = load_dataset(HUB_DATASET, split.name, split=split.split)
    for number, row in enumerate(rows):
        try:
            yield question_from_row(row, split.name)
        except ValueError as error:
            raise ValueError(f"{HUB_DATASET}, {split}, row {number}: {error}") from error


def _without_contexts(question: Question) -> Question:
    kept = {key: question.metadata[key] for key in _KEPT_METADATA if key in question.metadata}
    return replace(question, metadata=kept)
