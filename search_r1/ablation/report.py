"""An ablation's results as a page, as markdown and as JSON, beside what the paper reports."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from search_r1.ablation.record import Ablation
from search_r1.ablation.results import EM, FINAL, RunResult, Spread, VariantResult, read_results
from search_r1.baselines.published import SOURCE
from search_r1.files import write_lines
from search_r1.metrics import number_text
from search_r1.run_report.page import render_template
from search_r1.run_report.plots import MANY_STEPS, Drawing, Plot, draw_lines
from search_r1.run_report.tables import PageTable

PAGE: Final = "report.html"
TEXT: Final = "report.md"
DATA: Final = "report.json"

PLOTS: Final = (
    Plot("Training reward", ("reward/score",)),
    Plot("Validation, exact match", (EM,), rate=True),
    Plot("Searches per question", ("search/searches_per_question",)),
    Plot("Response length, all tokens", ("tokens/response",)),
    Plot("Response length, sampled tokens", ("tokens/sampled",)),
    Plot("Entropy", ("actor/entropy",)),
)
_HEADS: Final = ("value", "runs", "EM", "best EM", "paper EM", *FINAL, "step", "questions")
EXPLANATION: Final = (
    "Numbers and curves are of the finished runs, or of all where none is finished. Numbers are of "
    "the last validation after training, its step named; mean ± standard deviation over seeds "
    "where there are several. Best EM is the highest of all validations after training, chosen on "
    f"the questions it is measured on. Paper EM: {SOURCE}, of the model it names."
)
_NOTHING: Final = "-"


@dataclass(frozen=True, slots=True)
class AxisSection:
    """What the page shows of an axis."""

    name: str
    values: Sequence[str]
    table: PageTable
    drawings: Sequence[Drawing]
    is_smoothed: bool


def write_report(ablation: Ablation, made: datetime) -> None:
    """Write `PAGE`, `TEXT` and `DATA` into the ablation's folder.

    Raises:
        ValueError: a file of a run is broken; the message names it.
    """
    axes = read_results(ablation)
    notes = list(_notes(axes))
    page = render_template(
        "ablation.html",
        made,
        title=ablation.folder.name,
        command=ablation.command,
        notes=notes,
        explanation=EXPLANATION,
        sections=[_section(name, variants) for name, variants in axes.items()],
    )
    write_lines(ablation.folder / PAGE, [page])
    write_lines(ablation.folder / TEXT, _markdown(ablation, axes, notes, made))
    data = {"command": ablation.command, "source_of_published": SOURCE, "axes": _data(axes)}
    write_lines(ablation.folder / DATA, [json.dumps(data, indent=2)])


def table_of(variants: Sequence[VariantResult]) -> PageTable:
    """One row a value: numbers of the last validation after training, over the seeds."""
    rows = [
        (
            variant.value,
            _states(variant.runs),
            _text(variant.final(EM)),
            _text(variant.best_em),
            _published(variant),
            *(_text(variant.final(metric)) for metric in FINAL.values()),
            _numbers(run.last_validation for run in variant.counted),
            _numbers(run.questions for run in variant.counted),
        )
        for variant in variants
    ]
    return PageTable(_HEADS, rows, words=2)


def _section(name: str, variants: Sequence[VariantResult]) -> AxisSection:
    lines = [[run.log for run in variant.counted if run.log.steps] for variant in variants]
    longest = max((len(log.steps) for logs in lines for log in logs), default=0)
    values = [variant.value for variant in variants]
    drawings = draw_lines(PLOTS, lines)
    return AxisSection(name, values, table_of(variants), drawings, longest > MANY_STEPS)


def _notes(axes: Mapping[str, Sequence[VariantResult]]) -> Iterable[str]:
    runs = {run.name: run for variants in axes.values() for one in variants for run in one.runs}
    for run in runs.values():
        if run.exit_code != 0:
            yield f"{run.name}: {run.state}; the same command trains it"
    if any(run.log.torn for run in runs.values()):
        yield "a file of metrics ends in half a line, which is left out: a run is writing it"


def _states(runs: Sequence[RunResult]) -> str:
    counts: dict[str, int] = {}
    for run in runs:
        counts[run.state] = counts.get(run.state, 0) + 1
    return ", ".join(f"{count} {state}" for state, count in counts.items())


def _numbers(values: Iterable[int | None]) -> str:
    known = sorted({value for value in values if value is not None})
    return " and ".join(f"{value:,}" for value in known) or _NOTHING


def _text(spread: Spread | None) -> str:
    if spread is None:
        return _NOTHING
    mean, deviation = number_text(spread.mean), spread.deviation
    return mean if deviation is None else f"{mean} ± {number_text(deviation)}"


def _published(variant: VariantResult) -> str:
    found = variant.published
    return f"{number_text(found.average_em)} ({found.model})" if found else _NOTHING


def _markdown(
    ablation: Ablation,
    axes: Mapping[str, Sequence[VariantResult]],
    notes: Sequence[str],
    made: datetime,
) -> Iterable[str]:
    yield f"# Ablation {ablation.folder.name}\n\nMade {made:%Y-%m-%d %H:%M} by\n"
    yield f"```\n{ablation.command}\n```\n"
    yield from (f"* {note}" for note in notes)
    for name, variants in axes.items():
        table = table_of(variants)
        rules = ["---" if place < table.words else "---:" for place in range(len(table.heads))]
        yield f"\n## {name}\n"
        yield from map(_markdown_row, (table.heads, rules, *table.rows))
    yield f"\n{EXPLANATION}"


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def _data(axes: Mapping[str, Sequence[VariantResult]]) -> dict[str, Any]:
    return {name: [_variant_data(one) for one in variants] for name, variants in axes.items()}


def _variant_data(variant: VariantResult) -> dict[str, Any]:
    found, metrics = variant.published, {"EM": EM, **FINAL}
    return {
        "value": variant.value,
        "runs": [_run_data(run) for run in variant.runs],
        "final": {name: _spread_data(variant.final(metric)) for name, metric in metrics.items()},
        "best_em": _spread_data(variant.best_em),
        "published": {"em": found.average_em, "model": found.model} if found else None,
    }


def _run_data(run: RunResult) -> dict[str, Any]:
    return {
        "name": run.name,
        "seed": run.seed,
        "state": run.state,
        "exit_code": run.exit_code,
        "last_validation": run.last_validation,
        "questions": run.questions,
        "curves": {plot.names[0]: run.log.curve(plot.names) for plot in PLOTS},
    }


def _spread_data(spread: Spread | None) -> dict[str, Any] | None:
    if spread is None:
        return None
    return {"mean": spread.mean, "deviation": spread.deviation, "values": spread.values}
