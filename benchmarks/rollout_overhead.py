"""What the rollout costs outside the engine and the search server, and whom a slow one holds up.

    python benchmarks/rollout_overhead.py --trajectories 64 --tokenizer FOLDER

Engine and search server are stand-ins that only wait, so all processor time is the rollout's own.
Without --step-seconds a step is taken to be as long as the waiting of its rollout alone; with the
updates that follow in training the shares are smaller.
"""

import asyncio
import json
import random
import re
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer
from rich.console import Console
from rich.table import Table

from search_r1.observation import Tokenizer
from search_r1.passages import Passage
from search_r1.prompts import INSTRUCTION, Tag, build_messages
from search_r1.retriever import HttpRetriever, Retriever, RetrieverSettings
from search_r1.rollout import Generate, Generation, run_rollout
from search_r1.settings import SearchSettings

PASSAGES = 3
WORDS_PER_PASSAGE = 100
THOUGHT = " ".join(["think"] * 60)


class WordTokenizer:
    """One id a word or sign; the stand-in when no tokenizer is given."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._ids: dict[str, int] = {}

    def encode(self, text: str) -> list[int]:
        """The ids of the pieces of `text`."""
        return [self._id_of(piece) for piece in re.findall(r"\w+|\s|[^\w\s]", text)]

    def decode(self, token_ids: list[int]) -> str:
        """The pieces of the ids, joined."""
        return "".join(self._pieces[token_id] for token_id in token_ids)

    def _id_of(self, piece: str) -> int:
        if piece not in self._ids:
            self._ids[piece] = len(self._pieces)
            self._pieces.append(piece)
        return self._ids[piece]


class HuggingFaceTokenizer:
    """A real tokenizer from a folder."""

    def __init__(self, folder: Path) -> None:
        from transformers import AutoTokenizer

        self._tokenizer: Any = AutoTokenizer.from_pretrained(folder)

    def encode(self, text: str) -> list[int]:
        """The ids of `text`, without special tokens."""
        return list(self._tokenizer.encode(text, add_special_tokens=False))

    def decode(self, token_ids: list[int]) -> str:
        """The text of the ids."""
        return str(self._tokenizer.decode(token_ids))


@dataclass(frozen=True)
class Engine:
    """Waits, then searches until the searches are spent, then answers."""

    turns: list[list[int]]
    seconds: float

    def start(self) -> Generate:
        """One trajectory's engine."""
        turns = iter(self.turns)

        async def generate(ids: list[int], max_tokens: int) -> Generation:  # noqa: ARG001 - scripted
            await asyncio.sleep(self.seconds)
            token_ids = next(turns)[:max_tokens]
            return Generation(token_ids, [-1.0] * len(token_ids))

        return generate


@dataclass(frozen=True)
class MemoryRetriever:
    """Waits, then returns the same passages."""

    passages: list[Passage]
    seconds: float

    async def search(self, queries: Sequence[str], top_k: int) -> list[list[Passage]]:
        """The same passages for every query."""
        await asyncio.sleep(self.seconds)
        return [self.passages[:top_k] for _ in queries]


@dataclass(frozen=True)
class Workload:
    """Trajectories that all do the same."""

    tokenizer: Tokenizer
    passages: list[Passage]
    searches: int

    def engine(self, seconds: float) -> Engine:
        """An engine that needs `seconds` a turn."""
        think = Tag.THINK.wrap(THOUGHT)
        search = self.tokenizer.encode(think + Tag.SEARCH.wrap("who wrote the notes"))
        answer = self.tokenizer.encode(think + Tag.ANSWER.wrap("Ada Lovelace"))
        return Engine([search] * self.searches + [answer], seconds)

    def memory(self, seconds: float) -> MemoryRetriever:
        """A search server that needs `seconds` a search, without a client."""
        return MemoryRetriever(self.passages, seconds)

    def http(self) -> HttpRetriever:
        """The real client, whose replies come without a network."""
        documents = [{"id": p.id, "contents": f'"{p.title}"\n{p.text}'} for p in self.passages]
        body = json.dumps({"result": [[{"document": d, "score": 0.5} for d in documents]]})
        transport = httpx.MockTransport(lambda _: httpx.Response(200, text=body))
        return HttpRetriever(RetrieverSettings(), transport)

    async def run_one(self, engine: Engine, retriever: Retriever) -> float:
        """Seconds that one trajectory takes."""
        started = time.perf_counter()
        result = await run_rollout(
            self.tokenizer.encode(build_messages("who wrote the notes")[0]["content"]),
            generate=engine.start(),
            retriever=retriever,
            tokenizer=self.tokenizer,
            settings=SearchSettings(max_searches=self.searches),
        )
        assert result.answer == "Ada Lovelace"
        return time.perf_counter() - started

    async def run_all(self, engines: list[Engine], retriever: Retriever) -> list[float]:
        """Seconds of each trajectory, all at once in one event loop."""
        return await asyncio.gather(*[self.run_one(engine, retriever) for engine in engines])


