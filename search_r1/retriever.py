"""Queries -> passages: the `Retriever` protocol, and its client for the retrieval server.

The client speaks the retrieval API over HTTP: `POST {"queries", "topk", "return_scores"}`.
"""

import asyncio
import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import httpx
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    stop_after_attempt,
    wait_random_exponential,
)

from search_r1.passages import Passage, read_reply
from search_r1.retrieval_failures import (
    FailureMonitor,
    RetrievalError,
    RetrievalUnavailableError,
    TransientRetrievalError,
    check_status,
)

__all__ = [
    "HttpRetriever",
    "Passage",
    "RetrievalError",
    "RetrievalStats",
    "RetrievalUnavailableError",
    "Retriever",
    "RetrieverSettings",
]


class Retriever(Protocol):
    """A search engine."""

    async def search(self, queries: Sequence[str], top_k: int) -> list[list[Passage]]:
        """At most `top_k` passages a query, best first, in the order of the queries.

        Raises:
            RetrievalError: this search failed for good; others may succeed.
        """


@dataclass(frozen=True, kw_only=True)
class RetrieverSettings:
    """How to reach the retrieval server."""

    urls: tuple[str, ...] = ("http://127.0.0.1:8000/retrieve",)
    """Replicas. Searches take turns among them, and a retry goes to the next one."""
    timeout_seconds: float = 30.0
    """For a whole search, with its retries and the waiting between them."""
    attempt_timeout_seconds: float = 10.0
    """For one attempt to connect, and then for the server to reply."""
    max_attempts: int = 4
    backoff_seconds: float = 0.25
    """Upper bound of the random wait before the first retry; it doubles with each retry."""
    max_connections: int = 128
    max_failure_rate: float = 0.2
    """A larger share of failed searches ends the run with an error."""
    failure_window: int = 200
    """The share is that of so many of the most recent searches."""
    failure_min_calls: int = 20
    """The share is not judged before so many searches have ended."""


@dataclass(slots=True)
class RetrievalStats:
    """Counts since the client was made; calls overlap, and `seconds` is their sum."""

    calls: int = 0
    retries: int = 0
    failures: int = 0
    seconds: float = 0.0


class HttpRetriever:
    """The asynchronous client of one or several retrieval servers.

    One object serves any number of concurrent searches, from any event loop. Each loop has its
    own connections, opened at its first search.

    Args:
        settings: Where the servers are and how long to try.
        transport: Takes the place of the network in tests and benchmarks.
    """

    def __init__(
        self, settings: RetrieverSettings, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self.stats = RetrievalStats()
        self._settings = settings
        self._transport = transport
        self._monitor = FailureMonitor(
            settings.max_failure_rate, settings.failure_window, settings.failure_min_calls
        )
        self._first_url = itertools.cycle(range(len(settings.urls)))
        self._clients: dict[asyncio.AbstractEventLoop, httpx.AsyncClient] = {}

    async def search(self, queries: Sequence[str], top_k: int) -> list[list[Passage]]:
        """At most `top_k` passages a query, best first, in the order of the queries.

        Raises:
            RetrievalError: this search failed for good.
            RetrievalUnavailableError: so many searches failed that the run must end.
        """
        self.stats.calls += 1
        started = time.perf_counter()
        try:
            results = await self._search_in_time(queries, top_k)
        except RetrievalError as error:
            self.stats.failures += 1
            self._monitor.record_failure(error)
            raise
        finally:
            self.stats.seconds += time.perf_counter() - started
        self._monitor.record_success()
        return results

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client:
            await client.aclose()

    async def _search_in_time(self, queries: Sequence[str], top_k: int) -> list[list[Passage]]:
        request = {"queries": list(queries), "topk": top_k, "return_scores": True}
        try:
            async with asyncio.timeout(self._settings.timeout_seconds):
                results: list[list[Passage]] = await self._retrying()(
                    self._attempt, self._urls_in_turn(), request
                )
        except TimeoutError:
            reason = f"no reply within {self._settings.timeout_seconds:g} seconds"
            raise RetrievalError(", ".join(self._settings.urls), reason) from None
        return [passages[:top_k] for passages in results]

    def _retrying(self) -> AsyncRetrying:
        # A new object a search: tenacity keeps the state of an attempt in the object, a thread at
        # a time, and the searches of one event loop share a thread.
        return AsyncRetrying(
            retry=retry_if_exception_type(TransientRetrievalError),
            stop=stop_after_attempt(self._settings.max_attempts),
            wait=self._wait_s,
            before_sleep=self._count_retry,
            reraise=True,
        )

    def _wait_s(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked_for = error.retry_after_s if isinstance(error, TransientRetrievalError) else 0.0
        return max(asked_for, wait_random_exponential(self._settings.backoff_seconds)(state))

    def _count_retry(self, _state: RetryCallState) -> None:
        self.stats.retries += 1

    def _urls_in_turn(self) -> Iterator[str]:
        return itertools.islice(itertools.cycle(self._settings.urls), next(self._first_url), None)

    async def _attempt(self, urls: Iterator[str], request: dict[str, Any]) -> list[list[Passage]]:
        url = next(urls)
        try:
            response = await self._client().post(url, json=request)
        except httpx.RequestError as error:
            raise TransientRetrievalError(url, f"{type(error).__name__}: {error}") from error
        check_status(url, response)
        try:
            return read_reply(response.content, len(request["queries"]))
        except ValueError as error:
            raise RetrievalError(url, f"malformed reply: {error}") from error

    def _client(self) -> httpx.AsyncClient:
        """The running loop's client; those of closed loops are forgotten."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            client = self._new_client()
            self._clients = {k: v for k, v in self._clients.items() if not k.is_closed()}
            self._clients[loop] = client
        return self._clients[loop]

    def _new_client(self) -> httpx.AsyncClient:
        connections = self._settings.max_connections
        return httpx.AsyncClient(
            transport=self._transport,
            # No limit for the wait for a free connection: the time limit of the search is one.
            timeout=httpx.Timeout(self._settings.attempt_timeout_seconds, pool=None),
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections),
            # The server is a neighbour: a proxy that the environment names is not for it.
            trust_env=False,
        )
