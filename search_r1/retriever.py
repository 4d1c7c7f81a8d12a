"""Queries -> passages: the `Retriever` protocol, and its client for the retrieval server.

The client speaks the retrieval API over HTTP: `POST {"queries", "topk", "return_scores"}`.
"""

import asyncio
import math
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import httpx
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    stop_before_delay,
    wait_random_exponential,
)

from search_r1.passages import Passage, read_reply
from search_r1.replicas import Replicas
from search_r1.retrieval_failures import (
    FailureMonitor,
    RetrievalError,
    RetrievalUnavailableError,
    ServerAwayError,
    TransientRetrievalError,
    check_status,
)

__all__ = [
    "CountedRetriever",
    "HttpRetriever",
    "Passage",
    "RetrievalError",
    "RetrievalStats",
    "RetrievalUnavailableError",
    "Retriever",
    "RetrieverSettings",
    "token_header",
]

TOKEN_VARIABLE: Final = "RETRIEVER_TOKEN"  # noqa: S105 - its name
"""The environment variable with the servers' bearer token, if they have one."""

_MAX_BACK_OFF: Final = 2.0
"""Seconds."""


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
    rest_seconds: float = 10.0
    """A replica that failed is not asked for so long while there are others."""
    timeout_seconds: float = 30.0
    """For a whole search, with its retries and the waiting between them."""
    attempt_timeout_seconds: float = 10.0
    """For one attempt to connect, and then for the server to reply; the server is told."""
    max_attempts: int = 4
    """At a server that is there; one that is away is tried until `timeout_seconds` have passed."""
    backoff_seconds: float = 0.25
    """Upper bound of the random wait before the first retry; it doubles, up to 2 s, with each."""
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

    def add(self, other: "RetrievalStats") -> None:
        """Count what the other counts, too."""
        self.calls += other.calls
        self.retries += other.retries
        self.failures += other.failures
        self.seconds += other.seconds


def token_header() -> dict[str, str]:
    """The header that a server with a token asks for; empty if the environment has none."""
    token = os.environ.get(TOKEN_VARIABLE)
    return {"Authorization": f"Bearer {token}"} if token else {}


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
        self._replicas = Replicas(settings.urls, settings.rest_seconds)
        self._clients: dict[asyncio.AbstractEventLoop, httpx.AsyncClient] = {}

    async def search(self, queries: Sequence[str], top_k: int) -> list[list[Passage]]:
        """At most `top_k` passages a query, best first, in the order of the queries.

        Raises:
            RetrievalError: this search failed for good.
            RetrievalUnavailableError: so many searches failed that the run must end.
        """
        return await self.counted_search(queries, top_k, RetrievalStats())

    async def counted_search(
        self, queries: Sequence[str], top_k: int, tally: RetrievalStats
    ) -> list[list[Passage]]:
        """`search` that is counted in `tally`, too."""
        own = RetrievalStats(calls=1)
        started = time.perf_counter()
        try:
            results = await self._search_in_time(queries, top_k, own)
        except RetrievalError as error:
            own.failures = 1
            self._monitor.record_failure(error)
            raise
        finally:
            own.seconds = time.perf_counter() - started
            self.stats.add(own)
            tally.add(own)
        self._monitor.record_success()
        return results

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        client = self._clients.pop(asyncio.get_running_loop(), None)
        if client:
            await client.aclose()

    async def _search_in_time(
        self, queries: Sequence[str], top_k: int, own: RetrievalStats
    ) -> list[list[Passage]]:
        request = {"queries": list(queries), "topk": top_k, "return_scores": True}
        deadline = asyncio.get_running_loop().time() + self._settings.timeout_seconds
        try:
            async with asyncio.timeout_at(deadline):
                results: list[list[Passage]] = await self._retrying(own)(
                    self._attempt, request, deadline
                )
        except TimeoutError:
            reason = f"no reply within {self._settings.timeout_seconds:g} seconds"
            raise RetrievalError(", ".join(self._settings.urls), reason) from None
        return [passages[:top_k] for passages in results]

    def _retrying(self, own: RetrievalStats) -> AsyncRetrying:
        def count(_: RetryCallState) -> None:
            own.retries += 1

        # A new object a search: tenacity keeps the state of an attempt in the object, a thread at
        # a time, and the searches of one event loop share a thread.
        return AsyncRetrying(
            retry=retry_if_exception_type(TransientRetrievalError),
            stop=self._is_spent,
            wait=self._wait_s,
            before_sleep=count,
            reraise=True,
        )

    def _is_spent(self, state: RetryCallState) -> bool:
        """A server that was killed and started again has as long to load as a search may take."""
        if state.outcome and isinstance(state.outcome.exception(), ServerAwayError):
            return stop_before_delay(self._settings.timeout_seconds)(state)
        return state.attempt_number >= self._settings.max_attempts

    def _wait_s(self, state: RetryCallState) -> float:
        """A random time, after what the server asked for unless another one can be asked."""
        error = state.outcome.exception() if state.outcome else None
        asked_for = error.retry_after_s if isinstance(error, TransientRetrievalError) else 0.0
        back_off = wait_random_exponential(self._settings.backoff_seconds, max=_MAX_BACK_OFF)(state)
        return back_off + (max(asked_for, 0.0) if self._replicas.all_rest else 0.0)

    async def _attempt(self, request: dict[str, Any], deadline: float) -> list[list[Passage]]:
        url = self._replicas.choose()
        try:
            response = await self._post(url, request, deadline)
        except TransientRetrievalError as error:
            self._replicas.let_rest(url, error.retry_after_s)
            raise
        self._replicas.wake(url)
        try:
            return read_reply(response.content, len(request["queries"]))
        except ValueError as error:
            raise RetrievalError(url, f"malformed reply: {error}") from error

    async def _post(self, url: str, request: dict[str, Any], deadline: float) -> httpx.Response:
        left = deadline - asyncio.get_running_loop().time()
        # RFC 7240, in whole seconds: the server drops what nobody waits for any more.
        wait = math.ceil(min(left, self._settings.attempt_timeout_seconds))
        try:
            response = await self._client().post(
                url, json=request, headers={"Prefer": f"wait={wait}"}
            )
        except httpx.TimeoutException as error:
            raise TransientRetrievalError(url, f"{type(error).__name__}: {error}") from error
        except httpx.RequestError as error:
            raise ServerAwayError(url, f"{type(error).__name__}: {error}") from error
        check_status(url, response)
        return response

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
            headers=token_header(),
            # The server is a neighbour: a proxy that the environment names is not for it.
            trust_env=False,
        )


@dataclass(frozen=True, slots=True)
class CountedRetriever:
    """One trajectory's use of a client that many share: `stats` has its searches alone."""

    client: HttpRetriever
    stats: RetrievalStats = field(default_factory=RetrievalStats)

    async def search(self, queries: Sequence[str], top_k: int) -> list[list[Passage]]:
        """As `HttpRetriever.search`."""
        return await self.client.counted_search(queries, top_k, self.stats)
