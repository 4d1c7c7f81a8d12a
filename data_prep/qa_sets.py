"""The seven evaluation sets and the training splits of the paper, and how many rows each has."""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class QaSplit:
    """One split of a set in FlashRAG's collection, with its published number of rows."""

    name: str
    split: str
    rows: int

    def __str__(self) -> str:
        return f"{self.name} {self.split}"


EVALUATION: Final = (
    QaSplit("nq", "test", 3_610),
    QaSplit("triviaqa", "test", 11_313),
    QaSplit("popqa", "test", 14_267),
    QaSplit("hotpotqa", "dev", 7_405),
    QaSplit("2wikimultihopqa", "dev", 12_576),
    QaSplit("musique", "dev", 2_417),
    QaSplit("bamboogle", "test", 125),
)
TRAINING: Final = (QaSplit("nq", "train", 79_168), QaSplit("hotpotqa", "train", 90_447))


def evaluation_sets(names: list[str]) -> tuple[QaSplit, ...]:
    """The sets of these names, in the order of `EVALUATION`; all of them for no names.

    Raises:
        ValueError: a name is none of the sets.
    """
    known = [one.name for one in EVALUATION]
    for name in names:
        if name not in known:
            raise ValueError(f"set: {name!r} is none of {', '.join(known)}")
    return tuple(one for one in EVALUATION if one.name in (names or known))
