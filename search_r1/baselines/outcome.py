"""How a baseline answered: its turns, its counts, and the record that every metric reads."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from search_r1.actions import Answer
from search_r1.result import RolloutResult, Turn
from search_r1.trajectory import StopReason, Trajectory


@dataclass(frozen=True, slots=True)
class BaselineOutcome:
    """A question answered in any number of calls, whose tokens are added up.

    A search that the method itself began, without a word of the model, is a turn without text.
    """

    turns: Sequence[Turn]
    stop_reason: StopReason
    generate_seconds: float
    search_seconds: float
    aside_tokens: int = 0
    """Sampled in calls that are no turn, such as a reading of the passages."""

    @property
    def answer(self) -> str | None:
        """The last answer the model gave, in the form that the method asks for."""
        answers = [turn.action.text for turn in self.turns if isinstance(turn.action, Answer)]
        return answers[-1] if answers else None

    @property
    def sampled_tokens(self) -> int:
        """How many tokens the model wrote in all calls."""
        return sum(turn.sampled_tokens for turn in self.turns) + self.aside_tokens

    @property
    def inserted_tokens(self) -> int:
        """How many tokens the observations have; each counts once, whatever prompts repeat it."""
        return sum(turn.inserted_tokens for turn in self.turns)

    def record(self) -> dict[str, Any]:
        """JSON data with the keys of `search_r1.result.RolloutResult.record`."""
        # Made by the rollout's own record, so that the two never have different keys.
        counts = RolloutResult(
            Trajectory([]), self.turns, self.stop_reason, self.generate_seconds, self.search_seconds
        )
        return counts.record() | {
            "answer": self.answer,
            "sampled_tokens": self.sampled_tokens,
            "inserted_tokens": self.inserted_tokens,
            "masked_tokens": self.inserted_tokens,
        }
