"""The metrics of a run, from the files that its starts left: ``metrics/TIMESTAMP.jsonl``."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Step = tuple[int, dict[str, float]]


@dataclass(frozen=True, slots=True)
class MetricsLog:
    """The numbers of each step, in the order of the steps."""

    steps: Mapping[int, Mapping[str, float]]
    torn: Sequence[Path] = field(default=())
    """Files that end in half a line."""

    def curve(self, names: Sequence[str]) -> list[tuple[int, float]]:
        """Step and value wherever one of the metrics `names` is known; the first known counts."""
        found = ((step, _first(names, metrics)) for step, metrics in self.steps.items())
        return [(step, value) for step, value in found if value is not None]


def read_metrics(run: Path) -> MetricsLog:
    """All metrics of the run folder `run`.

    A later start replaces the steps after its first one, and wins metric by metric where both
    have a step. A last line that breaks off is left out: the run is writing it, or died so.

    Raises:
        FileNotFoundError: there is no metrics file, or no whole line in any.
        ValueError: a line is not a row of metrics; the message names file and line.
    """
    folder = run / "metrics"
    steps: dict[int, dict[str, float]] = {}
    torn = []
    for path in sorted(folder.glob("*.jsonl")):
        rows, breaks_off = _read_file(path)
        steps = _continued(steps, rows)
        torn += [path] * breaks_off
    if not steps:
        raise FileNotFoundError(
            f"{folder} holds no step in a TIMESTAMP.jsonl; give a run's output_dir that has "
            "finished a step"
        )
    return MetricsLog(dict(sorted(steps.items())), tuple(torn))


def last_step(run: Path) -> int:
    """The step that the newest start of a run logged last; 0 if none. Reads one line as JSON."""
    for path in sorted((run / "metrics").glob("*.jsonl"), reverse=True)[:1]:
        whole, _, _ = path.read_text(encoding="utf-8", errors="replace").rpartition("\n")
        if line := whole.rpartition("\n")[2]:
            return _parse(line, str(path))[0]
    return 0


def _continued(steps: dict[int, dict[str, float]], rows: Sequence[Step]) -> dict[int, Any]:
    # A resumed run first validates, which logs a row of its own for a step it trained before.
    first = min((step for step, _ in rows), default=None)
    kept = {step: row for step, row in steps.items() if first is None or step <= first}
    for step, metrics in rows:
        kept[step] = kept.get(step, {}) | metrics
    return kept


def _read_file(path: Path) -> tuple[list[Step], bool]:
    """The rows of a file, and whether its last line breaks off."""
    *lines, last = path.read_text(encoding="utf-8", errors="replace").split("\n")
    rows = [_parse(line, f"{path}:{number}") for number, line in enumerate(lines, start=1)]
    return rows, bool(last.strip())


def _parse(line: str, where: str) -> Step:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{where}: not JSON: {error}; take out this line") from error
    step, data = (row.get("step"), row.get("data")) if isinstance(row, dict) else (None, None)
    if not isinstance(step, int):
        raise ValueError(f"{where}: field step is no whole number; give a file of verl's logger")
    if not isinstance(data, dict):
        raise ValueError(f"{where}: field data is no object; give a file of verl's logger")
    return step, {name: float(value) for name, value in data.items() if _is_number(value)}


def _is_number(value: object) -> bool:
    # Unlike isfinite, this takes whole numbers that no float can hold.
    return isinstance(value, int | float) and abs(value) <= sys.float_info.max


def _first(names: Sequence[str], metrics: Mapping[str, float]) -> float | None:
    return next((metrics[name] for name in names if name in metrics), None)
