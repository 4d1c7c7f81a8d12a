"""Looks at every run of an ablation before the first one starts."""

from collections.abc import Iterator
from dataclasses import replace

from search_r1.ablation.plan import Plan, PlannedRun
from search_r1.check import Problem, Report, check
from search_r1.train import validate_with_verl

_NEVER_VALIDATES = Problem(
    "trainer.test_freq",
    "is not above 0: no variant would be validated once it is trained",
    "a number of steps; the last step is always validated then",
)


def check_plan(plan: Plan) -> dict[str, Report]:
    """The report of each run, by its name; verl's own checks only once ours find no problem.

    verl reads and leaves settings in ``os.environ``: start no run with what is there afterwards.
    """
    reports = {run.name: _check(run) for run in plan.runs}
    if any(report.problems for report in reports.values()):
        return reports
    return {
        run.name: replace(reports[run.name], problems=tuple(validate_with_verl(run.config)))
        for run in plan.runs
    }


def warnings(reports: dict[str, Report]) -> Iterator[tuple[list[str], str, str]]:
    """Each warning once: the runs that have it, its field and its text."""
    runs: dict[tuple[str, str], list[str]] = {}
    for name, report in reports.items():
        for note in report.notes:
            if note.warning:
                runs.setdefault((note.field, note.text), []).append(name)
    for (field, text), names in runs.items():
        yield names, field, text


def _check(run: PlannedRun) -> Report:
    report = check(run.config)
    if run.config.trainer.test_freq > 0:
        return report
    return replace(report, problems=(*report.problems, _NEVER_VALIDATES))
