"""A suite as markdown: the paper's table with our rows above its own, and how ours came about."""

from collections.abc import Iterable, Iterator
from typing import Final

from data_prep.qa_sets import EVALUATION
from search_r1.baselines.published import SOURCE, Published
from search_r1.evaluation.scores import SCORES, Scores
from search_r1.evaluation.suite.result import RowResult, Status, SuiteResult
from search_r1.evaluation.tables import HOW, head, markdown_table
from search_r1.metrics import number_text

_NONE: Final = "-"
_WHOLE: Final = {one.name: one.rows for one in EVALUATION}
_LEGEND: Final = (
    "Exact match with 95 % bootstrap intervals; the average is the mean over the sets. Below each "
    f"row what the paper reports ({SOURCE})."
)


def suite_tables(result: SuiteResult) -> str:
    """The table of exact match with its notes, and one of all other averages."""
    main = markdown_table(_heads(result), _lines(result))
    notes = "\n".join(f"* {note}" for note in _notes(result))
    done = [(one.row.label, one.scores) for one in result.rows if one.scores]
    return "\n\n".join(part for part in (_LEGEND, main, notes, _average_table(done)) if part)


def _heads(result: SuiteResult) -> list[str]:
    return ["method", *(f"{name} (n={n:,})" for name, n in result.sets.items()), "average"]


def _lines(result: SuiteResult) -> Iterator[list[str]]:
    for one in result.rows:
        cells = _our_cells(one.scores) if one.scores else [_NONE] * (len(result.sets) + 1)
        yield [_label(one), *cells]
        if paper := one.row.published(result.base):
            yield [f"*paper, {paper.model}*", *_paper_cells(paper, list(result.sets))]


def _label(one: RowResult) -> str:
    reason = {
        Status.DONE: "",
        Status.WAITING: f" ({one.status})",
        Status.MISSING: f" ({one.status}: give `{one.row.option}`)",
    }
    return f"{one.row.label}{reason[one.status]}"


def _our_cells(scores: Scores) -> list[str]:
    return [f"{one.estimates['em']}" for one in (*scores.sets, scores.macro)]


def _paper_cells(paper: Published, names: list[str]) -> list[str]:
    return [number_text(value) for value in (*map(paper.em, names), paper.average(names))]


def _notes(result: SuiteResult) -> Iterator[str]:
    """What keeps our numbers and the paper's from being comparable."""
    samples = [
        f"{name} {n:,} of {_WHOLE[name]:,}"
        for name, n in result.sets.items()
        if n != _WHOLE.get(name, n)
    ]
    if samples:
        yield f"Samples, where the paper answers whole sets: {', '.join(samples)}."
    if result.sets.keys() != _WHOLE.keys():
        yield "Not the seven sets of the paper: its average is the one over the sets shown."


def _average_table(rows: Iterable[tuple[str, Scores]]) -> str:
    cells = [
        [
            label,
            *(f"{scores.macro.estimates[name]}" for name in SCORES),
            *(number_text(scores.macro.means.get(key, 0.0)) for key in HOW.values()),
        ]
        for label, scores in rows
    ]
    return markdown_table(["averages", *map(head, SCORES), *HOW], cells) if cells else ""
