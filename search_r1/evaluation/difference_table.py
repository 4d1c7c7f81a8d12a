"""A comparison as text, and the questions that changed as a file."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from search_r1.evaluation.comparison import Comparison, SetDifference
from search_r1.evaluation.scores import SCORES
from search_r1.evaluation.tables import head, markdown_table
from search_r1.files import atomic_path

_LEGEND = (
    "B minus A with 95 % paired bootstrap intervals; * where the interval leaves out 0. p is of "
    "McNemar's exact test on EM. Overall: the mean over sets, and the test over all questions."
)


def comparison_text(comparison: Comparison, shown: int) -> str:
    """A table with a line for each set, and the first `shown` questions that changed."""
    heads = ["set", "questions", *map(head, SCORES), "only A right", "only B right", "p"]
    table = markdown_table(heads, map(_cells, [*comparison.sets, comparison.overall]))
    changes = "\n".join(map(_change, comparison.changed[:shown]))
    return "\n\n".join(part for part in (table, _LEGEND, changes) if part)


def write_changes(target: Path, comparison: Comparison) -> None:
    """Write the questions that changed as JSON lines."""
    with atomic_path(target) as temporary, temporary.open("wb") as file:
        for change in comparison.changed:
            file.write(json.dumps(change, ensure_ascii=False).encode(errors="backslashreplace"))
            file.write(b"\n")


def _cells(one: SetDifference) -> list[str]:
    differences = (one.differences[name] for name in SCORES)
    marked = [f"{found:+}{' *' if found.excludes_zero else ''}" for found in differences]
    test = one.test
    return [one.name, f"{one.questions:,}", *marked, str(test.only_a), str(test.only_b), _p(test.p)]


def _p(value: float) -> str:
    return f"{value:.3f}" if value >= 0.001 else f"{value:.1e}"


def _change(change: Mapping[str, Any]) -> str:
    golds = " | ".join(change["golden_answers"])
    asked = f"{change['id']} ({change['right'].upper()} right): {change['question']}"
    return f"{asked}\n  A: {change['a']!r}, B: {change['b']!r}; gold: {golds}"
