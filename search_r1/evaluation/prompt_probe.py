"""What a method first says to the model: asked with stand-ins, so that a manifest can hold it."""

import asyncio
from collections.abc import Sequence
from typing import Final

from search_r1.evaluation.method import Method, Tools
from search_r1.passages import Passage
from search_r1.rollout import Generate, Generation
from search_r1.settings import SearchSettings
from search_r1.tokens import HubTokenizer, PlainTokenizer

QUESTION: Final = "What is the capital of France?"
_PASSAGE: Final = Passage("0", "Title", "Text.", None)


class _AskedError(BaseException):
    """Carries the ids out of a method; none catches it."""

    def __init__(self, ids: list[int]) -> None:
        super().__init__("the method asked")
        self.ids = ids


class _Engine:
    """Never answers."""

    def until(self, stop: Sequence[str]) -> Generate:  # noqa: ARG002 - an engine's own
        return self._ask

    async def _ask(self, ids: list[int], max_tokens: int) -> Generation:  # noqa: ARG002
        raise _AskedError(ids)


class _Library:
    """Finds the same passage for every query."""

    async def search(self, queries: Sequence[str], top_k: int) -> list[list[Passage]]:  # noqa: ARG002
        return [[_PASSAGE] for _ in queries]


def first_prompt(method: Method, tokenizer: HubTokenizer, settings: SearchSettings) -> str | None:
    """The text that the method first gives the model for `QUESTION`; None if it asks no model.

    A method that retrieves first is shown one made passage.
    """
    tools = Tools(_Engine(), _Library(), tokenizer, settings)
    try:
        asyncio.run(_call(method, tools))
    except _AskedError as asked:
        return PlainTokenizer(tokenizer).decode(asked.ids)
    return None


async def _call(method: Method, tools: Tools) -> None:
    await method(QUESTION, tools)
