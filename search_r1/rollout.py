"""The one loop: a question's ids -> generate, parse, search, observe -> a finished trajectory.

It knows no engine and no trainer. What generates and what searches are two one-method protocols,
so a test passes functions, and `search_r1.agent_loop` passes verl's engine.
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from search_r1.actions import Action, Answer, Search, kept_text, parse_action
from search_r1.observation import NOTHING, Insert, Tokenizer, fit_message, fit_passages, fit_text
from search_r1.passages import Passage
from search_r1.prompts import ANSWER_NOW_MESSAGE, INVALID_ACTION_MESSAGE, SEARCH_FAILED_TEXT
from search_r1.result import RolloutResult, Turn
from search_r1.retriever import RetrievalError, Retriever
from search_r1.settings import SearchSettings
from search_r1.trajectory import StopReason, Trajectory

logger = logging.getLogger(__name__)

WORTHWHILE_SHARE = 4
"""A search is not worth its cost if less than one in so many of `observation_tokens` is left."""


@dataclass(frozen=True, slots=True)
class Generation:
    """What the engine returned for one turn."""

    token_ids: list[int]
    logprobs: list[float] | None = None
    finish: str | None = None
    """The engine's own word for why it stopped. The text decides what follows, not this."""


class Generate(Protocol):
    """An engine that continues token ids and stops behind the first of `prompts.STOP_STRINGS`."""

    async def __call__(self, ids: list[int], max_tokens: int) -> Generation:
        """At most `max_tokens` new ids; none if the engine has nothing to say."""


async def generate_within(generate: Generate, ids: list[int], max_tokens: int) -> Generation:
    """What the engine says next, in at most `max_tokens` ids.

    Raises:
        ValueError: the engine broke its contract.
    """
    generation = await generate(ids, max_tokens)
    if len(generation.token_ids) > max_tokens:
        raise ValueError(
            f"the engine returned {len(generation.token_ids)} tokens, {max_tokens} were asked"
        )
    return generation


async def find_passages(retriever: Retriever, query: str, top_k: int) -> list[Passage] | None:
    """The passages for a query, or None if the search failed for good."""
    try:
        [passages] = await retriever.search([query], top_k)
    except RetrievalError as error:
        logger.warning("a search failed: %s", error)
        return None
    return passages


@dataclass(frozen=True, slots=True)
class _Reply:
    """What the system answers to an action: words to insert, or that the trajectory ends."""

    insert: Insert = NOTHING
    stop: StopReason | None = None
    searched: bool = False
    search_failed: bool = False


async def run_rollout(
    prompt_ids: Sequence[int],
    *,
    generate: Generate,
    retriever: Retriever,
    tokenizer: Tokenizer,
    settings: SearchSettings,
) -> RolloutResult:
    """Let the model answer one question, searching as it likes (paper, algorithm 1).

    The trajectory never ends on words of the system. It is empty if the engine says nothing or
    the prompt fills the budget; a trainer that needs one token a row must pad it with mask 0.

    Args:
        prompt_ids: The whole prompt, chat template included; never cut.
        generate: The policy's engine.
        retriever: The search engine. A `RetrievalError` becomes an observation that says so; any
            other error of it propagates.
        tokenizer: The policy's tokenizer, to read what was sampled and to write observations.
        settings: Budgets and `top_k`.

    Raises:
        ValueError: the engine broke its contract.
        RetrievalUnavailableError: so many searches failed that the run must end.
    """
    rollout = _Rollout(Trajectory(list(prompt_ids)), generate, retriever, tokenizer, settings)
    stop = None
    while stop is None:
        stop = await rollout.play_turn()
    return rollout.finish(stop)


@dataclass(slots=True)
class _Rollout:
    trajectory: Trajectory
    generate: Generate
    retriever: Retriever
    tokenizer: Tokenizer
    settings: SearchSettings
    turns: list[Turn] = field(default_factory=list)
    must_answer: bool = False
    generate_seconds: float = 0.0
    search_seconds: float = 0.0

    async def play_turn(self) -> StopReason | None:
        """The model writes, the system replies; a reason if this was the last turn."""
        room = self.settings.room(self.trajectory)
        if room < 1:
            return StopReason.TOKEN_BUDGET
        sampled = await self._generate(min(self.settings.turn_tokens, room))
        if not sampled:
            return StopReason.EMPTY_GENERATION
        text = kept_text(self.tokenizer.decode(sampled))
        action = parse_action(text)
        reply = await self._reply_to(action)
        self._note(text, action, len(sampled), reply)
        return reply.stop

    async def _generate(self, max_tokens: int) -> list[int]:
        started = time.perf_counter()
        generation = await generate_within(self.generate, self.trajectory.ids, max_tokens)
        self.generate_seconds += time.perf_counter() - started
        self.trajectory.append_sampled(generation.token_ids, generation.logprobs)
        return generation.token_ids

    async def _reply_to(self, action: Action) -> _Reply:
        if isinstance(action, Answer):
            return _Reply(stop=StopReason.ANSWERED)
        if self.must_answer:
            return _Reply(stop=StopReason.TOKEN_BUDGET)
        if len(self.turns) == self.settings.max_searches:
            searching = isinstance(action, Search)
            return _Reply(stop=StopReason.SEARCH_BUDGET if searching else StopReason.TURN_BUDGET)
        if isinstance(action, Search):
            return await self._search(action.query)
        return self._say(INVALID_ACTION_MESSAGE)

    async def _search(self, query: str) -> _Reply:
        room = self.settings.room_for_insert(self.trajectory)
        budget = min(room, self.settings.observation_tokens)
        if budget * WORTHWHILE_SHARE < self.settings.observation_tokens:
            return self._ask_for_the_answer()
        passages = await self._find(query)
        if passages is None:
            insert = fit_text(SEARCH_FAILED_TEXT, self.tokenizer, budget)
        else:
            insert = fit_passages(passages, self.tokenizer, budget)
        reply = _Reply(insert) if insert else self._ask_for_the_answer()
        return replace(reply, searched=True, search_failed=passages is None)

    async def _find(self, query: str) -> list[Passage] | None:
        started = time.perf_counter()
        passages = await find_passages(self.retriever, query, self.settings.top_k)
        self.search_seconds += time.perf_counter() - started
        return passages

    def _ask_for_the_answer(self) -> _Reply:
        self.must_answer = True
        return self._say(ANSWER_NOW_MESSAGE)

    def _say(self, message: str) -> _Reply:
        room = self.settings.room_for_insert(self.trajectory)
        insert = fit_message(message, self.tokenizer, room)
        return _Reply(insert) if insert else _Reply(stop=StopReason.TOKEN_BUDGET)

    def _note(self, text: str, action: Action, sampled_tokens: int, reply: _Reply) -> None:
        insert = reply.insert
        masked = self.settings.mask_retrieved or not insert.is_retrieved
        self.trajectory.append_inserted(insert.token_ids, masked=masked)
        self.turns.append(
            Turn(
                text,
                action,
                sampled_tokens,
                observation=insert.text,
                inserted_tokens=len(insert.token_ids),
                passages=insert.passages,
                searched=reply.searched,
                search_failed=reply.search_failed,
            )
        )

    def finish(self, stop: StopReason) -> RolloutResult:
        """The result, without words of the system that no turn of the model followed."""
        if self.trajectory.drop_trailing_inserted():
            self.turns[-1] = replace(self.turns[-1], observation="", inserted_tokens=0, passages=())
        return RolloutResult(
            self.trajectory, self.turns, stop, self.generate_seconds, self.search_seconds
        )
