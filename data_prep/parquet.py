"""Questions -> the rows verl reads -> parquet.

verl hands the columns of a row to the agent loop, and `reward_model.ground_truth` and `extra_info`
to the reward; `agent_name` chooses the agent loop.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa  # pyarrow ships no types
import pyarrow.parquet as pq

from data_prep.questions import Question
from search_r1.files import atomic_path
from search_r1.prompts import build_messages

AGENT_NAME = "search_r1"
ABILITY = "search"
ROWS_PER_GROUP = 5_000

_TEXTS = pa.list_(pa.string())

SCHEMA = pa.schema(
    {
        "id": pa.string(),
        "data_source": pa.string(),
        "prompt": pa.list_(pa.struct({"role": pa.string(), "content": pa.string()})),
        "ability": pa.string(),
        "reward_model": pa.struct(
            {"style": pa.string(), "ground_truth": pa.struct({"target": _TEXTS})}
        ),
        "extra_info": pa.struct(
            {
                "index": pa.int64(),
                "split": pa.string(),
                "id": pa.string(),
                "question": pa.string(),
                "golden_answers": _TEXTS,
                "hops": pa.int64(),
                "supporting_ids": _TEXTS,
            }
        ),
        "agent_name": pa.string(),
    }
)
"""One schema for every file, so that any of them can be read together."""


def verl_row(question: Question, index: int, split: str) -> dict[str, Any]:
    """The row of one question, as `SCHEMA` says.

    Args:
        question: the question; metadata other than `hops` and `supporting_ids` is left out.
        index: the row's number in its file.
        split: the name of the split, for example `train`.
    """
    answers = list(question.golden_answers)
    return {
        "id": question.id,
        "data_source": question.data_source,
        "prompt": build_messages(question.question),
        "ability": ABILITY,
        "reward_model": {"style": "rule", "ground_truth": {"target": answers}},
        "extra_info": {
            "index": index,
            "split": split,
            "id": question.id,
            "question": question.question,
            "golden_answers": answers,
            "hops": question.metadata.get("hops", 0),
            "supporting_ids": question.metadata.get("supporting_ids", []),
        },
        "agent_name": AGENT_NAME,
    }


def write_parquet(
    questions: Iterable[Question],
    path: Path,
    split: str,
    advance: Callable[[int], None] = lambda _: None,
) -> int:
    """Write questions as verl rows, a group of rows at a time, and return how many.

    Args:
        questions: the questions in the order of the file; their ids must be unique (see `merge`).
        path: the file; it appears only when it is complete.
        split: the name of the split.
        advance: called with the number of rows after each group.

    Raises:
        OSError: the file cannot be written.
    """
    rows = (verl_row(question, index, split) for index, question in enumerate(questions))
    written = 0
    with atomic_path(path) as temporary, pq.ParquetWriter(temporary, SCHEMA) as writer:
        for group in groups(rows, ROWS_PER_GROUP):
            writer.write_table(pa.Table.from_pylist(group, schema=SCHEMA))
            written += len(group)
            advance(len(group))
    return written


def groups(rows: Iterable[dict[str, Any]], size: int) -> Iterator[list[dict[str, Any]]]:
    """The rows in lists of `size`, the last one shorter."""
    rest = iter(rows)
    while group := list(islice(rest, size)):
        yield group
