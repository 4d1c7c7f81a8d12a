"""The ways to answer a question that `search-r1 eval --method` knows, by name."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from search_r1.baselines import METHODS as BASELINES
from search_r1.baselines import direct
from search_r1.evaluation.method import Method, Tools
from search_r1.prompts import STOP_STRINGS, build_messages
from search_r1.result import RolloutResult
from search_r1.rollout import run_rollout
from search_r1.tokens import PlainTokenizer, prompt_ids

DEFAULT_METHOD: Final = "search_r1"


async def search_r1(question: str, tools: Tools) -> RolloutResult:
    """The policy searches as it was trained to: the very loop of training.

    Raises:
        ValueError: the question is empty, or the engine broke its contract.
        RetrievalUnavailableError: so many searches failed that the run must end.
    """
    messages = build_messages(question, may_search=tools.settings.may_search)
    return await run_rollout(
        prompt_ids(tools.tokenizer, messages, {}),
        generate=tools.engine.until(STOP_STRINGS),
        retriever=tools.retriever,
        tokenizer=PlainTokenizer(tools.tokenizer),
        settings=tools.settings,
    )


async def r1(question: str, tools: Tools) -> RolloutResult:
    """The same loop without searches and without a word of them, as configs/r1.yaml trains it.

    Raises:
        ValueError: the question is empty, or the engine broke its contract.
    """
    return await search_r1(
        question, replace(tools, settings=replace(tools.settings, max_searches=0))
    )


METHODS: Final[Mapping[str, Method]] = {
    DEFAULT_METHOD: search_r1,
    **BASELINES,
    # A policy that `search-r1 prepare sft` made the data of is asked as those data ask.
    "sft": direct.answer,
    "r1": r1,
}
NEVER_SEARCH: Final = frozenset({"direct", "cot", "sft", "r1"})
"""Those that need no search engine."""


def find_method(name: str) -> Method:
    """The method of a name.

    Raises:
        ValueError: there is none; the message lists those there are.
    """
    if name not in METHODS:
        raise ValueError(f"method: there is no {name!r}; give one of {', '.join(sorted(METHODS))}")
    return METHODS[name]


def searches(name: str, max_searches: int) -> bool:
    """Whether the method of a name may ask the search engine, allowed so many searches."""
    return max_searches > 0 and name not in NEVER_SEARCH
