"""The numbers of an ablation's variants, from the metrics that their runs logged."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean, stdev
from typing import Final

from search_r1.ablation.paper import published_number
from search_r1.ablation.plan import Variant
from search_r1.ablation.record import Ablation, exit_code
from search_r1.baselines.published import Published
from search_r1.run_report.metrics_log import MetricsLog, read_metrics
from search_r1.run_report.settings import read_settings

EM: Final = "val/reward/em"
FINAL: Final = {
    "F1": "val/reward/f1",
    "searches": "val/search/searches_per_question",
    "valid actions": "val/search/valid_action_rate",
    "response tokens": "val/tokens/response",
    "sampled tokens": "val/tokens/sampled",
    "masked share": "val/tokens/masked_share",
}
"""What else is said of the last validation after training, by what a reader calls it."""


@dataclass(frozen=True, slots=True)
class Spread:
    """A number over seeds."""

    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Over the seeds that have a value."""
        return fmean(self.values)

    @property
    def deviation(self) -> float | None:
        """The sample's standard deviation; None of a single seed."""
        return stdev(self.values) if len(self.values) > 1 else None


@dataclass(frozen=True)
class RunResult:
    """What a run left."""

    name: str
    folder: Path
    seed: int | None
    log: MetricsLog
    """Empty if it has not logged a step."""
    settings: Mapping[str, str]
    """Empty if it never started."""
    exit_code: int | None

    @property
    def state(self) -> str:
        """How far it is, for people."""
        if self.exit_code == 0:
            return "finished"
        if not self.settings:
            return "not started" if self.exit_code is None else "failed"
        word = "unfinished" if self.exit_code is None else "failed"
        total = self.settings.get("trainer.total_training_steps", "?")
        return f"{word} at step {max(self.log.steps, default=0)} of {total}"

    @cached_property
    def last_validation(self) -> int | None:
        """The step of the last validation after training; the one before it says nothing yet."""
        return max((step for step, _ in self.trained_em), default=None)

    @cached_property
    def trained_em(self) -> list[tuple[int, float]]:
        """Step and held-out exact match of each validation after some training."""
        return [(step, value) for step, value in self.log.curve([EM]) if step > 0]

    def final(self, metric: str) -> float | None:
        """A metric of the last validation after training."""
        if self.last_validation is None:
            return None
        return self.log.steps[self.last_validation].get(metric)

    @property
    def best_em(self) -> float | None:
        """The highest exact match of a validation after training."""
        return max((value for _, value in self.trained_em), default=None)

    @property
    def questions(self) -> int | None:
        """How many questions the last validation after training asked."""
        path = self.folder / "validation" / f"{self.last_validation}.jsonl"
        if not path.is_file():
            return None
        with path.open("rb") as lines:
            return sum(1 for _ in lines)


@dataclass(frozen=True, slots=True)
class VariantResult:
    """One value of an axis: a run for each seed."""

    axis: str
    value: str
    runs: tuple[RunResult, ...]

    @property
    def counted(self) -> list[RunResult]:
        """The runs that numbers and curves are of: the finished ones, or all if none is."""
        return [run for run in self.runs if run.exit_code == 0] or list(self.runs)

    def final(self, metric: str) -> Spread | None:
        """A metric of the last validations; None if no run has it."""
        return _spread([run.final(metric) for run in self.counted])

    @property
    def best_em(self) -> Spread | None:
        """The highest exact match of each run."""
        return _spread([run.best_em for run in self.counted])

    @property
    def published(self) -> Published | None:
        """What the paper reports of it."""
        return next((published_number(run.settings) for run in self.runs if run.settings), None)


def read_results(ablation: Ablation) -> dict[str, list[VariantResult]]:
    """The variants of each axis, in the order they were asked for.

    Raises:
        ValueError: a file of a run is broken; the message names it.
    """
    by_value: dict[tuple[str, str], list[Variant]] = {}
    for variant in ablation.variants:
        by_value.setdefault((variant.axis, variant.value), []).append(variant)
    axes: dict[str, list[VariantResult]] = {}
    for (axis, value), variants in by_value.items():
        runs = tuple(_read_run(ablation.folder_of(one.run), one) for one in variants)
        axes.setdefault(axis, []).append(VariantResult(axis, value, runs))
    return axes


def _read_run(folder: Path, variant: Variant) -> RunResult:
    try:
        log = read_metrics(folder)
    except FileNotFoundError:
        log = MetricsLog({})
    settings, code = read_settings(folder), exit_code(folder)
    return RunResult(variant.run, folder, variant.seed, log, settings, code)


def _spread(values: Sequence[float | None]) -> Spread | None:
    known = tuple(value for value in values if value is not None)
    return Spread(known) if known else None
