"""What each worker process of a server is doing: a few bytes of memory that they all share."""

from dataclasses import dataclass
from enum import IntEnum
from multiprocessing import get_context

SPAWN = get_context("spawn")
"""Workers are spawned, not forked: OpenMP and CUDA do not survive a fork."""


class WorkerState(IntEnum):
    """What a worker is doing."""

    DOWN = 0
    LOADING = 1
    """It takes no connections yet, since others answer meanwhile."""
    OPEN = 2
    """It is loading, and takes connections to say so, since no other does."""
    READY = 3


class Board:
    """The state of each worker; every process of the server holds the same one.

    Args:
        workers: Their number.
    """

    def __init__(self, workers: int = 1) -> None:
        self._states = SPAWN.RawArray("B", workers)
        self._restarts = SPAWN.RawValue("L")

    def __len__(self) -> int:
        return len(self._states)

    def __getitem__(self, worker: int) -> WorkerState:
        return WorkerState(self._states[worker])

    def __setitem__(self, worker: int, state: WorkerState) -> None:
        self._states[worker] = state

    @property
    def ready(self) -> int:
        """How many workers answer queries."""
        return sum(state == WorkerState.READY for state in self._states)

    @property
    def whole(self) -> bool:
        """Whether every worker that takes connections answers queries, and there is one."""
        return self.ready > 0 and WorkerState.OPEN not in self._states

    @property
    def restarts(self) -> int:
        """How many workers ended and were replaced."""
        return int(self._restarts.value)

    def count_restart(self) -> None:
        """Note that a worker is replaced; only one process may."""
        self._restarts.value += 1


@dataclass(frozen=True, slots=True)
class Seat:
    """One worker's place on the board."""

    board: Board
    worker: int

    @classmethod
    def alone(cls) -> "Seat":
        """The place of a server's only process."""
        return cls(Board(), 0)

    def enter(self, state: WorkerState) -> None:
        """Say what this worker does from now on."""
        self.board[self.worker] = state

    def begin(self) -> WorkerState:
        """Begin to load: openly, unless another worker answers queries already."""
        self.enter(WorkerState.LOADING if self.board.ready else WorkerState.OPEN)
        return self.board[self.worker]
