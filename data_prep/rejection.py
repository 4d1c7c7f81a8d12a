"""Rejection sampling: of several trajectories a question, those that are right -> demonstrations.

The paper samples five with an instruct model and trains on those whose final answer is right
(section 4.2). Token ids and mask are those of the rollout, so retrieved
passages are never learnt.

Command: ``search-r1 prepare rejection-samples MODEL --data FILE --retriever URL --output FILE``.
"""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final

Row = Mapping[str, Any]
"""A stored trajectory with `input_ids` and `mask`, see `search_r1.evaluation.sampling`."""

PAPER_SAMPLES: Final = 5


class Preference(StrEnum):
    """Which of the right trajectories of a question are kept, where not all are."""

    FIRST = "first"
    """In the order of the samples."""
    SHORTEST = "shortest"
    """Those in which the model wrote the fewest tokens."""
    RANDOM = "random"
    """As the seed draws."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What is kept of each question.

    Raises:
        ValueError: `keep` is out of range.
    """

    keep: int | None = None
    """At most so many trajectories; None keeps every right one, as the paper does."""
    prefer: Preference = Preference.FIRST
    seed: int = 0

    def __post_init__(self) -> None:
        if self.keep is not None and self.keep < 1:
            raise ValueError(f"keep: {self.keep} must be at least 1")

    def pick(self, rows: Sequence[Row]) -> list[Row]:
        """Those to keep of one question's trajectories."""
        right = [row for row in rows if is_right(row)]
        if self.keep is None or len(right) <= self.keep:
            return right
        if self.prefer is Preference.RANDOM:
            return random.Random(f"{self.seed}/{right[0]['id']}").sample(right, self.keep)
        if self.prefer is Preference.SHORTEST:
            right.sort(key=lambda row: int(row["sampled_tokens"]))
        return right[: self.keep]


@dataclass(slots=True)
class Tally:
    """What was sampled, and what became of it."""

    questions: int = 0
    sampled: int = 0
    right: int = 0
    kept: int = 0
    questions_without: int = 0
    """Of which no trajectory is right."""

    def add(self, rows: Sequence[Row], kept: int) -> None:
        """Count the trajectories of one question."""
        right = sum(map(is_right, rows))
        self.questions += 1
        self.sampled += len(rows)
        self.right += right
        self.kept += kept
        self.questions_without += not right

    def __str__(self) -> str:
        return (
            f"{self.sampled:,} trajectories of {self.questions:,} questions, {self.right:,} right, "
            f"{self.kept:,} kept; {self.questions_without:,} questions have none"
        )

    def to_json(self) -> dict[str, int]:
        """As it is stored."""
        return asdict(self)


def is_right(row: Row) -> bool:
    """Whether the final answer matches a gold answer exactly: the reward of training, too."""
    return bool(row["reward_parts"]["em"] == 1.0)


def select(
    questions: Iterable[Sequence[Row]],
    selection: Selection,
    tally: Tally,
    advance: Callable[[], None] = lambda: None,
) -> Iterator[dict[str, Any]]:
    """The rows of `data_prep.demonstration_file.SCHEMA` of what is kept.

    Args:
        questions: The trajectories of each question, in the order of the samples.
        selection: What to keep.
        tally: Counts what goes by.
        advance: Called after each question.

    Raises:
        ValueError: nothing was kept.
    """
    for rows in questions:
        kept = selection.pick(rows)
        tally.add(rows, len(kept))
        advance()
        yield from (
            {name: row[name] for name in ("id", "hops", "input_ids", "mask")} for row in kept
        )
    if not tally.kept:
        raise ValueError(
            f"no trajectory is right ({tally}); give a stronger model, easier questions, a higher "
            "--temperature or more --samples"
        )
