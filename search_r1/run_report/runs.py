"""A run's folder -> what the page needs of it; only the sampled trajectories stay in memory."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from search_r1.metrics import Row, summarise
from search_r1.row_check import SUMMARISED
from search_r1.run_report.failures import Failure, classify
from search_r1.run_report.metrics_log import MetricsLog, read_metrics
from search_r1.run_report.samples import Samples, draw_samples
from search_r1.run_report.settings import read_settings
from search_r1.stability.events import Event, read_events
from search_r1.summary import read_trajectories, validation_files

_EXAMPLE: Final = "give a run's output_dir, for example runs/NAME"


@dataclass(frozen=True, slots=True)
class Validation:
    """One validation in numbers."""

    step: int
    count: int
    metrics: Mapping[str, float]
    outcomes: Mapping[Failure | None, int]
    """How many trajectories are of each class; None stands for the right ones."""


@dataclass(frozen=True, slots=True)
class ReportRun:
    """A run as the page shows it."""

    name: str
    folder: Path
    log: MetricsLog
    settings: Mapping[str, str]
    validations: Sequence[Validation]
    samples: Samples
    """Of the last validation."""
    alarms: Sequence[Event] = ()

    @property
    def notes(self) -> list[str]:
        """What a reader of the page must know about its files."""
        return [
            f"{path} ends in half a line, which is left out: the run is still writing it, or was "
            "stopped while it did"
            for path in self.log.torn
        ]


def read_runs(folders: Sequence[Path], samples: int, seed: int) -> list[ReportRun]:
    """The runs of these folders, each under a name of its own.

    Args:
        folders: Output folders of runs.
        samples: Right trajectories to draw from each run's last validation, and wrong ones.
        seed: Of the draw.

    Raises:
        OSError: a folder is missing or holds no metrics.
        ValueError: a file is broken; the message names it, the line and the fix.
    """
    names = [folder.resolve().name for folder in folders]
    twice = {name for name, count in Counter(names).items() if count > 1}
    return [
        _read_run(folder, str(folder) if name in twice else name, samples, seed)
        for folder, name in zip(folders, names, strict=True)
    ]


def _read_run(folder: Path, name: str, count: int, seed: int) -> ReportRun:
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: no such folder; {_EXAMPLE}")
    validations, samples = [], Samples()
    for path in _validation_files(folder):
        rows = read_trajectories(path, SUMMARISED, ("retrieval_hit",))
        validations.append(_validation(path, rows))
        samples = draw_samples(rows, count, seed)
    log, settings, alarms = read_metrics(folder), read_settings(folder), read_events(folder)
    return ReportRun(name, folder, log, settings, validations, samples, alarms)


def _validation_files(folder: Path) -> list[Path]:
    """The validations; none is no error, for a run may have only trained."""
    has_some = any((folder / "validation").glob("*.jsonl"))
    return validation_files(folder) if has_some else []


def _validation(path: Path, rows: Sequence[Row]) -> Validation:
    outcomes = Counter(classify(row) for row in rows)
    return Validation(int(path.stem), len(rows), summarise(rows), outcomes)
