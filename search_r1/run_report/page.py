"""Runs -> one HTML page that needs nothing else: no network, no script, no other file."""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from search_r1.files import write_lines
from search_r1.run_report import plots, tables
from search_r1.run_report.failures import MEANINGS
from search_r1.run_report.runs import ReportRun
from search_r1.run_report.trajectories import shape
from search_r1.view import visible


def write_page(target: Path, runs: Sequence[ReportRun], made: datetime) -> None:
    """Write the page about `runs` to `target`, whole or not at all."""
    write_lines(target, [render(runs, made)])


def render(runs: Sequence[ReportRun], made: datetime) -> str:
    """The page as HTML. All text of the runs is untrusted: it is escaped and made visible."""
    return render_template(
        "page.html",
        made,
        runs=runs,
        notes=[note for run in runs for note in run.notes],
        drawings=plots.draw_all(runs),
        read=tables.run_table(runs),
        validations=tables.validation_table(runs),
        alarms=tables.alarm_table(runs),
        failures=tables.failure_table(runs),
        settings=tables.settings_table(runs),
        meanings=MEANINGS,
        is_smoothed=max(len(run.log.steps) for run in runs) > plots.MANY_STEPS,
        shape=shape,
    )


def render_template(name: str, made: datetime, **values: object) -> str:
    """A page of this package's templates, with what every page needs."""
    return _environment().get_template(name).render(made=f"{made:%Y-%m-%d %H:%M}", **values)


def mark_golds(text: str, golds: Iterable[str]) -> Markup:
    """The text, escaped, with each gold answer in it highlighted."""
    wanted = sorted((visible(gold) for gold in golds if gold.strip()), key=len, reverse=True)
    if not wanted:
        return escape(visible(text))
    pattern = re.compile(rf"(\b(?:{'|'.join(map(re.escape, wanted))})\b)", re.IGNORECASE)
    parts = enumerate(pattern.split(visible(text)))
    mark = Markup("<mark>{}</mark>")
    return Markup("").join(mark.format(part) if place % 2 else part for place, part in parts)


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("search_r1.run_report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    environment.filters["mark_golds"] = mark_golds
    environment.globals |= {
        "colour": plots.run_colour,
        "dash": plots.run_dash,
        "window": plots.WINDOW,
    }
    return environment


def _finalize(value: object) -> str:
    """What an expression of the template becomes before it is escaped."""
    return value if isinstance(value, Markup) else visible(value)
