"""A second look at an engine's best passages, by a model that reads query and passage together."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from retrieval_server.encoder import FloatArray
from retrieval_server.jobs import Passages
from retrieval_server.schemas import ScoredDocument
from retrieval_server.service import Service


class Scorer(Protocol):
    """Judges passages for queries."""

    @property
    def model(self) -> str:
        """Its name, for /health."""

    def score(self, pairs: Sequence[tuple[str, str]]) -> FloatArray:
        """Score (query, passage) pairs, `[len(pairs)]`: the higher, the better the match."""


class RerankService:
    """Orders the best passages of any engine anew.

    Args:
        engine: Finds the candidates.
        scorer: Decides their order, and gives the scores.
        depth: Candidates a query, whatever is asked for: the beginning of an answer must not
            depend on its length. No answer is longer.
    """

    def __init__(self, engine: Service, scorer: Scorer, depth: int) -> None:
        self._engine = engine
        self._scorer = scorer
        self._depth = depth

    def search(self, queries: Sequence[str], topk: int) -> list[Passages]:
        """Return the best `topk` passages of each query, at most `depth`, best first.

        The candidates of all queries are scored together.

        Raises:
            ValueError: The model gave a score that is not a number.
        """
        candidates = self._engine.search(queries, self._depth)
        pairs = [
            (query, passage.document.contents)
            for query, passages in zip(queries, candidates, strict=True)
            for passage in passages
        ]
        scores = self._scorer.score(pairs)
        if not np.isfinite(scores).all():
            raise ValueError(f"re-ranker '{self._scorer.model}' gave a score that is no number")
        ends = np.cumsum([len(passages) for passages in candidates], dtype=int)
        # One part more than there are lists: what follows the last, nothing.
        return [
            type(passages)(_reorder(passages, part)[:topk])
            for passages, part in zip(candidates, np.split(scores, ends), strict=False)
        ]

    def info(self) -> dict[str, object]:
        """Say which model judges how many, and what finds them."""
        part = self._engine.info()
        about = {"engine": "rerank", "model": self._scorer.model, "depth": self._depth}
        return {**about, "rows": part["rows"], "parts": [part]}

    def close(self) -> None:
        """Release the engine."""
        self._engine.close()


def _reorder(passages: Passages, scores: FloatArray) -> Passages:
    """Best score first; equal scores stay in the engine's order."""
    return [
        ScoredDocument(document=passages[place].document, score=float(scores[place]))
        for place in np.argsort(-scores, kind="stable")
    ]
