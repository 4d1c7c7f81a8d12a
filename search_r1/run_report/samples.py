"""Which trajectories the page shows whole."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from search_r1.metrics import Row
from search_r1.run_report.failures import Failure, classify


@dataclass(frozen=True, slots=True)
class Samples:
    """Trajectories of one validation, right and wrong ones."""

    right: Sequence[Row] = ()
    wrong: Sequence[Row] = ()


def draw_samples(rows: Sequence[Row], count: int, seed: int) -> Samples:
    """Up to `count` right trajectories and as many wrong ones, the latter from every class in turn.

    The same rows and seed give the same samples.
    """
    shuffled = random.Random(seed).sample(rows, len(rows))
    by_class: dict[Failure | None, list[Row]] = {failure: [] for failure in (None, *Failure)}
    for row in shuffled:
        by_class[classify(row)].append(row)
    in_turn = zip_longest(*(by_class[failure] for failure in Failure))
    wrong = [row for one_of_each in in_turn for row in one_of_each if row is not None]
    return Samples(by_class[None][:count], wrong[:count])
