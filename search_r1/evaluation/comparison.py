"""Two evaluations of the same questions: paired differences, McNemar's test, what changed."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from search_r1.evaluation.bootstrap import Array, Estimate, draw_means
from search_r1.evaluation.output_files import TRAJECTORIES
from search_r1.evaluation.scores import SCORES, estimates, score_table
from search_r1.metrics import Row
from search_r1.summary import read_trajectories

OVERALL: Final = "overall"


@dataclass(frozen=True, slots=True)
class McNemar:
    """McNemar's exact test on exact match: is either run right more often than the other?"""

    only_a: int
    """Questions that A alone has right."""
    only_b: int
    p: float
    """Two-sided; 1 if the runs agree on every question."""

    @classmethod
    def of(cls, only_a: int, only_b: int) -> Self:
        """The test of these counts."""
        from scipy.stats import binomtest

        trials = only_a + only_b
        return cls(only_a, only_b, float(binomtest(only_b, trials).pvalue) if trials else 1.0)


@dataclass(frozen=True, slots=True)
class SetDifference:
    """B minus A on one set, or on all."""

    name: str
    questions: int
    differences: Mapping[str, Estimate]
    """One for each of `search_r1.evaluation.scores.SCORES`."""
    test: McNemar


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs side by side."""

    sets: Sequence[SetDifference]
    overall: SetDifference
    """The mean over sets, and the test over all questions."""
    changed: Sequence[Mapping[str, Any]]
    """Questions that exactly one of the runs has right, in the order of A."""


def read_answers(folder: Path) -> dict[str, Row]:
    """The answers of a finished evaluation by question, in its order, without transcripts.

    Raises:
        FileNotFoundError: the evaluation is not finished.
        ValueError: a line is not an answer, or there is none.
    """
    path = folder / TRAJECTORIES
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is none; finish the evaluation with search-r1 eval")
    kept = ("id", "data_source", "question", "golden_answers", "answer", "reward_parts")
    rows = read_trajectories(path, ("data_source",), SCORES)
    return {row["id"]: {key: row[key] for key in kept} for row in rows}


def compare(a: Mapping[str, Row], b: Mapping[str, Row], seed: int = 0) -> Comparison:
    """What changed from A to B.

    Args:
        a: Answers by question, as `read_answers` returns them.
        b: The same questions, in any order.
        seed: Of the intervals.

    Raises:
        ValueError: a question is not in both, or has other gold answers.
    """
    _check_same(a, b)
    ids: dict[str, list[str]] = defaultdict(list)
    for id_, row in a.items():
        ids[row["data_source"]].append(id_)
    changes = {name: _table(b, of) - _table(a, of) for name, of in ids.items()}
    draws = {name: draw_means(change, seed, name) for name, change in changes.items()}
    sets = [_difference(name, changes[name], draws[name]) for name in ids]
    overall = _overall(sets, changes.values(), draws.values())
    return Comparison(sets, overall, _changed(a, b))


def _table(answers: Mapping[str, Row], ids: Iterable[str]) -> Array:
    return score_table([answers[id_] for id_ in ids])


def _difference(name: str, change: Array, draws: Array) -> SetDifference:
    found = estimates(change.mean(axis=0), draws)
    return SetDifference(name, len(change), found, _test(change))


def _overall(
    sets: Sequence[SetDifference], changes: Iterable[Array], draws: Iterable[Array]
) -> SetDifference:
    every = np.concatenate(list(changes))
    means = np.mean([[one.differences[name].mean for name in SCORES] for one in sets], axis=0)
    found = estimates(means, np.mean(list(draws), axis=0))
    return SetDifference(OVERALL, len(every), found, _test(every))


def _test(change: Array) -> McNemar:
    em = change[:, SCORES.index("em")]
    return McNemar.of(int((em < 0).sum()), int((em > 0).sum()))


def _check_same(a: Mapping[str, Row], b: Mapping[str, Row]) -> None:
    only_a, only_b = [id_ for id_ in a if id_ not in b], [id_ for id_ in b if id_ not in a]
    if only_a or only_b:
        raise ValueError(
            f"of {len(a):,} questions in A, {len(only_a):,} are not in B, and of {len(b):,} in B, "
            f"{len(only_b):,} are not in A, for example {(only_a + only_b)[0]!r}; "
            "evaluate both with the same --data, --sample and --seed"
        )
    for id_, row in a.items():
        if row["golden_answers"] != b[id_]["golden_answers"]:
            raise ValueError(f"golden_answers of {id_!r} differ; evaluate both on the same file")


def _changed(a: Mapping[str, Row], b: Mapping[str, Row]) -> list[dict[str, Any]]:
    return [
        {
            **{key: row[key] for key in ("id", "data_source", "question", "golden_answers")},
            "a": row["answer"],
            "b": b[id_]["answer"],
            "right": "b" if b[id_]["reward_parts"]["em"] else "a",
        }
        for id_, row in a.items()
        if row["reward_parts"]["em"] != b[id_]["reward_parts"]["em"]
    ]
