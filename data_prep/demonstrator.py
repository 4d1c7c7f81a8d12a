"""A scripted policy: writes the turns of a demonstration in the words of the protocol.

It is a `search_r1.rollout.Generate`, so the real rollout makes the trajectory around it.
"""

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from data_prep.library import Library
from search_r1.observation import Tokenizer
from search_r1.prompts import Tag
from search_r1.rollout import Generation

PLANS = ("To find: {}.", "I need: {}.", "Looking for: {}.")
NEXT_THOUGHTS = ("Next: {}.", "Still missing: {}.", "Now for: {}.")
ANSWER_THOUGHTS = ("Found: {}.", "Now I know: {}.", "The passages tell: {}.")
"""When all hops are answered right; `{}` is the relation, or in a plan all relations. They are
short, for every token costs time, and a plan tells when to stop."""
BLIND_SEARCH_THOUGHTS = ("I need to look this up.", "I should search.", "Let me search for it.")
BLIND_ANSWER_THOUGHTS = ("I can answer now.", "The passages tell.", "This is enough.")
"""Otherwise: they name no relation, so they teach the tags only."""

_SEARCHES_ON = 0.5
"""Chance to search the random name rather than to answer with it."""
_YEAR = re.compile(r"\b1\d{3}\b|\b20\d{2}\b")

Hop = Mapping[str, str]
"""`title`, `relation` and `answer` of one fact, as a world's questions list them in `chain`."""


@dataclass(slots=True)
class Demonstrator:
    """Writes the turns for one question.

    By the draw of `guess_share` it answers at once with a random name of the library. Otherwise it
    searches the title of each hop in turn and answers with the last hop's answer, as long as
    the draws of `gold_share` say so. From the first that says no, it searches or answers with a
    random name out of the passages that came back last.
    """

    chain: Sequence[Hop]
    library: Library
    tokenizer: Tokenizer
    gold_share: float
    guess_share: float
    max_searches: int
    rng: random.Random
    right_hops: int = field(init=False)
    """How many hops, from the first, are answered right."""
    _searched: list[str] = field(init=False, default_factory=list)
    _read: int = field(init=False, default=0)
    _shown: str = field(init=False, default="")
    _guess: str = field(init=False, default="")

    def __post_init__(self) -> None:
        wrong = (hop for hop in range(len(self.chain)) if self.rng.random() >= self.gold_share)
        self.right_hops = next(wrong, len(self.chain))
        # No draw where nobody guesses: the rows of a seed stay what they were before guesses.
        if self.guess_share and self.rng.random() < self.guess_share:
            self.right_hops, self._guess = 0, self.library.any_title(self.rng)

    async def __call__(self, ids: list[int], max_tokens: int) -> Generation:
        """The next turn.

        Raises:
            ValueError: the budgets leave no room for the turn, or for any name to answer with.
        """
        if self._searched:
            observation = self.tokenizer.decode(ids[self._read :])
            # A message of the system may hold no name: the last passages still count then.
            self._shown = observation if self.library.titles_in(observation) else self._shown
        token_ids = self.tokenizer.encode(self._next_turn())
        if len(token_ids) > max_tokens:
            raise ValueError(
                f"turn_tokens: a demonstration needs {len(token_ids)} tokens for a turn but has "
                f"{max_tokens}; raise turn_tokens or max_response_length"
            )
        self._read = len(ids) + len(token_ids)
        return Generation(token_ids)

    def _next_turn(self) -> str:
        if self._guess:
            return self._answer(self._guess)
        done = len(self._searched)
        if done == 0:
            return self._search(self.chain[0]["title"])
        if done > self.right_hops:
            return self._random_turn()
        found = self.chain[done - 1]["answer"]
        return self._answer(found) if done == len(self.chain) else self._search(found)

    def _random_turn(self) -> str:
        names = self.library.titles_in(self._shown)
        new = [name for name in names if name not in self._searched]
        if new and len(self._searched) < self.max_searches and self.rng.random() < _SEARCHES_ON:
            return self._search(self.rng.choice(new))
        options = [*(new or names), *_YEAR.findall(self._shown)]
        if not options:
            raise ValueError("observation_tokens: no name fits into an observation; raise it")
        return self._answer(self.rng.choice(options))

    def _search(self, query: str) -> str:
        relations = [hop["relation"] for hop in self.chain]
        done = len(self._searched)
        if not self._is_right:
            thought = self.rng.choice(BLIND_SEARCH_THOUGHTS)
        elif done == 0:
            thought = self.rng.choice(PLANS).format(", then ".join(relations))
        else:
            thought = self.rng.choice(NEXT_THOUGHTS).format(relations[done])
        self._searched.append(query)
        return Tag.THINK.wrap(thought) + Tag.SEARCH.wrap(f" {query} ")

    def _answer(self, answer: str) -> str:
        thoughts = ANSWER_THOUGHTS if self._is_right else BLIND_ANSWER_THOUGHTS
        thought = self.rng.choice(thoughts).format(self.chain[-1]["relation"])
        return Tag.THINK.wrap(thought) + Tag.ANSWER.wrap(f" {answer} ")

    @property
    def _is_right(self) -> bool:
        return self.right_hops == len(self.chain)
