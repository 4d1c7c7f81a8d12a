"""Demonstrations as verl's SFT trainer reads them: ids and mask as they are, none made from text.

Named by configs/sft.yaml, which says how to start it.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import Dataset

from search_r1.masked_loss import Demonstration, read_demonstrations


class DemonstrationDataset(Dataset):  # type: ignore[misc] # torch is not followed
    """The rows of one or several files of demonstrations.

    Args:
        parquet_files: See `data_prep.demonstration_file.SCHEMA`.
        config: verl's section `data`; `pad_mode` and `max_length` are heeded.
        max_samples: Take only the first rows; all of them below 1.
        **_others: What verl passes besides, such as the tokenizer: nothing is left to encode.

    Raises:
        ValueError: a row is wrong or too long, or rows are to be padded; the message says which.
    """

    def __init__(
        self,
        parquet_files: str | Sequence[str],
        config: Mapping[str, Any],
        max_samples: int = -1,
        **_others: object,
    ) -> None:
        if config["pad_mode"] != "no_padding":
            raise ValueError(f"data.pad_mode is {config['pad_mode']!r}; set it to no_padding")
        files = [parquet_files] if isinstance(parquet_files, str) else parquet_files
        rows = [row for file in files for row in _read(Path(file), config["max_length"])]
        self._rows = rows[:max_samples] if max_samples > 0 else rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        """`input_ids`, `position_ids` and `loss_mask`: int64, (T,)."""
        row = self._rows[index]
        ids = torch.tensor(row["input_ids"], dtype=torch.int64)
        return {
            "input_ids": ids,
            "position_ids": torch.arange(len(ids)),
            "loss_mask": torch.tensor(row["mask"], dtype=torch.int64),
        }


def _read(path: Path, max_length: int) -> list[Demonstration]:
    rows = read_demonstrations(path)
    for number, row in enumerate(rows):
        if len(row["input_ids"]) > max_length:
            raise ValueError(
                f"{path}: row {number}: {len(row['input_ids'])} tokens, more than data.max_length="
                f"{max_length}; raise it, or make the file with a smaller --sequence-tokens"
            )
    return rows
