"""The settings of a fictional encyclopedia."""

from dataclasses import dataclass

MIN_ARTICLES = 100
MAX_ARTICLES = 1_000_000
MAX_DISTRACTORS = 0.4


@dataclass(frozen=True, slots=True)
class WorldConfig:
    """What determines every byte of a world.

    Raises:
        ValueError: a setting is out of range; the message names the field and the range.
    """

    seed: int
    """Two worlds with different seeds share no facts."""
    articles: int
    """Number of articles, 100 to 1,000,000."""
    train_questions: int
    """Number of training questions, spread evenly over `hops`."""
    test_questions: int
    """Number of held-out questions, spread evenly over `hops`."""
    hops: tuple[int, ...] = (1, 2, 3)
    """Numbers of facts, and so of articles, that a question joins."""
    distractors: float = 0.2
    """Share of the articles that only imitate the name of another one, 0 to 0.4."""
    held_out: float = 0.2
    """Share of the facts that only held-out questions may use."""

    def __post_init__(self) -> None:
        _check("seed", self.seed, 0, 2**63 - 1)
        _check("articles", self.articles, MIN_ARTICLES, MAX_ARTICLES)
        _check("train_questions", self.train_questions, 0, 10_000_000)
        _check("test_questions", self.test_questions, 0, 10_000_000)
        _check("distractors", self.distractors, 0, MAX_DISTRACTORS)
        _check("held_out", self.held_out, 0.01, 0.99)
        if not self.hops or len(set(self.hops)) != len(self.hops):
            raise ValueError(f"hops: {self.hops} must list each number of hops once")
        for hops in self.hops:
            _check("hops", hops, 1, 3)


def _check(field: str, value: float, low: float, high: float) -> None:
    if not low <= value <= high:
        raise ValueError(f"{field}: {value} is out of range, choose {low:,} to {high:,}")
