"""One question being answered: its calls to the engine and the search engine, and their cost."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from search_r1.actions import Action
from search_r1.baselines.outcome import BaselineOutcome
from search_r1.evaluation.method import Tools
from search_r1.observation import NOTHING, Insert
from search_r1.passages import Passage
from search_r1.result import Turn
from search_r1.rollout import find_passages, generate_within
from search_r1.tokens import PlainTokenizer, prompt_ids
from search_r1.trajectory import StopReason


@dataclass(frozen=True, slots=True)
class Written:
    """What one call returned."""

    token_ids: list[int]
    text: str
    stop: StopReason | None = None
    """Why nothing was written."""


@dataclass(slots=True)
class Session:
    """The tools of the run, used for one question within its budgets.

    `sequence_tokens` holds for each call, `max_response_length` for all turns and observations
    together, whether they grow one conversation or are put into a new prompt each time.
    """

    tools: Tools
    turns: list[Turn] = field(default_factory=list)
    aside_tokens: int = 0
    generate_seconds: float = 0.0
    search_seconds: float = 0.0

    @property
    def tokenizer(self) -> PlainTokenizer:
        """The policy's tokenizer, for plain text."""
        return PlainTokenizer(self.tools.tokenizer)

    def prompt(self, content: str) -> list[int]:
        """The ids of a chat of one user message."""
        return prompt_ids(self.tools.tokenizer, [{"role": "user", "content": content}], {})

    def room(self, ids: Sequence[int]) -> int:
        """How many more tokens may follow `ids`; below 1 if none."""
        spent = sum(turn.sampled_tokens + turn.inserted_tokens for turn in self.turns)
        settings = self.tools.settings
        return min(settings.max_response_length - spent, settings.sequence_tokens - len(ids))

    def room_for_insert(self, ids: Sequence[int]) -> int:
        """How many tokens may be inserted behind `ids` so that an answer still fits."""
        return self.room(ids) - self.tools.settings.answer_reserve_tokens

    async def write(self, ids: list[int], stop: Sequence[str], *, reserve: int = 0) -> Written:
        """What the model writes behind `ids`, leaving room for `reserve` tokens more."""
        return await self._write(ids, stop, self.room(ids) - reserve)

    async def write_aside(self, ids: list[int]) -> str:
        """What the model writes in a call that is no turn and has budgets of its own."""
        settings = self.tools.settings
        room = min(settings.max_response_length, settings.sequence_tokens - len(ids))
        written = await self._write(ids, (), room)
        self.aside_tokens += len(written.token_ids)
        return written.text

    def note(self, text: str, action: Action, sampled_tokens: int) -> None:
        """Add a turn, to which the system has not replied yet."""
        self.turns.append(Turn(text, action, sampled_tokens))

    async def find(self, query: str) -> list[Passage] | None:
        """The passages for the query of the last turn, or None if the search failed for good."""
        passages = await self._search(query)
        failed = passages is None
        self.turns[-1] = replace(self.turns[-1], searched=True, search_failed=failed)
        return passages

    def insert(self, insert: Insert) -> None:
        """Make `insert` what the system says to the last turn."""
        self.turns[-1] = replace(
            self.turns[-1],
            observation=insert.text,
            inserted_tokens=len(insert.token_ids),
            passages=insert.passages,
        )

    def finish(self, stop: StopReason) -> BaselineOutcome:
        """The outcome, without words of the system that no turn of the model followed."""
        if self.turns:
            self.insert(NOTHING)
        return BaselineOutcome(
            self.turns, stop, self.generate_seconds, self.search_seconds, self.aside_tokens
        )

    async def _write(self, ids: list[int], stop: Sequence[str], room: int) -> Written:
        if room < 1:
            return Written([], "", StopReason.TOKEN_BUDGET)
        sampled = await self._generate(ids, stop, min(self.tools.settings.turn_tokens, room))
        reason = None if sampled else StopReason.EMPTY_GENERATION
        return Written(sampled, self.tokenizer.decode(sampled), reason)

    async def _generate(self, ids: list[int], stop: Sequence[str], max_tokens: int) -> list[int]:
        started = time.perf_counter()
        generation = await generate_within(self.tools.engine.until(stop), ids, max_tokens)
        self.generate_seconds += time.perf_counter() - started
        return generation.token_ids

    async def _search(self, query: str) -> list[Passage] | None:
        started = time.perf_counter()
        passages = await find_passages(self.tools.retriever, query, self.tools.settings.top_k)
        self.search_seconds += time.perf_counter() - started
        return passages