def made_passages() -> list[Passage]:
    """Passages as long as those of the Wikipedia dump, in common words."""
    common = [word for word in INSTRUCTION.split() if word.isalpha()]
    words = random.Random(0).choices(common, k=WORDS_PER_PASSAGE)
    return [Passage(str(n), f"Title {n}", " ".join(words), 0.5) for n in range(PASSAGES)]


def own_seconds(workload: Workload, trajectories: int, retriever: Retriever) -> float:
    """Processor seconds of the rollout's own work a trajectory."""
    engines = [workload.engine(0.0)] * trajectories
    asyncio.run(workload.run_all(engines, retriever))  # warm up
    started = time.process_time()
    asyncio.run(workload.run_all(engines, retriever))
    return (time.process_time() - started) / trajectories


def main(
    trajectories: Annotated[int, typer.Option(help="At once, in one event loop.")] = 64,
    searches: Annotated[int, typer.Option(help="Of each trajectory.")] = 3,
    turn_seconds: Annotated[float, typer.Option(help="The engine's, for one turn.")] = 2.0,
    search_seconds: Annotated[float, typer.Option(help="The server's, for one search.")] = 0.05,
    slow_factor: Annotated[float, typer.Option(help="How much slower the slow one is.")] = 3.0,
    step_seconds: Annotated[float, typer.Option(help="Of a training step as measured.")] = 0.0,
    tokenizer: Annotated[Path | None, typer.Option(help="A Hugging Face folder.")] = None,
) -> None:
    """Measure the rollout's own time, and what one slow trajectory does to the others."""
    tool: Tokenizer = HuggingFaceTokenizer(tokenizer) if tokenizer else WordTokenizer()
    workload = Workload(tool, made_passages(), searches)
    loop = own_seconds(workload, trajectories, workload.memory(0.0))
    with_client = own_seconds(workload, trajectories, workload.http())

    even = [workload.engine(turn_seconds)] * trajectories
    mixed = [workload.engine(turn_seconds * slow_factor), *even[1:]]
    server = workload.memory(search_seconds)
    without = asyncio.run(workload.run_all(even, server))[1:]
    slow, *others = asyncio.run(workload.run_all(mixed, server))

    waiting = (searches + 1) * turn_seconds + searches * search_seconds
    step = step_seconds or waiting
    table = Table("measure", "value", title=f"{trajectories} trajectories, {searches} searches")
    table.add_row("loop, of one trajectory", f"{loop * 1e3:.2f} ms")
    table.add_row("loop and HTTP client, of one trajectory", f"{with_client * 1e3:.2f} ms")
    table.add_row("waiting for engine and server", f"{waiting:.2f} s")
    table.add_row("loop, of all, in a step", f"{loop * trajectories / step:.2%}")
    table.add_row(
        "loop and HTTP client, of all, in a step", f"{with_client * trajectories / step:.2%}"
    )
    table.add_row("time of the slow one", f"{slow / waiting:.2f} x")
    ratio = statistics.median(others) / statistics.median(without)
    table.add_row("median time of the others, with it / without it", f"{ratio:.3f}")
    table.add_row(
        "longest time of the others, with it / without it", f"{max(others) / max(without):.3f}"
    )
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
