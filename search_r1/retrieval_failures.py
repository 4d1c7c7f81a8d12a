"""How a search fails: the errors, and the monitor that ends a run which would train on nothing."""

from collections import deque
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx


class RetrievalError(Exception):
    """A search failed for good: its retries are spent, or retrying cannot help."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"{url}: {reason}")
        self.url = url
        self.reason = reason


class TransientRetrievalError(RetrievalError):
    """One attempt failed in a way that may pass: no connection, no reply in time, 429, 5xx."""

    def __init__(self, url: str, reason: str, retry_after_s: float = 0.0) -> None:
        super().__init__(url, reason)
        self.retry_after_s = retry_after_s


class ServerAwayError(TransientRetrievalError):
    """No server is there to answer, or it broke off or is loading: it may be on its way back."""


class RetrievalUnavailableError(RuntimeError):
    """Too large a share of the recent searches failed for good; the run must not go on."""


class FailureMonitor:
    """Watches the share of failed searches among the most recent ones.

    Args:
        max_rate: The largest share of failures that is put up with, 0 to 1.
        window: How many of the most recent searches count.
        min_calls: Nothing is judged before so many searches have ended.
    """

    def __init__(self, max_rate: float, window: int, min_calls: int) -> None:
        self._max_rate = max_rate
        self._min_calls = min_calls
        self._failed: deque[bool] = deque(maxlen=window)

    @property
    def rate(self) -> float:
        """The share of failures in the window, 0 before the first search."""
        return sum(self._failed) / len(self._failed) if self._failed else 0.0

    def record_success(self) -> None:
        """Count a search that got its passages."""
        self._failed.append(False)

    def record_failure(self, error: RetrievalError) -> None:
        """Count a search that failed for good.

        Raises:
            RetrievalUnavailableError: the share of failures is now above `max_rate`.
        """
        self._failed.append(True)
        if len(self._failed) >= self._min_calls and self.rate > self._max_rate:
            raise RetrievalUnavailableError(
                f"{sum(self._failed)} of the last {len(self._failed)} searches failed "
                f"({self.rate:.0%}; search.max_failure_rate allows {self._max_rate:.0%}). "
                f"The last error: {error}. Start or repair the retrieval server, or correct "
                "search.urls, then resume from the last checkpoint."
            ) from error


def check_status(url: str, response: httpx.Response) -> None:
    """Pass a reply with status 200.

    Raises:
        ServerAwayError: status 503, with the wait that the server asks for.
        TransientRetrievalError: status 429 or another 5xx, likewise.
        RetrievalError: any other status.
    """
    if response.status_code == httpx.codes.OK:
        return
    reason = f"HTTP {response.status_code}: {response.text[:200]}"
    if response.status_code == httpx.codes.SERVICE_UNAVAILABLE:
        raise ServerAwayError(url, reason, _retry_after_s(response))
    if response.status_code == httpx.codes.TOO_MANY_REQUESTS or response.is_server_error:
        raise TransientRetrievalError(url, reason, _retry_after_s(response))
    raise RetrievalError(url, reason)


def _retry_after_s(response: httpx.Response) -> float:
    """Seconds that the server asks to wait (a number or a date), 0 if it does not say."""
    value = response.headers.get("Retry-After", "")
    try:
        return float(value)
    except ValueError:
        pass
    try:
        return (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds()
    except (TypeError, ValueError):
        return 0.0
