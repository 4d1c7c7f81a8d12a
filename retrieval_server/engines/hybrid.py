"""Several engines as one: their rankings are joined by reciprocal rank fusion.

Cormack, Clarke and Buettcher, "Reciprocal Rank Fusion outperforms Condorcet and individual Rank
Learning Methods", SIGIR 2009: a passage scores the sum, over the engines that found it, of
1 / (k + rank), ranks beginning at 1 and k = 60. The engines' own scores are not looked at, so
cosines, BM25 and a web engine's order can be joined.
"""

import logging
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from math import fsum
from typing import Final

from retrieval_server.engines.counts import PARTIAL
from retrieval_server.jobs import PartialPassages, Passages
from retrieval_server.manifest import ManifestError
from retrieval_server.schemas import ScoredDocument
from retrieval_server.service import Service

logger = logging.getLogger(__name__)

RRF_K: Final = 60


class HybridService:
    """Fuses the rankings of two or more engines; passages are the same where their ids are.

    Args:
        engines: Asked at the same time; equal sums go by their order.
        depth: Passages of each engine that take part, whatever is asked for: the beginning of
            an answer must not depend on its length.
        strict: Whether the failure of one engine fails the answer; else it is the others'.

    Raises:
        ManifestError: Two engines hold different corpora, in which ids say nothing.
    """

    def __init__(self, engines: Sequence[Service], depth: int, *, strict: bool = False) -> None:
        self._engines = engines
        self._depth = depth
        self._strict = strict
        self._parts = [engine.info() for engine in engines]
        _check_same_corpus(self._parts)
        # OpenMP keeps its threads for each thread that calls it, so an engine keeps to one.
        self._threads = [ThreadPoolExecutor(1, thread_name_prefix="engine") for _ in engines]

    def search(self, queries: Sequence[str], topk: int) -> list[Passages]:
        """Return the best `topk` passages of each query, best first.

        At most what the engines found within `depth`. An engine that fails, be it by one query of
        the batch, has no part in the answers: they are `PartialPassages` then.

        Raises:
            Exception: What an engine raised, if all failed, or one and `strict`.
        """
        pairs = zip(self._threads, self._engines, strict=True)
        running = [thread.submit(engine.search, queries, self._depth) for thread, engine in pairs]
        failures = [future.exception() for future in running]
        failed = [error for error in failures if error is not None]
        if failed and (self._strict or len(failed) == len(running)):
            raise failed[0]
        found = [one.result() for one, error in zip(running, failures, strict=True) if not error]
        answers = [fuse(rankings)[:topk] for rankings in zip(*found, strict=True)]
        if not failed:
            return answers
        self._note(failures, len(queries))
        return [PartialPassages(answer) for answer in answers]

    def info(self) -> dict[str, object]:
        """Say how the engines are fused, and what each is."""
        fusion = {"method": "reciprocal rank fusion", "k": RRF_K, "depth": self._depth}
        rows = next((part["rows"] for part in self._parts if part["rows"] is not None), None)
        return {"engine": "hybrid", "rows": rows, "fusion": fusion, "parts": self._parts}

    def _note(self, failures: Sequence[BaseException | None], queries: int) -> None:
        for place, (part, error) in enumerate(zip(self._parts, failures, strict=True)):
            if error is not None:
                name = f"{place}:{part.get('provider') or part['engine']}"
                PARTIAL.labels(name).inc(queries)
                logger.error("%d queries answered without %s: %r", queries, name, error)

    def close(self) -> None:
        """Release every engine."""
        for thread in self._threads:
            thread.shutdown()
        for engine in self._engines:
            engine.close()


def fuse(rankings: Sequence[Passages], k: int = RRF_K) -> Passages:
    """Join rankings of one query, best first; equal sums go by the order of the rankings."""
    found: dict[str, ScoredDocument] = {}
    shares: dict[str, list[float]] = {}
    for ranking in rankings:
        ranks: dict[str, int] = {}
        for rank, passage in enumerate(ranking, start=1):
            found.setdefault(passage.document.id, passage)
            # The better rank, should an engine give a passage twice.
            ranks.setdefault(passage.document.id, rank)
        for name, rank in ranks.items():
            shares.setdefault(name, []).append(1 / (k + rank))
    # Exact sums: the same ranks add up to the same score in whatever order they come.
    scores = {name: fsum(parts) for name, parts in shares.items()}
    return [
        ScoredDocument(document=found[name].document, score=scores[name])
        for name in sorted(scores, key=scores.__getitem__, reverse=True)
    ]


def _check_same_corpus(parts: Sequence[dict[str, object]]) -> None:
    corpora = [part["corpus"] for part in parts if isinstance(part.get("corpus"), dict)]
    hashes = {corpus["sha256"] for corpus in corpora if isinstance(corpus, dict)}
    if len(hashes) > 1:
        raise ManifestError(
            "the indexes hold different corpora, so equal ids are not the same passage: build "
            "them all from one corpus (to search two, join their files first)"
        )
