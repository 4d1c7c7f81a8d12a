"""Answers -> numbers: means with intervals for each set, and their mean over the sets."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any, Final

import numpy as np

from search_r1.evaluation.bootstrap import LEVEL, RESAMPLES, Array, Estimate, draw_means, estimate
from search_r1.metrics import Row, summarise

SCORES: Final = ("em", "f1", "sub_em")
MACRO: Final = "macro average"
_UNUSED: Final = {"transcript", "question", "golden_answers", "answer"}


@dataclass(frozen=True, slots=True)
class SetScores:
    """How one set, or the mean over all, was answered."""

    name: str
    questions: int
    estimates: Mapping[str, Estimate]
    """One for each of `SCORES`."""
    means: Mapping[str, float]
    """See `search_r1.metrics.summarise`."""

    def to_json(self) -> dict[str, Any]:
        """As it is stored."""
        return {
            "questions": self.questions,
            **{name: asdict(value) for name, value in self.estimates.items()},
            "means": dict(self.means),
        }


@dataclass(frozen=True, slots=True)
class Scores:
    """All sets, in the order of their first question, and the mean over them."""

    sets: Sequence[SetScores]
    macro: SetScores

    def to_json(self) -> dict[str, Any]:
        """As it is stored."""
        return {
            "sets": {one.name: one.to_json() for one in self.sets},
            "macro": self.macro.to_json(),
            "interval": {"level": LEVEL, "resamples": RESAMPLES, "kind": "percentile bootstrap"},
        }


def score(rows: Iterable[Row], seed: int) -> Scores:
    """The scores of answers, each a line that `search_r1.evaluation.runner` stored.

    Args:
        rows: At least one answer; the long texts of each are let go at once.
        seed: Of the intervals.
    """
    by_set: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        slim = {key: value for key, value in row.items() if key not in _UNUSED}
        by_set[slim["data_source"]].append(slim)
    draws = {name: draw_means(score_table(of), seed, name) for name, of in by_set.items()}
    sets = [_set_scores(name, of, draws[name]) for name, of in by_set.items()]
    return Scores(sets, _macro(sets, np.mean(list(draws.values()), axis=0)))


def score_table(rows: Sequence[Row]) -> Array:
    """Shape (rows, `SCORES`)."""
    return np.array([[row["reward_parts"][name] for name in SCORES] for row in rows])


def estimates(means: Array, draws: Array) -> dict[str, Estimate]:
    """One for each of `SCORES`; `draws` has the shape (resamples, `SCORES`)."""
    return {name: estimate(means[i], draws[:, i]) for i, name in enumerate(SCORES)}


def _set_scores(name: str, rows: Sequence[Row], draws: Array) -> SetScores:
    means = score_table(rows).mean(axis=0)
    return SetScores(name, len(rows), estimates(means, draws), summarise(rows))


def _macro(sets: Sequence[SetScores], draws: Array) -> SetScores:
    keys = dict.fromkeys(key for one in sets for key in one.means)
    # Not every set has every stop reason or number of hops.
    means = {key: fmean(one.means.get(key, 0.0) for one in sets) for key in keys if _shared(key)}
    scores = np.array([fmean(one.estimates[name].mean for one in sets) for name in SCORES])
    questions = sum(one.questions for one in sets)
    return SetScores(MACRO, questions, estimates(scores, draws), means)


def _shared(key: str) -> bool:
    return not key.startswith("em/")
