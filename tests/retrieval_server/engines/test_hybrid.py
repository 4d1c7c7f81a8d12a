"""Reciprocal rank fusion, by hand."""

from typing import Any

import pytest

from retrieval_server.engines.counts import PARTIAL
from retrieval_server.engines.hybrid import HybridService, fuse
from retrieval_server.jobs import PartialPassages
from retrieval_server.manifest import ManifestError


def answer(service: Any, query: str, topk: int) -> list[tuple[str, float]]:
    (passages,) = service.search([query], topk)
    return [(passage.document.id, passage.score) for passage in passages]


def test_a_passage_scores_the_sum_of_its_reciprocal_ranks(ranked: Any) -> None:
    # a: 1/61 + 1/63; b: 1/62 + 1/61; c: 1/63; d: 1/62.
    service = HybridService([ranked({"q": "abc"}), ranked({"q": "bda"})], depth=10)
    assert answer(service, "q", 4) == [
        ("b", pytest.approx(0.0325225, abs=1e-7)),
        ("a", pytest.approx(0.0322665, abs=1e-7)),
        ("d", pytest.approx(0.0161290, abs=1e-7)),
        ("c", pytest.approx(0.0158730, abs=1e-7)),
    ]
    service.close()


def test_equal_sums_go_by_the_order_of_the_engines(ranked: Any) -> None:
    service = HybridService([ranked({"q": "ab"}), ranked({"q": "cd"})], depth=10)
    assert [name for name, _ in answer(service, "q", 4)] == ["a", "c", "b", "d"]
    service.close()


def test_three_engines_add_up_to_the_same_in_any_order(ranked: Any) -> None:
    lists = [ranked({"q": order}).search(["q"], 9)[0] for order in ("abc", "cab", "bca")]
    scores = {passage.document.id: passage.score for passage in fuse(lists)}
    assert len(set(scores.values())) == 1


def test_a_passage_that_an_engine_gives_twice_counts_once(ranked: Any) -> None:
    (only,) = [ranked({"q": "aba"}).search(["q"], 9)[0]]
    assert [(p.document.id, p.score) for p in fuse([only])] == [("a", 1 / 61), ("b", 1 / 62)]


def test_a_short_answer_is_the_beginning_of_a_long_one(ranked: Any) -> None:
    first, second = ranked({"q": "abcdefg"}), ranked({"q": "gfedcba"})
    service = HybridService([first, second], depth=3)
    whole = answer(service, "q", 100)
    assert sorted(name for name, _ in whole) == ["a", "b", "c", "e", "f", "g"]
    assert all(answer(service, "q", topk) == whole[:topk] for topk in range(1, 7))
    assert {topk for _, topk in first.asked + second.asked} == {3}
    service.close()


def test_queries_keep_their_order_and_engines_their_batch(ranked: Any) -> None:
    first = ranked({"q": "ab", "r": "cd", "s": ""})
    service = HybridService([first, ranked({"q": "", "r": "d", "s": ""})], depth=5)
    found = service.search(["r", "s", "q"], 1)
    assert [[passage.document.id for passage in one] for one in found] == [["d"], [], ["a"]]
    assert first.asked == [(("r", "s", "q"), 5)]
    service.close()


def test_health_tells_the_parts(ranked: Any) -> None:
    engines = [ranked({}), ranked({})]
    service = HybridService(engines, depth=5)
    assert service.info() == {
        "engine": "hybrid",
        "rows": 7,
        "fusion": {"method": "reciprocal rank fusion", "k": 60, "depth": 5},
        "parts": [engines[0].info(), engines[1].info()],
    }
    service.close()
    assert all(engine.closed for engine in engines)


def test_indexes_of_different_corpora_are_refused(ranked: Any) -> None:
    with pytest.raises(ManifestError, match="build them all from one corpus"):
        HybridService([ranked({}), ranked({}, corpus="two")], depth=5)


def test_an_engine_that_fails_has_no_part_in_the_answer(
    ranked: Any, caplog: pytest.LogCaptureFixture
) -> None:
    service = HybridService([ranked({"q": "ab"}), ranked({})], depth=5)
    failed = PARTIAL.labels("1:ranked")
    before = failed._value.get()
    (found,) = service.search(["q"], 2)
    assert isinstance(found, PartialPassages)
    assert [passage.document.id for passage in found] == ["a", "b"]
    assert failed._value.get() == before + 1
    assert "1 queries answered without 1:ranked: KeyError" in caplog.text
    service.close()


def test_what_all_engines_answered_is_whole(ranked: Any) -> None:
    service = HybridService([ranked({"q": "a"}), ranked({"q": "a"})], depth=5)
    assert not isinstance(service.search(["q"], 1)[0], PartialPassages)
    service.close()


@pytest.mark.parametrize(("first", "strict"), [({"q": "a"}, True), ({}, False)])
def test_a_failure_fails_the_answer_if_strict_or_if_none_is_left(
    ranked: Any, first: dict[str, str], strict: bool
) -> None:
    service = HybridService([ranked(first), ranked({})], depth=5, strict=strict)
    with pytest.raises(KeyError):
        service.search(["q"], 1)
    service.close()
