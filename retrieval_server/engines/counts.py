"""What engines count, in Prometheus's terms.

One registry for the process, since an engine is made by a factory that knows no app;
`retrieval_server.metrics` shows it at /metrics with everything else.
"""

from typing import Final

from prometheus_client import CollectorRegistry, Counter

REGISTRY: Final = CollectorRegistry()

PARTIAL: Final = Counter(
    "retriever_partial_queries",
    "Queries answered without this engine, one of several, since it failed.",
    ["engine"],
    registry=REGISTRY,
)
