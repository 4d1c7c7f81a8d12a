"""What the server counts, in Prometheus's terms; shown by /metrics."""

import time
from http import HTTPStatus

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from retrieval_server.engines.online.counts import REGISTRY as ONLINE_REGISTRY

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_QUERIES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class Metrics:
    """The counters of one server; each app has its own registry."""

    media_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.requests = Counter(
            "retriever_requests",
            "Answered /retrieve requests.",
            ["status"],
            registry=self._registry,
        )
        self.latency = Histogram(
            "retriever_request_seconds",
            "Time from request to answer.",
            buckets=_SECONDS,
            registry=self._registry,
        )
        self.batch_queries = Histogram(
            "retriever_batch_queries",
            "Queries searched together.",
            buckets=_QUERIES,
            registry=self._registry,
        )
        self.batch_seconds = Histogram(
            "retriever_batch_seconds",
            "Time to encode, search and fetch one batch.",
            buckets=_SECONDS,
            registry=self._registry,
        )
        self.queued = Gauge(
            "retriever_queue_queries", "Queries waiting for a batch.", registry=self._registry
        )
        self.shared = Counter(
            "retriever_shared_queries",
            "Queries answered by an identical one in flight.",
            registry=self._registry,
        )

    def render(self) -> bytes:
        """Return the text exposition format."""
        return generate_latest(self._registry) + generate_latest(ONLINE_REGISTRY)


class RequestMetrics:
    """ASGI middleware: counts the answers of one path by status, and their time."""

    def __init__(self, app: ASGIApp, metrics: Metrics, path: str) -> None:
        self._app = app
        self._metrics = metrics
        self._path = path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, watching the status of its answer."""
        if scope["type"] != "http" or scope["path"] != self._path:
            await self._app(scope, receive, send)
            return
        status = HTTPStatus.INTERNAL_SERVER_ERROR.value

        async def watch(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        begin = time.perf_counter()
        try:
            await self._app(scope, receive, watch)
        finally:
            self._metrics.latency.observe(time.perf_counter() - begin)
            self._metrics.requests.labels(status).inc()
