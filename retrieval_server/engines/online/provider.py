"""What a web search engine is to this server: how to ask it, and how to read what it says."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import Literal

ProviderName = Literal["serper", "serpapi", "google", "brave", "tavily"]
Keys = Mapping[str, str]
"""Environment variable -> secret."""
Reply = Mapping[str, object]
"""A decoded JSON object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One HTTP request, without its address: a POST when it has JSON, else a GET."""

    params: Mapping[str, str | int] = field(default_factory=dict, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    json: Mapping[str, str | int] | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Hit:
    """One search result; texts may be empty, `score` is None where there is only an order."""

    url: str
    title: str
    text: str
    score: float | None = None


@dataclass(frozen=True, kw_only=True)
class Provider:
    """A web search engine."""

    name: ProviderName
    base_url: str
    path: str
    variables: tuple[str, ...]
    """Environment variables that hold its keys."""
    most: int
    """Results that one request may ask for."""
    query_chars: int
    """Longer queries are refused by the engine: they are cut, at a word, before they are sent."""
    query_words: int | None = None
    request: Callable[[str, int, Keys], Ask]
    """Query, number of results and keys -> the request."""
    parse: Callable[[Reply], list[Hit]]
    """Raises ValueError, which names the field, when the reply has not the engine's form."""

    def read_keys(self, environment: Mapping[str, str]) -> Keys:
        """Take the keys from the environment.

        Raises:
            ValueError: One is missing or no key; the message names the variable, not its value.
        """
        keys = {name: environment.get(name, "").strip() for name in self.variables}
        for name, key in keys.items():
            if not key:
                raise ValueError(f"--online {self.name} needs the environment variable {name}")
            if not (key.isascii() and key.isprintable()) or " " in key:
                raise ValueError(f"the environment variable {name} holds no key: see its blanks")
        return keys

    def cut(self, query: str) -> str:
        """Shorten a query to what the engine takes."""
        words = query.split()[: self.query_words]
        text = " ".join(words)
        if len(text) <= self.query_chars:
            return text
        whole, _, _ = text[: self.query_chars + 1].rpartition(" ")
        return whole or text[: self.query_chars]


def read_hits(items: object, *, field: str, url: str, text: str) -> list[Hit]:
    """Read a list of results; what an item lacks is empty.

    Args:
        items: The list; None counts as empty.
        field: Its name in the reply, for the error.
        url: The name of an item's address.
        text: The name of an item's snippet.

    Raises:
        ValueError: It is not a list of objects.
    """
    if items is None:
        return []
    if not isinstance(items, list):
        raise ValueError(f"field '{field}' is not a list")
    if not all(isinstance(item, Mapping) for item in items):
        raise ValueError(f"field '{field}' holds something that is not an object")
    return [
        Hit(_line(item.get(url)), _line(item.get("title")), _line(item.get(text)), _score(item))
        for item in items
    ]


def _line(value: object) -> str:
    """Text on one line, without halves of characters, which JSON can carry."""
    if not isinstance(value, str):
        return ""
    return " ".join(value.encode(errors="replace").decode().split())


def _score(item: Reply) -> float | None:
    score = item.get("score")
    if isinstance(score, bool) or not isinstance(score, int | float) or not isfinite(score):
        return None
    return float(score)
