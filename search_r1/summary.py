"""The validations of a run side by side, from the trajectories it stored.

Command: ``search-r1 summary runs/quickstart``.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from search_r1.metrics import Row, summarise

_ROWS = {
    "exact match": "reward/em",
    "  1 hop": "em/1_hop",
    "  2 hops": "em/2_hop",
    "  3 hops": "em/3_hop",
    "token F1": "reward/f1",
    "gold answer in a passage": "reward/retrieval_hit",
    "searches per question": "search/searches_per_question",
    "valid actions": "search/valid_action_rate",
    "sampled tokens": "tokens/sampled",
    "inserted tokens": "tokens/inserted",
    "share of masked tokens": "tokens/masked_share",
}


def read_trajectories(path: Path) -> list[Row]:
    """The trajectories of one validation.

    Raises:
        ValueError: a line is not a JSON object; the message names file and line.
    """
    rows: list[Row] = []
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
            except ValueError as error:
                raise ValueError(f"{path}:{number}: not JSON: {error}") from error
            if not isinstance(row, dict):
                raise ValueError(f"{path}:{number}: not a JSON object")
            rows.append(row)
    return rows


def validation_files(run: Path) -> list[Path]:
    """The validations of the run folder `run`, in the order of their steps.

    Raises:
        FileNotFoundError: there is none.
    """
    files = sorted((run / "validation").glob("*.jsonl"), key=lambda path: int(path.stem))
    if not files:
        raise FileNotFoundError(f"{run / 'validation'} holds no STEP.jsonl; has the run validated?")
    return files


def table_of(files: Sequence[Path]) -> Table:
    """One column for each validation, one row for each number that they have."""
    batches = {path.stem: read_trajectories(path) for path in files}
    columns = {step: summarise(rows) for step, rows in batches.items()}
    counts = " and ".join(sorted({str(len(rows)) for rows in batches.values()}))
    table = Table(title=f"held-out questions: {counts}", title_justify="left")
    table.add_column("")
    for step in columns:
        table.add_column("before" if step == "0" else f"step {step}", justify="right")
    for label, name in _ROWS.items():
        if any(name in metrics for metrics in columns.values()):
            table.add_row(label, *(_number(metrics.get(name)) for metrics in columns.values()))
    return table


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}" if value < 10 else f"{value:.1f}"
