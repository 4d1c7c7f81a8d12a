"""The estimate itself: bytes of each thing in each phase of a step."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

GIB = 2**30


class Phase(StrEnum):
    """What a GPU does in turn within a step."""

    ROLLOUT = "rollout"
    LOG_PROBS = "log-probs"
    ACTOR = "actor update"
    CRITIC = "critic update"


@dataclass(frozen=True, slots=True)
class MemoryRow:
    """The bytes of one thing, in the phases in which it is there."""

    name: str
    bytes: Mapping[Phase, float]

    def times(self, factor: float) -> "MemoryRow":
        """The same thing, of numbers so many times as wide."""
        return MemoryRow(self.name, {phase: factor * size for phase, size in self.bytes.items()})


@dataclass(frozen=True, slots=True)
class MemoryTable:
    """What each phase holds on one GPU, or in the memory of a machine without one."""

    device: str
    limit_gib: float
    rows: tuple[MemoryRow, ...]

    def total_gib(self, phase: Phase) -> float:
        """All rows of one phase."""
        return sum(row.bytes.get(phase, 0.0) for row in self.rows) / GIB

    @property
    def peak(self) -> Phase:
        """The phase that needs most."""
        return max(Phase, key=self.total_gib)
