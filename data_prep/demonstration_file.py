"""The parquet file of demonstrations, which `search-r1 warm-start` trains on, whoever made them."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from data_prep.parquet import groups
from search_r1.files import atomic_path

SCHEMA = pa.schema(
    {
        "id": pa.string(),
        "hops": pa.int32(),
        "input_ids": pa.list_(pa.int32()),
        "mask": pa.list_(pa.int8()),
    }
)
"""Prompt and response of one trajectory; `mask` is 1 on the tokens that are to be learnt."""

_ROWS_PER_GROUP = 1_000


@dataclass(frozen=True, slots=True)
class Size:
    """How much a file holds."""

    demonstrations: int = 0
    tokens: int = 0
    """Prompts included."""

    def __str__(self) -> str:
        return f"{self.demonstrations:,} demonstrations, {self.tokens:,} tokens"


def write_rows(
    rows: Iterable[dict[str, Any]], output: Path, advance: Callable[[int], None] = lambda _: None
) -> Size:
    """Write rows of `SCHEMA`, a group at a time.

    Args:
        rows: The demonstrations, in the order of the file.
        output: The parquet file; it appears only when it is complete.
        advance: Called with the number of rows after each group.

    Raises:
        OSError: the file cannot be written.
    """
    size = Size()
    with atomic_path(output) as temporary, pq.ParquetWriter(temporary, SCHEMA) as writer:
        for group in groups(rows, _ROWS_PER_GROUP):
            writer.write_table(pa.Table.from_pylist(group, schema=SCHEMA))
            tokens = sum(len(row["input_ids"]) for row in group)
            size = Size(size.demonstrations + len(group), size.tokens + tokens)
            advance(len(group))
    return size
