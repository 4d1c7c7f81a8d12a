import pytest

from search_r1.retrieval_failures import (
    FailureMonitor,
    RetrievalError,
    RetrievalUnavailableError,
)

ERROR = RetrievalError("http://host/retrieve", "HTTP 500: x")


def test_nothing_is_judged_before_the_least_number_of_calls() -> None:
    monitor = FailureMonitor(max_rate=0.0, window=10, min_calls=3)
    monitor.record_failure(ERROR)
    monitor.record_failure(ERROR)
    with pytest.raises(RetrievalUnavailableError, match="http://host/retrieve: HTTP 500"):
        monitor.record_failure(ERROR)


def test_a_rate_at_the_limit_passes_and_one_above_ends_the_run() -> None:
    monitor = FailureMonitor(max_rate=0.5, window=10, min_calls=1)
    monitor.record_success()
    monitor.record_failure(ERROR)
    assert monitor.rate == 0.5
    with pytest.raises(RetrievalUnavailableError, match=r"67%.*allows 50%"):
        monitor.record_failure(ERROR)


def test_old_failures_leave_the_window() -> None:
    monitor = FailureMonitor(max_rate=0.9, window=4, min_calls=1)
    monitor.record_success()
    monitor.record_failure(ERROR)
    for _ in range(4):
        monitor.record_success()
    assert monitor.rate == 0.0


def test_the_rate_is_zero_before_the_first_search() -> None:
    assert FailureMonitor(max_rate=0.5, window=4, min_calls=1).rate == 0.0
