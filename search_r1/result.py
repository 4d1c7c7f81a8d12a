"""What a finished rollout leaves: its turns, its trajectory, its counts, and a record to store."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from search_r1.actions import Action, ActionKind, Search, last_answer
from search_r1.passages import Passage
from search_r1.trajectory import StopReason, Trajectory


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of the model and what the system said to it."""

    text: str
    """The model's words, through the closing tag of its action."""
    action: Action
    sampled_tokens: int
    observation: str = ""
    """The system's words, exactly as they were inserted; empty if there were none."""
    inserted_tokens: int = 0
    passages: tuple[Passage, ...] = ()
    """Those that the observation shows, best first."""
    searched: bool = False
    """False also for a search that was not executed because a budget was spent."""
    search_failed: bool = False

    def record(self) -> dict[str, Any]:
        """The turn as JSON data; the text of the passages is in the observation."""
        return {
            "text": self.text,
            "action": self.action.kind.value,
            "query": self.action.query if isinstance(self.action, Search) else None,
            "observation": self.observation,
            "passages": [{"id": p.id, "title": p.title, "score": p.score} for p in self.passages],
            "searched": self.searched,
            "search_failed": self.search_failed,
            "sampled_tokens": self.sampled_tokens,
            "inserted_tokens": self.inserted_tokens,
        }


@dataclass(frozen=True, slots=True)
class RolloutResult:
    """A finished trajectory and how it came about."""

    trajectory: Trajectory
    turns: Sequence[Turn]
    stop_reason: StopReason
    generate_seconds: float
    search_seconds: float

    @property
    def answer(self) -> str | None:
        """The model's own last complete answer, never one from the prompt or a passage."""
        return last_answer(turn.text for turn in self.turns)

    @property
    def searches(self) -> int:
        """Searches that were executed, failed ones included."""
        return sum(turn.searched for turn in self.turns)

    @property
    def failed_searches(self) -> int:
        """Searches that got an error in place of passages."""
        return sum(turn.search_failed for turn in self.turns)

    @property
    def invalid_actions(self) -> int:
        """Turns in which the model completed neither a search nor an answer."""
        return sum(turn.action.kind == ActionKind.INVALID for turn in self.turns)

    def record(self) -> dict[str, Any]:
        """The result without its token ids, as JSON data: for rewards, metrics and files."""
        return {
            "answer": self.answer,
            "stop_reason": self.stop_reason.value,
            "turns": len(self.turns),
            "searches": self.searches,
            "failed_searches": self.failed_searches,
            "valid_actions": len(self.turns) - self.invalid_actions,
            "invalid_actions": self.invalid_actions,
            "sampled_tokens": self.trajectory.sampled_tokens,
            "inserted_tokens": self.trajectory.inserted_tokens,
            "masked_tokens": self.trajectory.masked_tokens,
            "mean_logprob": self.trajectory.mean_logprob,
            "generate_seconds": self.generate_seconds,
            "search_seconds": self.search_seconds,
            "transcript": [turn.record() for turn in self.turns],
        }
