"""What a suite has found so far: for each row its scores, or why there are none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from search_r1.baselines.published import SETS, SOURCE
from search_r1.evaluation.scores import Scores
from search_r1.evaluation.suite.rows import SuiteRow


class Status(StrEnum):
    """How far a row is."""

    DONE = "done"
    WAITING = "not finished"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class RowResult:
    """One row of the table."""

    row: SuiteRow
    model: Path | None
    """That answers; None if none was given."""
    scores: Scores | None

    @property
    def status(self) -> Status:
        """Of this row."""
        if self.model is None:
            return Status.MISSING
        return Status.WAITING if self.scores is None else Status.DONE

    def to_json(self, base: str) -> dict[str, Any]:
        """As it is stored, beside the paper's numbers for `base`."""
        paper = self.row.published(base)
        return {
            "name": self.row.name,
            "label": self.row.label,
            "method": self.row.method,
            "status": self.status.value,
            "option": self.row.option,
            "model": str(self.model) if self.model else None,
            "scores": self.scores.to_json() if self.scores else None,
            "published": paper
            and {
                "model": paper.model,
                "em": {name: paper.em(name) for name in SETS},
                "average_em": paper.average_em,
            },
        }


@dataclass(frozen=True, slots=True)
class SuiteResult:
    """The whole table."""

    base: str
    """Whose published numbers stand in it."""
    sets: Mapping[str, int]
    """Questions of each set, in the data's order."""
    rows: Sequence[RowResult]

    def to_json(self) -> dict[str, Any]:
        """As it is stored."""
        return {
            "sets": dict(self.sets),
            "published": {"model": self.base, "source": SOURCE},
            "rows": [row.to_json(self.base) for row in self.rows],
        }
