"""What the server counts, in Prometheus's terms; shown by /metrics.

With several workers the values of all of them are summed, through the files of Prometheus's
multi-process mode: `retrieval_server.supervisor` names their folder before a worker starts.
"""

import os
from collections.abc import Iterator
from typing import Final

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from retrieval_server.board import Board
from retrieval_server.engines.counts import REGISTRY as ENGINES

METRICS_FOLDER: Final = "PROMETHEUS_MULTIPROC_DIR"

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_QUERIES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class Metrics:
    """The counters of one server; each app has its own registry.

    Args:
        board: Tells how many workers are ready and how often one was restarted.
    """

    media_type = CONTENT_TYPE_LATEST

    def __init__(self, board: Board) -> None:
        self._registry = CollectorRegistry()
        self._shown = self._registry
        if METRICS_FOLDER in os.environ:
            self._shown = CollectorRegistry()
            MultiProcessCollector(self._shown)  # type: ignore[no-untyped-call]
        self._shown.register(_Workers(board))
        self.requests = self._counter(
            "retriever_requests", "Answered /retrieve requests; 499: the client left.", "status"
        )
        self.latency = self._histogram(
            "retriever_request_seconds", "Time from request to answer.", _SECONDS
        )
        self.batch_queries = self._histogram(
            "retriever_batch_queries", "Queries searched together.", _QUERIES
        )
        self.batch_seconds = self._histogram(
            "retriever_batch_seconds", "Time to encode, search and fetch one batch.", _SECONDS
        )
        self.queued = self._gauge("retriever_queue_queries", "Queries waiting for a batch.")
        self.shared = self._counter(
            "retriever_shared_queries", "Queries answered by an identical one in flight."
        )
        self.cache_hits = self._counter("retriever_cache_hits", "Queries answered from the cache.")
        self.cache_misses = self._counter("retriever_cache_misses", "Queries not in the cache.")
        self.cached = self._gauge("retriever_cache_queries", "Queries whose answer is remembered.")
        self.dropped = self._counter(
            "retriever_dropped_queries",
            "Queries dropped from the queue: nobody waited for them any more.",
            "reason",
        )
        self.search_errors = self._counter(
            "retriever_search_errors", "Searches, of one query or many, that the engine failed."
        )

    def render(self) -> bytes:
        """Return the text exposition format: of all workers."""
        # With several workers the collector of their files has the engines' counts, too.
        alone = self._shown is self._registry
        return generate_latest(self._shown) + (generate_latest(ENGINES) if alone else b"")

    def _counter(self, name: str, what: str, *labels: str) -> Counter:
        return Counter(name, what, labels, registry=self._registry)

    def _gauge(self, name: str, what: str) -> Gauge:
        return Gauge(name, what, registry=self._registry, multiprocess_mode="livesum")

    def _histogram(self, name: str, what: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(name, what, buckets=buckets, registry=self._registry)


class _Workers(Collector):
    """What the board tells, as it is now."""

    def __init__(self, board: Board) -> None:
        self._board = board

    def collect(self) -> Iterator[Metric]:
        """Yield workers and restarts."""
        yield GaugeMetricFamily(
            "retriever_workers_ready", "Workers that answer queries.", self._board.ready
        )
        yield CounterMetricFamily(
            "retriever_worker_restarts",
            "Workers that ended and were replaced.",
            self._board.restarts,
        )
