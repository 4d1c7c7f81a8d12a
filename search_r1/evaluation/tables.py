"""Scores as markdown tables."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from search_r1.evaluation.scores import SCORES, Scores, SetScores
from search_r1.metrics import number_text

_HEADS: Final = {"em": "EM", "f1": "F1", "sub_em": "sub-EM"}
HOW: Final = {
    "hit rate": "reward/retrieval_hit",
    "searches": "search/searches_per_question",
    "failed searches": "search/failed_search_rate",
    "valid actions": "search/valid_action_rate",
    "tokens sampled": "tokens/sampled",
    "tokens inserted": "tokens/inserted",
    "s generating": "time/generate_s",
    "s searching": "time/search_s",
}
"""How scores came about: what a reader calls a mean, and its key, see `search_r1.metrics`."""
_STOP: Final = "stop/"


def score_tables(scores: Scores) -> str:
    """Three tables: scores with 95 % intervals, how they came about, and stop reasons."""
    rows = [*scores.sets, *([scores.macro] if len(scores.sets) > 1 else [])]
    stops = sorted({key for one in rows for key in one.means if key.startswith(_STOP)})
    columns = {key.removeprefix(_STOP).replace("_", " "): key for key in stops}
    tables = (_score_table(rows), _mean_table(rows, HOW), _mean_table(rows, columns))
    return "\n\n".join(tables)


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose first column is text and whose others are numbers."""
    lines = [heads, ["---", *["---:"] * (len(heads) - 1)], *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def head(score: str) -> str:
    """What a reader calls a score."""
    return _HEADS[score]


def _score_table(rows: Sequence[SetScores]) -> str:
    heads = ["set", "questions", *map(head, SCORES)]
    return markdown_table(
        heads,
        [
            [one.name, f"{one.questions:,}", *(f"{one.estimates[name]}" for name in SCORES)]
            for one in rows
        ],
    )


def _mean_table(rows: Sequence[SetScores], columns: Mapping[str, str]) -> str:
    cells = [
        [one.name, *(number_text(one.means.get(key, 0.0)) for key in columns.values())]
        for one in rows
    ]
    return markdown_table(["set", *columns], cells)
