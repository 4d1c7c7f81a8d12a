"""The data of the warm start: demonstrations, and as many reading texts.

python -m benchmarks.learning.lessons DEMONSTRATIONS READER OUTPUT
"""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import typer
from transformers import AutoTokenizer

from benchmarks.learning.pretrain import endless_texts, row_of
from data_prep.demonstration_file import write_rows


def reading_rows(reader: Path, rng: random.Random) -> Iterator[dict[str, Any]]:
    """Rows of `data_prep.demonstration_file.SCHEMA`, without end."""
    tokenizer = AutoTokenizer.from_pretrained(reader)
    texts = endless_texts(rng)
    while True:
        ids, mask = row_of(next(rng.choice(texts)), tokenizer)
        if any(mask):
            yield {"id": "reading", "hops": 1, "input_ids": ids, "mask": mask}


def main(demonstrations: Path, reader: Path, output: Path, seed: int = 0) -> None:
    """Write both, shuffled."""
    rng = random.Random(seed)
    rows = pq.read_table(demonstrations).to_pylist()
    texts = reading_rows(reader, rng)
    rows += [next(texts) for _ in range(len(rows))]
    rng.shuffle(rows)
    typer.echo(f"{output}: {write_rows(rows, output)}")


if __name__ == "__main__":
    typer.run(main)
