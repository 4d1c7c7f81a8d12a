"""What the web search engines are asked and how they answer, in Prometheus's terms."""

from typing import Final

from prometheus_client import Counter, Histogram

from retrieval_server.engines.counts import REGISTRY

ATTEMPTS: Final = Counter(
    "retriever_online_attempts",
    "Requests to a web search engine, by HTTP status or the kind of failure.",
    ["provider", "outcome"],
    registry=REGISTRY,
)
SECONDS: Final = Histogram(
    "retriever_online_seconds",
    "Time of one query to a web search engine, with its retries.",
    ["provider"],
    buckets=(0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32),
    registry=REGISTRY,
)
DROPPED: Final = Counter(
    "retriever_online_dropped_results",
    "Results without an address or without any text, which cannot be passages.",
    ["provider"],
    registry=REGISTRY,
)
