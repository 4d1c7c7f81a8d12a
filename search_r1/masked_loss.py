"""Demonstrations -> batches -> the loss on the tokens whose mask is 1, and on no others."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
import torch.nn.functional as F  # noqa: N812 - its usual name
from numpy.typing import NDArray
from transformers.modeling_outputs import CausalLMOutputWithPast

_NO_TARGET = -100
_FIX = "make it with search-r1 prepare demonstrations, sft or rejection-samples"

Array = NDArray[np.integer[Any]]
Demonstration = Mapping[str, Sequence[int] | Array]
"""`input_ids` and `mask`, of equal lengths."""


def read_demonstrations(path: Path) -> list[Demonstration]:
    """The rows of a file of demonstrations, see `data_prep.demonstration_file.SCHEMA`.

    Raises:
        ValueError: a column or a row is wrong; the message names the file, the row and the fix.
    """
    columns = ["input_ids", "mask"]
    lists = {field.name for field in pq.read_schema(path) if pa.types.is_list(field.type)}
    missing = set(columns) - lists
    if missing:
        raise ValueError(f"{path}: has no column of lists {sorted(missing)}; {_FIX}")
    # Views of the file's own columns: lists of Python's numbers would take ten times the memory.
    table = pq.read_table(path, columns=columns)
    rows: list[Demonstration] = [
        dict(zip(columns, row, strict=True)) for row in zip(*map(_arrays, table), strict=True)
    ]
    if not rows:
        raise ValueError(f"{path}: has no rows; {_FIX}")
    for number, row in enumerate(rows):
        if len(row["input_ids"]) != len(row["mask"]):
            raise ValueError(f"{path}: row {number}: mask is not as long as input_ids; {_FIX}")
        if not any(row["mask"][1:]):
            raise ValueError(f"{path}: row {number}: mask trains no token; {_FIX}")
    return rows


def _arrays(column: pa.ChunkedArray) -> Iterator[Array]:
    """The lists of a column, each as a view of its values."""
    for chunk in column.chunks:
        values = chunk.values.to_numpy(zero_copy_only=False)
        offsets = chunk.offsets.to_pylist()
        yield from (values[start:end] for start, end in pairwise(offsets))


def collate(rows: Sequence[Demonstration]) -> dict[str, torch.Tensor]:
    """A micro-batch of B demonstrations, padded on the right to the longest, T.

    Returns:
        ``input_ids`` and ``attention_mask``, (B, T); ``logits_to_keep``, (K,), the positions whose
        next token is trained in any row, the only ones whose logits the model computes; and
        ``labels``, (B, K), those next tokens. All int64.
    """
    length = max(len(row["input_ids"]) for row in rows)
    ids = torch.zeros(len(rows), length, dtype=torch.int64)
    attention = torch.zeros_like(ids)
    targets = torch.full_like(ids, _NO_TARGET)
    for number, row in enumerate(rows):
        end = len(row["input_ids"])
        ids[number, :end] = torch.tensor(row["input_ids"])
        attention[number, :end] = 1
        trained = torch.tensor(row["mask"][1:], dtype=torch.bool)
        targets[number, : end - 1][trained] = ids[number, 1:end][trained]
    kept = (targets != _NO_TARGET).any(dim=0).nonzero().squeeze(1)
    return {
        "input_ids": ids,
        "attention_mask": attention,
        "logits_to_keep": kept,
        "labels": targets[:, kept],
    }


def masked_loss(
    outputs: CausalLMOutputWithPast, labels: torch.Tensor, num_items_in_batch: torch.Tensor
) -> torch.Tensor:
    """The cross-entropy of one micro-batch, as its part of the mean over the step's tokens.

    Args:
        outputs: ``logits``, (B, K, vocabulary).
        labels: (B, K).
        num_items_in_batch: How many tokens the whole step trains.
    """
    logits = outputs.logits
    if logits is None:
        raise TypeError("the model returned no logits")
    total = F.cross_entropy(
        logits.float().flatten(0, 1), labels.flatten(), ignore_index=_NO_TARGET, reduction="sum"
    )
    return total / num_items_in_batch
