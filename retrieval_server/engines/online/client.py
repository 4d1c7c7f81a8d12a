"""One query to a web search engine: retries, time limits and counts, and no key in any message."""

import json
import logging
import time
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

import httpx
from tenacity import (
    RetryCallState,
    Retrying,
    retry_if_exception_type,
    stop_after_attempt,
    stop_before_delay,
    wait_random_exponential,
)

from retrieval_server.engines.online.counts import ATTEMPTS, DROPPED, SECONDS
from retrieval_server.engines.online.provider import Hit, Keys, Provider

# It logs whole addresses, and two of the engines take the key in theirs.
logging.getLogger("httpx").setLevel(logging.WARNING)

_MAX_ATTEMPTS: Final = 4
_SHOWN_CHARS: Final = 300


class OnlineError(OSError):
    """The engine did not answer a query; the message holds no key."""


class TransientOnlineError(OnlineError):
    """Worth another attempt.

    Attributes:
        retry_after: Seconds that the engine asks to wait.
    """

    def __init__(self, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


@dataclass(frozen=True, kw_only=True)
class OnlineSettings:
    """How to reach a web search engine."""

    base_url: str | None = None
    """In place of the engine's own address."""
    timeout_seconds: float = 8.0
    """For a query with its retries; half of it for one attempt."""
    concurrency: int = 16
    """Queries asked at the same time."""
    backoff_seconds: float = 0.5
    """Upper bound of the random wait before the first retry; it doubles with each retry."""


class OnlineClient:
    """Asks one web search engine; its methods may be called from many threads.

    Args:
        provider: The engine.
        keys: See `Provider.read_keys`.
        settings: Address and limits.
    """

    def __init__(self, provider: Provider, keys: Keys, settings: OnlineSettings) -> None:
        self.provider = provider
        self._keys = keys
        self._settings = settings
        self._url = (settings.base_url or provider.base_url).rstrip("/") + provider.path
        connections = settings.concurrency
        self._http = httpx.Client(
            limits=httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
        )

    def fetch(self, query: str, count: int) -> list[Hit]:
        """Return at most `count` usable results, best first, each address once.

        Raises:
            OnlineError: No answer in time, a refusal, or a reply of another form.
        """
        deadline = time.monotonic() + self._settings.timeout_seconds
        with SECONDS.labels(self.provider.name).time():
            hits: list[Hit] = self._retrying()(self._attempt, query, count, deadline)
        usable = [hit for hit in hits if hit.url and (hit.title or hit.text)]
        DROPPED.labels(self.provider.name).inc(len(hits) - len(usable))
        return list({hit.url: hit for hit in reversed(usable)}.values())[::-1][:count]

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _retrying(self) -> Retrying:
        return Retrying(
            retry=retry_if_exception_type(TransientOnlineError),
            stop=stop_after_attempt(_MAX_ATTEMPTS)
            | stop_before_delay(self._settings.timeout_seconds),
            wait=self._wait_seconds,
            reraise=True,
        )

    def _wait_seconds(self, state: RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked_for = error.retry_after if isinstance(error, TransientOnlineError) else 0.0
        return max(asked_for, wait_random_exponential(self._settings.backoff_seconds)(state))

    def _attempt(self, query: str, count: int, deadline: float) -> list[Hit]:
        response = self._send(query, count, deadline)
        ATTEMPTS.labels(self.provider.name, response.status_code).inc()
        self._check_status(response)
        try:
            reply = json.loads(response.content)
            if not isinstance(reply, dict):
                raise ValueError("it is not an object")
            return self.provider.parse(reply)
        except (ValueError, RecursionError) as error:
            raise OnlineError(f"{self.provider.name}: malformed reply: {error}") from error

    def _send(self, query: str, count: int, deadline: float) -> httpx.Response:
        ask = self.provider.request(self.provider.cut(query), count, self._keys)
        left = max(deadline - time.monotonic(), 0.001)
        try:
            return self._http.request(
                "GET" if ask.json is None else "POST",
                self._url,
                params=ask.params,
                headers=ask.headers,
                json=ask.json,
                timeout=min(left, self._settings.timeout_seconds / 2),
            )
        except httpx.RequestError as error:
            kind = type(error).__name__
            ATTEMPTS.labels(self.provider.name, kind).inc()
            # Not chained: the library's error carries the request, and that the key.
            message = self._without_keys(f"{self.provider.name}: {kind}: {error}")
            raise TransientOnlineError(message) from None

    def _check_status(self, response: httpx.Response) -> None:
        if response.is_success:
            return
        status = response.status_code
        told = self._without_keys(" ".join(response.text.split()))[:_SHOWN_CHARS]
        message = f"{self.provider.name} answered {status}: {told}"
        if status == httpx.codes.TOO_MANY_REQUESTS or response.is_server_error:
            raise TransientOnlineError(message, _retry_after(response))
        raise OnlineError(f"{message} (its keys: {', '.join(self.provider.variables)})")

    def _without_keys(self, text: str) -> str:
        for name, key in self._keys.items():
            for form in {key, quote(key, safe="")}:
                text = text.replace(form, f"<{name}>")
        return text


def _retry_after(response: httpx.Response) -> float:
    """Seconds; a date, or nothing, counts as none."""
    told = response.headers.get("Retry-After", "")
    return float(told) if told.isdecimal() else 0.0
