"""Re-ranking: what the scorer is given, and what becomes of its scores."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from retrieval_server.encoder import FloatArray
from retrieval_server.engines.rerank import RerankService


class Table:
    """Scores by the last letter of the passage; the calls are noted."""

    model = "table"

    def __init__(self, scores: dict[str, float]) -> None:
        self.scores = scores
        self.calls: list[list[tuple[str, str]]] = []

    def score(self, pairs: Sequence[tuple[str, str]]) -> FloatArray:
        self.calls.append(list(pairs))
        return np.array([self.scores[passage[-1]] for _, passage in pairs], dtype=np.float32)


def found(service: RerankService, queries: list[str], topk: int) -> list[list[tuple[str, float]]]:
    answers = service.search(queries, topk)
    return [[(passage.document.id, passage.score) for passage in one] for one in answers]


def test_candidates_are_ordered_by_the_scorer(ranked: Any) -> None:
    service = RerankService(ranked({"q": "abcd"}), Table({"a": 1, "b": 3, "c": 2, "d": 9}), 3)
    assert found(service, ["q"], 2) == [[("b", 3.0), ("c", 2.0)]]


def test_equal_scores_stay_in_the_engines_order(ranked: Any) -> None:
    service = RerankService(ranked({"q": "cab"}), Table({"a": 1, "b": 1, "c": 1}), 3)
    assert [name for name, _ in found(service, ["q"], 3)[0]] == ["c", "a", "b"]


def test_candidates_of_all_queries_are_scored_together(ranked: Any) -> None:
    scorer = Table({"a": 1, "b": 2, "c": 3})
    service = RerankService(ranked({"q": "ab", "r": "", "s": "cba"}), scorer, 10)
    answers = found(service, ["q", "r", "s"], 2)
    assert answers == [[("b", 2.0), ("a", 1.0)], [], [("c", 3.0), ("b", 2.0)]]
    pairs = [("q", "a"), ("q", "b"), ("s", "c"), ("s", "b"), ("s", "a")]
    assert scorer.calls == [[(query, f"text {name}") for query, name in pairs]]


def test_a_short_answer_is_the_beginning_of_a_long_one(ranked: Any) -> None:
    engine = ranked({"q": "abcde"})
    service = RerankService(engine, Table({"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}), 4)
    (whole,) = found(service, ["q"], 99)
    assert [name for name, _ in whole] == ["d", "c", "b", "a"]
    assert all(found(service, ["q"], topk) == [whole[:topk]] for topk in range(1, 5))
    assert {topk for _, topk in engine.asked} == {4}


def test_nothing_to_score(ranked: Any) -> None:
    service = RerankService(ranked({"q": ""}), Table({}), 5)
    assert service.search(["q"], 3) == [[]]
    assert service.search([], 3) == []


def test_a_score_that_is_no_number_is_an_error(ranked: Any) -> None:
    service = RerankService(ranked({"q": "a"}), Table({"a": float("nan")}), 5)
    with pytest.raises(ValueError, match="re-ranker 'table' gave a score that is no number"):
        service.search(["q"], 1)


def test_health_tells_the_model_and_the_part(ranked: Any) -> None:
    engine = ranked({})
    service = RerankService(engine, Table({}), 5)
    told = {"engine": "rerank", "model": "table", "depth": 5, "rows": 7}
    assert service.info() == told | {"parts": [engine.info()]}
    service.close()
    assert engine.closed
