"""What a way to answer questions is: Search-R1 itself and each baseline are one function.

A method gets a question and the tools of the run, and returns how it answered. It knows no engine,
no file and no metric, so every method runs on the same engine, retriever and scoring.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from search_r1.retriever import Retriever
from search_r1.rollout import Generate
from search_r1.settings import SearchSettings
from search_r1.tokens import HubTokenizer


class Engine(Protocol):
    """What generates, for many questions at once."""

    def until(self, stop: Sequence[str]) -> Generate:
        """The engine as the rollout uses it, stopping behind the first of `stop`, which it keeps.

        With no stop string it stops at the model's own end of turn only.
        """


@dataclass(frozen=True, slots=True)
class Tools:
    """What every method works with."""

    engine: Engine
    retriever: Retriever
    tokenizer: HubTokenizer
    """The policy's."""
    settings: SearchSettings
    """Budgets and `top_k`, the same for every method."""


class Outcome(Protocol):
    """How a question was answered; `search_r1.result.RolloutResult` is one."""

    @property
    def answer(self) -> str | None:
        """The prediction; None if there was none."""

    def record(self) -> dict[str, Any]:
        """JSON data with the keys of `search_r1.result.RolloutResult.record`."""


class Method(Protocol):
    """A way to answer a question."""

    async def __call__(self, question: str, tools: Tools) -> Outcome:
        """Answer one question.

        Raises:
            ValueError: the question is empty, or the engine broke its contract.
            RetrievalUnavailableError: so many searches failed that the run must end.
        """
