"""One trajectory as the trainer sees it: token ids, mask and log-probabilities, grown together."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum


class StopReason(StrEnum):
    """Why a trajectory ended."""

    ANSWERED = "answered"
    """The model gave its answer."""
    SEARCH_BUDGET = "search_budget"
    """The model still wanted to search in its last turn."""
    TURN_BUDGET = "turn_budget"
    """The last turn was an invalid action."""
    NO_ANSWER = "no_answer"
    """The call in which a baseline asks for the answer ended without an answer block."""
    TOKEN_BUDGET = "token_budget"  # noqa: S105 - not a password
    """There was no room for the system's next words and an answer after them."""
    EMPTY_GENERATION = "empty_generation"
    """The engine returned no token."""


@dataclass(frozen=True, kw_only=True)
class Budgets:
    """Limits of one trajectory, in tokens where the name says so."""

    max_searches: int = 4
    """Turns that may search. One more turn follows, in which a search is not executed."""
    turn_tokens: int = 500
    """Sampled in one turn."""
    observation_tokens: int = 500
    """Inserted after one search."""
    answer_reserve_tokens: int = 64
    """Room that every insert leaves for the turn after it."""
    max_response_length: int = 4096
    """Sampled and inserted tokens together: the length of verl's response tensor."""
    sequence_tokens: int = 4096
    """Prompt and response together; the prompt is never cut."""

    @property
    def may_search(self) -> bool:
        """Whether any search is allowed; if not, the prompt tells of no search engine."""
        return self.max_searches > 0

    def room(self, trajectory: "Trajectory") -> int:
        """How many more tokens the trajectory may hold; below 1 if none."""
        response = len(trajectory.response_ids)
        sequence = len(trajectory.prompt_ids) + response
        return min(self.max_response_length - response, self.sequence_tokens - sequence)

    def room_for_insert(self, trajectory: "Trajectory") -> int:
        """How many tokens may be inserted so that an answer still fits behind them."""
        return self.room(trajectory) - self.answer_reserve_tokens


@dataclass(slots=True)
class Trajectory:
    """A prompt and its response; the four response lists always have equal lengths.

    The response ids are those the engine returned and those the system inserted, each exactly as
    it was when the engine saw it. Text is never encoded again.
    """

    prompt_ids: list[int]
    response_ids: list[int] = field(default_factory=list)
    response_mask: list[int] = field(default_factory=list)
    """1 where the token is trained on: on every sampled one, and on inserted ones as asked."""
    is_sampled: list[bool] = field(default_factory=list)
    """Whether the model wrote the token; otherwise the system did."""
    logprobs: list[float] = field(default_factory=list)
    """Of the sampled tokens, as the engine reported them; 0.0 for inserted ones."""
    has_logprobs: bool = True
    """False once the engine has left out log-probabilities."""

    @property
    def ids(self) -> list[int]:
        """All ids so far, a new list: what the engine continues."""
        return self.prompt_ids + self.response_ids

    @property
    def loss_mask(self) -> list[int]:
        """One number for each of `ids`: `response_mask` behind zeros for the prompt."""
        return [0] * len(self.prompt_ids) + self.response_mask

    @property
    def sampled_tokens(self) -> int:
        """How many response tokens the model wrote."""
        return sum(self.is_sampled)

    @property
    def inserted_tokens(self) -> int:
        """How many response tokens the system wrote."""
        return len(self.is_sampled) - self.sampled_tokens

    @property
    def masked_tokens(self) -> int:
        """How many response tokens nothing is trained on."""
        return len(self.response_mask) - sum(self.response_mask)

    @property
    def mean_logprob(self) -> float | None:
        """Per sampled token, as the engine reported them; None if it did not, or sampled none."""
        sampled = self.sampled_tokens
        return sum(self.logprobs) / sampled if self.has_logprobs and sampled else None

    def append_sampled(self, ids: Sequence[int], logprobs: Sequence[float] | None) -> None:
        """Add what the model wrote.

        Raises:
            ValueError: there is not one finite log-probability a token.
        """
        if logprobs is not None and len(logprobs) != len(ids):
            raise ValueError(f"the engine returned {len(logprobs)} logprobs for {len(ids)} tokens")
        if not all(map(math.isfinite, logprobs or ())):
            # One NaN would become the loss of the whole batch, and the update would be skipped.
            raise ValueError("the engine returned a log-probability that is not finite")
        self.has_logprobs = self.has_logprobs and (logprobs is not None or not ids)
        self._append(ids, logprobs, is_sampled=True, mask=1)

    def append_inserted(self, ids: Sequence[int], *, masked: bool = True) -> None:
        """Add what the system wrote; unless it is masked, the losses count it as if sampled."""
        self._append(ids, None, is_sampled=False, mask=int(not masked))

    def drop_trailing_inserted(self) -> int:
        """Take away inserted tokens at the end; returns how many.

        verl writes the score on the last response token and multiplies its advantage by the mask
        there: behind a masked observation the reward would be lost, and behind any other it would
        speak of a token that the model did not choose.
        """
        kept = len(self.is_sampled)
        while kept and not self.is_sampled[kept - 1]:
            kept -= 1
        dropped = len(self.is_sampled) - kept
        for column in (self.response_ids, self.response_mask, self.is_sampled, self.logprobs):
            del column[kept:]
        return dropped

    def _append(
        self, ids: Sequence[int], logprobs: Sequence[float] | None, *, is_sampled: bool, mask: int
    ) -> None:
        self.response_ids.extend(ids)
        self.is_sampled.extend([is_sampled] * len(ids))
        self.response_mask.extend([mask] * len(ids))
        self.logprobs.extend(logprobs or [0.0] * len(ids))
