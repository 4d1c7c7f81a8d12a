"""Answers that were given before: the most recently used ones, in bounded memory."""

from dataclasses import dataclass

from cachetools import LRUCache

from retrieval_server.jobs import Passages


@dataclass(frozen=True, slots=True)
class _Answer:
    topk: int
    passages: Passages


class ResultCache:
    """The passages of recent queries; a list that was asked for longer serves a shorter one.

    Args:
        size: Queries to remember; 0 remembers none.
    """

    def __init__(self, size: int) -> None:
        self._answers: LRUCache[str, _Answer] = LRUCache(size)

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, query: str, topk: int) -> Passages | None:
        """Return the best `topk` passages of a query, or None if so many are not known."""
        answer = self._answers.get(query)
        if answer is None or answer.topk < topk:
            return None
        return answer.passages[:topk]

    def put(self, query: str, topk: int, passages: Passages) -> None:
        """Remember what the engine found when it was asked for `topk` passages."""
        known = self._answers.get(query)
        if self._answers.maxsize and (known is None or known.topk <= topk):
            self._answers[query] = _Answer(topk, passages)
