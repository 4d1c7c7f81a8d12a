"""Several servers that do the same: whose turn it is, and which of them rests."""

import time
from collections import deque
from collections.abc import Callable, Sequence


class Replicas:
    """Takes turns among the URLs; one that failed is asked again only after a rest.

    Args:
        urls: At least one.
        rest_seconds: How long one rests when it does not say so itself.
        clock: Seconds, never going back.
    """

    def __init__(
        self,
        urls: Sequence[str],
        rest_seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._turns = deque(urls)
        self._rest_seconds = rest_seconds
        self._clock = clock
        self._rests_until = dict.fromkeys(urls, 0.0)

    @property
    def all_rest(self) -> bool:
        """Whether every server failed lately."""
        return all(until > self._clock() for until in self._rests_until.values())

    def choose(self) -> str:
        """The next in turn of those that do not rest; if all do, the one whose rest ends first."""
        now = self._clock()
        chosen = min(self._turns, key=lambda url: max(self._rests_until[url], now))
        self._turns.remove(chosen)
        self._turns.append(chosen)
        return chosen

    def let_rest(self, url: str, asked_for_s: float) -> None:
        """Note that it failed, and for how long it asked to be left alone (0: it did not say)."""
        seconds = asked_for_s if asked_for_s > 0 else self._rest_seconds
        self._rests_until[url] = self._clock() + seconds

    def wake(self, url: str) -> None:
        """Note that it answered."""
        self._rests_until[url] = 0.0
