"""The server under examination: requests to it, and its replies read as far as they can be."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from math import isclose, isfinite
from typing import Any, Final

import httpx

_TIMEOUT_S: Final = 60.0
"""For any request. What is too slow is a rule of its own."""
_SEEDS: Final = (
    "Who was the first to walk on the Moon?",
    "the capital city of a country",
    "a film and its director",
    "river",
    "football player",
)
_PROBES: Final = 4
_PROBE_WORDS: Final = 8
# Scores of one query differ in their last digits when it is computed beside others.
_SCORE_TOLERANCE: Final = 1e-3


class NoAnswerError(Exception):
    """The server did not answer a plain request with a list of results."""


@dataclass(frozen=True, slots=True)
class Found:
    """One result, read leniently: whatever is missing is None, for the rules to complain about."""

    document: Mapping[str, Any]
    score: Any

    @property
    def key(self) -> str:
        """What tells it from other passages."""
        return str(self.document.get("id") or self.document.get("contents") or self.document)

    @property
    def number(self) -> float | None:
        """The score, if it is a finite number."""
        known = isinstance(self.score, int | float) and not isinstance(self.score, bool)
        return float(self.score) if known and isfinite(self.score) else None


Ranking = list[Found]


class Server:
    """A retrieval server at a URL.

    Args:
        url: Where it takes POST requests.
        limit_s: Seconds in which it should answer.
    """

    def __init__(self, url: str, limit_s: float) -> None:
        self.limit_s = limit_s
        self._url = url
        self._http = httpx.Client(timeout=_TIMEOUT_S, trust_env=False)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def post(self, body: object) -> httpx.Response:
        """Send any JSON.

        Raises:
            NoAnswerError: The connection failed.
        """
        try:
            return self._http.post(self._url, json=body)
        except httpx.HTTPError as error:
            raise NoAnswerError(f"{type(error).__name__}: {error}") from error

    def ask(self, queries: Sequence[str], topk: int = 3, **more: object) -> list[Ranking]:
        """Search as this project's client does.

        Raises:
            NoAnswerError: It answered with an error, or with something else than lists of results.
        """
        body = {"queries": list(queries), "topk": topk, "return_scores": True} | more
        response = self.post(body)
        if response.status_code != httpx.codes.OK:
            raise NoAnswerError(f"{_shown(queries)} was answered {_answer(response)}")
        try:
            return [[_found(item) for item in items] for items in response.json()["result"]]
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            form = 'no JSON object {"result": [[...], ...]} with objects in the lists'
            raise NoAnswerError(f"{_shown(queries)} was answered with {form}") from error

    def ask_one(self, query: str, topk: int = 3, **more: object) -> Ranking:
        """Search for one query."""
        return next(iter(self.ask([query], topk, **more)), [])

    @cached_property
    def known(self) -> list[Found]:
        """Different passages that the server has."""
        found = (item for seed in _SEEDS for item in self.ask_one(seed, topk=5))
        return list({item.key: item for item in found}.values())

    @cached_property
    def probes(self) -> list[str]:
        """Queries with different answers: what the server's own passages begin with."""
        beginnings = dict.fromkeys(_beginning(item.document) for item in self.known)
        return list(islice((text for text in beginnings if text), _PROBES)) or list(_SEEDS[:2])

    @cached_property
    def alone(self) -> dict[str, Ranking]:
        """What each probe finds when it is asked alone."""
        return {probe: self.ask_one(probe) for probe in self.probes}


def same(one: Ranking, other: Ranking) -> bool:
    """Whether two rankings agree, but for passages that scores as good as equal let change places.

    Such a passage may also be the last of one ranking and just beyond the end of the other.
    """
    if [found.key for found in one] == [found.key for found in other]:
        return True
    scores, others = _scores(one), _scores(other)
    common = scores.keys() & others.keys()
    return (
        len(one) == len(other)
        and 2 * len(common) >= len(scores)
        and all(_nearly_equal(scores[key], others[key]) for key in common)
        and all(_nearly_equal(scores[key], one[-1].number) for key in scores.keys() - common)
        and all(_nearly_equal(others[key], other[-1].number) for key in others.keys() - common)
    )


def _scores(ranking: Ranking) -> dict[str, float | None]:
    return {found.key: found.number for found in ranking}


def _nearly_equal(one: float | None, other: float | None) -> bool:
    return one is not None and other is not None and isclose(one, other, rel_tol=_SCORE_TOLERANCE)


def _found(item: Any) -> Found:  # noqa: ANN401 - JSON
    document = item.get("document", item) if isinstance(item, Mapping) else None
    if not isinstance(document, Mapping):
        raise TypeError("not an object")
    return Found(document, item.get("score"))


def _beginning(document: Mapping[str, Any]) -> str:
    words: Iterator[str] = iter(str(document.get("contents") or document.get("text")).split())
    return " ".join(islice(words, _PROBE_WORDS)).replace('"', "")


def _shown(queries: Sequence[str]) -> str:
    first = repr(queries[0][:40]) if queries else "no query"
    return first if len(queries) < 2 else f"{first} and {len(queries) - 1} more"


def _answer(response: httpx.Response) -> str:
    return f"{response.status_code}: {' '.join(response.text.split())[:120]}"
