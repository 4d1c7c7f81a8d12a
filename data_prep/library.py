"""A world's articles in memory, as the search engine that demonstrations are made with.

It needs no encoder: it knows which article a title names, and lays others beside it.
"""

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from retrieval_server.corpus import parse_row
from search_r1.passages import Passage

_KEY_LETTERS = 5
"""Two titles look alike if a word of each begins with so many equal letters."""
_MAX_TITLE_WORDS = 6
_STAYS_AT_RANK = 0.5
"""Chance that the wanted article stands at a rank and not at a lower one."""


class Library:
    """All articles of a corpus, by title and by the words of their titles."""

    def __init__(self, passages: Iterable[Passage]) -> None:
        self._by_title = {passage.title.casefold(): passage for passage in passages}
        self._all = list(self._by_title.values())
        self._alike: dict[str, list[Passage]] = defaultdict(list)
        for passage in self._all:
            for key in _keys(passage.title):
                self._alike[key].append(passage)

    def __len__(self) -> int:
        return len(self._all)

    def find(self, query: str, top_k: int, rng: random.Random) -> list[Passage]:
        """The article that `query` names, if any, among some with like names and some others.

        The article stands at rank 1 half of the time, at rank 2 half of the rest, and so on.
        """
        wanted = self._by_title.get(query.strip().casefold())
        if wanted is None:
            return self._others(query, wanted, top_k, rng)
        found = self._others(query, wanted, top_k - 1, rng)
        found.insert(_rank(top_k - 1, rng), wanted)
        return found

    def any_title(self, rng: random.Random) -> str:
        """The title of a random article."""
        return rng.choice(self._all).title

    def titles_in(self, text: str) -> list[str]:
        """The titles that stand in `text`, each once; the longest where several begin."""
        words = re.findall(r"\w+", text.casefold())
        titles: dict[str, None] = {}
        start = 0
        while start < len(words):
            length = self._title_length(words[start : start + _MAX_TITLE_WORDS])
            if length:
                titles[self._by_title[" ".join(words[start : start + length])].title] = None
            start += max(length, 1)
        return list(titles)

    def _title_length(self, words: Sequence[str]) -> int:
        lengths = range(len(words), 0, -1)
        return next((n for n in lengths if " ".join(words[:n]) in self._by_title), 0)

    def _others(
        self, query: str, wanted: Passage | None, count: int, rng: random.Random
    ) -> list[Passage]:
        keys = sorted(_keys(query))
        pool = [p for key in keys for p in self._alike.get(key, ()) if p is not wanted]
        alike = rng.sample(pool, min(len(pool), (count + 1) // 2))
        anyone = rng.sample(self._all, min(len(self._all), 2 * count + 1))
        others = {p.id: p for p in [*alike, *anyone] if p is not wanted}
        chosen = list(others.values())[:count]
        rng.shuffle(chosen)
        return chosen


@dataclass(frozen=True, slots=True)
class Librarian:
    """A `search_r1.retriever.Retriever` over a library, with draws of its own."""

    library: Library
    rng: random.Random

    async def search(self, queries: Sequence[str], top_k: int) -> list[list[Passage]]:
        """At most `top_k` passages a query."""
        return [self.library.find(query, top_k, self.rng) for query in queries]


def read_library(corpus: Path) -> Library:
    """Read the articles of a `corpus.jsonl` into memory.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a row is wrong, or there are none; the message names file and line.
    """
    library = Library(_passages(corpus))
    if not len(library):
        raise ValueError(f"{corpus} has no rows")
    return library


def _passages(corpus: Path) -> Iterator[Passage]:
    with corpus.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                row = parse_row(line)
            except ValueError as error:
                raise ValueError(f"{corpus}:{number}: {error}") from error
            yield Passage(row.id, row.title or "", row.text or "")


def _keys(title: str) -> set[str]:
    """The beginnings of a title's words; short words tell nothing."""
    words = title.casefold().split()
    return {word[:_KEY_LETTERS] for word in words if len(word) >= _KEY_LETTERS}


def _rank(lowest: int, rng: random.Random) -> int:
    rank = 0
    while rank < lowest and rng.random() >= _STAYS_AT_RANK:
        rank += 1
    return rank
