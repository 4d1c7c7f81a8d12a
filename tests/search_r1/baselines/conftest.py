"""A run of any baseline over the scripted engine and the search engine in memory."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from search_r1.evaluation.method import Method, Tools
from search_r1.passages import Passage
from search_r1.rollout import Generate, Generation
from search_r1.settings import SearchSettings

QUESTION = " who wrote it"
ADA = Passage("1", "Ada", "Ada wrote notes", 0.9)


class HubFake:
    """The fake tokenizer with the interface of one of `transformers`."""

    def __init__(self, plain: Any) -> None:
        self.plain = plain
        self.chat_template: Any = None

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        return self.plain.encode(text)

    def decode(self, token_ids: list[int], *, clean_up_tokenization_spaces: bool) -> str:
        assert not clean_up_tokenization_spaces
        return self.plain.decode(token_ids)

    def apply_chat_template(self, conversation: list[dict[str, str]], **options: Any) -> list[int]:
        assert options == {"add_generation_prompt": True, "tokenize": True, "return_dict": False}
        [message] = conversation
        return self.plain.encode(f"[{message['role']}]{message['content']}[assistant]")


@dataclass
class Desk:
    """Everything that a method meets, and what it did with it."""

    tokenizer: HubFake
    engine: Any
    library: Any
    stops: list[tuple[str, ...]] = field(default_factory=list)
    """Of each call."""

    def until(self, stop: Sequence[str]) -> Generate:
        async def generate(ids: list[int], max_tokens: int) -> Generation:
            await asyncio.sleep(0)
            self.stops.append(tuple(stop))
            return Generation(self.engine.next_ids(ids, max_tokens))

        return generate

    def run(self, method: Method, question: str = QUESTION, **settings: Any) -> Any:
        tools = Tools(self, self.library, self.tokenizer, SearchSettings(**settings))
        return asyncio.run(method(question, tools))

    @property
    def prompts(self) -> list[str]:
        """What the engine was to continue in each call."""
        return [self.tokenizer.plain.decode(ids) for ids in self.engine.seen]

    def count(self, text: str) -> int:
        return len(self.tokenizer.plain.encode(text))


@pytest.fixture
def desk(
    make_tokenizer: Callable[..., Any],
    make_engine: Callable[..., Any],
    make_library: Callable[..., Any],
) -> Callable[..., Desk]:
    def make(*turns: str, error: Exception | None = None) -> Desk:
        tokenizer = make_tokenizer()
        engine = make_engine([tokenizer.sampled(turn) for turn in turns])
        return Desk(HubFake(tokenizer), engine, make_library([ADA], error))

    return make
