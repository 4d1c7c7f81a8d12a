"""The page's tables, as text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from search_r1.metrics import number_text
from search_r1.run_report.failures import Failure
from search_r1.run_report.runs import ReportRun, Validation
from search_r1.run_report.settings import shown_fields

_NOTHING: Final = "-"
_COLUMNS: Final = {
    "exact match": "reward/em",
    "token F1": "reward/f1",
    "1 hop": "em/1_hop",
    "2 hops": "em/2_hop",
    "3 hops": "em/3_hop",
    "gold shown": "reward/retrieval_hit",
    "searches": "search/searches_per_question",
    "valid actions": "search/valid_action_rate",
    "sampled tokens": "tokens/sampled",
    "inserted tokens": "tokens/inserted",
    "masked share": "tokens/masked_share",
}


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table whose first `words` columns are text and whose others are numbers."""

    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int = 1


def run_table(runs: Sequence[ReportRun]) -> PageTable:
    """What was read."""
    rows = [
        (run.name, str(run.folder), str(max(run.log.steps)), str(len(run.validations)))
        for run in runs
    ]
    return PageTable(("run", "folder", "last step", "validations"), rows, words=2)


def validation_table(runs: Sequence[ReportRun]) -> PageTable:
    """One row a validation, one column for each number that any of them has."""
    every = [(run, validation) for run in runs for validation in run.validations]
    known = {name for _, validation in every for name in validation.metrics}
    columns = {label: name for label, name in _COLUMNS.items() if name in known}
    rows = [
        (
            run.name,
            _moment(validation),
            str(validation.count),
            *(number_text(validation.metrics.get(name)) for name in columns.values()),
        )
        for run, validation in every
    ]
    return PageTable(("run", "validation", "questions", *columns), rows, words=2)


def alarm_table(runs: Sequence[ReportRun]) -> PageTable:
    """Every alarm of the runs in the order they began, those before a rollback too."""
    rows = [
        (
            run.name,
            one.alarm,
            f"step {one.step}",
            f"begins: {one.action.replace('_', ' ')}" if one.begins else "ends",
            number_text(one.measured),
            number_text(one.limit),
        )
        for run in runs
        for one in run.alarms
    ]
    return PageTable(("run", "alarm", "when", "what", "measured", "limit"), rows, words=4)


def failure_table(runs: Sequence[ReportRun]) -> PageTable:
    """How many trajectories of each run's first and last validation are of each class."""
    shown = [(run, one) for run in runs for one in _first_and_last(run.validations)]
    heads = ("", *(f"{run.name}\n{_moment(one)}" for run, one in shown))
    classes: list[tuple[str, Failure | None]] = [("right", None)]
    classes += [(failure.value, failure) for failure in Failure]
    rows = [(label, *(_part(one, key) for _, one in shown)) for label, key in classes]
    return PageTable(heads, rows)


def settings_table(runs: Sequence[ReportRun]) -> PageTable:
    """The best known fields and those in which the runs differ; no rows if no run stored any."""
    fields = shown_fields([run.settings for run in runs])
    rows = [(field, *(run.settings.get(field, _NOTHING) for run in runs)) for field in fields]
    return PageTable(("field", *(run.name for run in runs)), rows, words=1 + len(runs))


def _first_and_last(validations: Sequence[Validation]) -> list[Validation]:
    return [*validations[:1], *validations[1:][-1:]]


def _moment(validation: Validation) -> str:
    return "before" if validation.step == 0 else f"step {validation.step}"


def _part(validation: Validation, key: Failure | None) -> str:
    outcomes: Mapping[Failure | None, int] = validation.outcomes
    count = outcomes.get(key, 0)
    return f"{count:,} ({count / validation.count:.0%})" if count else _NOTHING
