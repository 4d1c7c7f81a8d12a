"""The validations of a run side by side, from the trajectories it stored.

Command: ``search-r1 summary runs/quickstart``.
"""

import json
from collections.abc import Collection, Sequence
from pathlib import Path

from rich.table import Table

from search_r1.metrics import Row, number_text, summarise
from search_r1.row_check import SUMMARISED, check_row

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

_FIX = "mend it, or give a file as a run's validation or search-r1 eval wrote it"


def read_trajectories(
    path: Path, fields: Collection[str] = (), parts: Collection[str] = ()
) -> list[Row]:
    """The trajectories of one file, each with all that `search-r1 view` shows.

    Args:
        path: A validation of a run, or the trajectories of an evaluation.
        fields: Further fields that each must have, such as `SUMMARISED`.
        parts: Further parts of the reward that each must have.

    Raises:
        OSError: the file cannot be read.
        ValueError: a line is no trajectory, or there is none; the message names file, line, field.
    """
    rows: list[Row] = []
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            # The means are over all rows, so all have the parts of the first.
            needed = [*parts, *(rows[0]["reward_parts"] if rows else ())]
            try:
                rows.append(_parse(line, fields, needed))
            except ValueError as error:
                raise ValueError(f"{path}:{number}: {error}; {_FIX}") from error
    if not rows:
        raise ValueError(f"{path} holds no trajectories; {_FIX}")
    return rows


def validation_files(run: Path) -> list[Path]:
    """The validations of the run folder `run`, in the order of their steps.

    Raises:
        FileNotFoundError: there is none.
        ValueError: a file is not called after a step.
    """
    files = sorted((run / "validation").glob("*.jsonl"), key=_step)
    if not files:
        raise FileNotFoundError(f"{run / 'validation'} holds no STEP.jsonl; has the run validated?")
    return files


def table_of(files: Sequence[Path]) -> Table:
    """One column for each validation, one row for each number that they have."""
    batches = {path.stem: read_trajectories(path, SUMMARISED) for path in files}
    columns = {step: summarise(rows) for step, rows in batches.items()}
    counts = " and ".join(sorted({str(len(rows)) for rows in batches.values()}))
    table = Table(title=f"held-out questions: {counts}", title_justify="left")
    table.add_column("")
    for step in columns:
        table.add_column("before" if step == "0" else f"step {step}", justify="right")
    for label, name in _ROWS.items():
        if any(name in metrics for metrics in columns.values()):
            table.add_row(label, *(number_text(metrics.get(name)) for metrics in columns.values()))
    return table


def _parse(line: bytes, fields: Collection[str], parts: Collection[str]) -> Row:
    try:
        row = json.loads(line.decode())
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8: {error}") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from error
    if not isinstance(row, dict):
        raise ValueError("not a JSON object")
    check_row(row, fields, parts)
    return row


def _step(path: Path) -> int:
    if not (path.stem.isascii() and path.stem.isdecimal()):
        raise ValueError(f"{path}: the name is no step; call it STEP.jsonl, or move it away")
    return int(path.stem)
