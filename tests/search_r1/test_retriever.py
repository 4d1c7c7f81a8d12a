"""The client against real local servers that are down, slow, broken or in good order."""

import asyncio
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from threading import Timer
from typing import Any
from urllib.parse import urlsplit

import pytest

from search_r1.passages import Passage
from search_r1.retriever import (
    CountedRetriever,
    HttpRetriever,
    RetrievalError,
    RetrievalUnavailableError,
    RetrieverSettings,
)

HIT = {"document": {"id": "1", "contents": '"T"\ntext'}, "score": 0.5}
GOOD = {"result": [[HIT]]}
FOUND = [[Passage("1", "T", "text", 0.5)]]
NOBODY_LISTENS = "http://127.0.0.1:1/retrieve"

Serve = Callable[..., Any]


def settings(*urls: str, **changes: float) -> RetrieverSettings:
    quick: dict[str, Any] = {
        "timeout_seconds": 30.0,
        "attempt_timeout_seconds": 10.0,
        "backoff_seconds": 0.01,
    }
    return RetrieverSettings(urls=urls, **(quick | changes))


def reply(body: object = None, **fields: object) -> dict[str, object]:
    return {"body": body, **fields}


async def search(retriever: HttpRetriever, *queries: str) -> list[list[Passage]]:
    try:
        return await retriever.search(queries or ["q"], top_k=3)
    finally:
        await retriever.aclose()


def failure_of(retriever: HttpRetriever) -> str:
    with pytest.raises(RetrievalError) as caught:
        asyncio.run(search(retriever))
    assert retriever.stats.failures == 1
    return str(caught.value)


def test_a_search_sends_the_wire_request_and_returns_passages(serve: Serve) -> None:
    server = serve(reply({"result": [[HIT], []]}))
    retriever = HttpRetriever(settings(server.url))
    assert asyncio.run(search(retriever, "one", "two")) == [*FOUND, []]
    request = {"queries": ["one", "two"], "topk": 3, "return_scores": True}
    assert server.requests == [("/retrieve", request)]
    assert (retriever.stats.calls, retriever.stats.retries, retriever.stats.failures) == (1, 0, 0)
    assert retriever.stats.seconds > 0


def test_no_more_passages_than_asked_for(serve: Serve) -> None:
    server = serve(reply({"result": [[HIT] * 9]}))
    assert asyncio.run(search(HttpRetriever(settings(server.url)))) == [FOUND[0] * 3]


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
def test_a_passing_failure_is_retried(serve: Serve, status: int) -> None:
    server = serve(reply(status=status), reply(status=status), reply(GOOD))
    retriever = HttpRetriever(settings(server.url))
    assert asyncio.run(search(retriever)) == FOUND
    assert (retriever.stats.retries, retriever.stats.failures) == (2, 0)


def test_a_server_that_is_down_is_tried_until_the_deadline() -> None:
    retriever = HttpRetriever(settings(NOBODY_LISTENS, max_attempts=1, timeout_seconds=0.5))
    assert failure_of(retriever).startswith(f"{NOBODY_LISTENS}: ConnectError")
    assert retriever.stats.retries > 1
    assert retriever.stats.seconds < 5


def test_a_server_that_is_started_again_in_time_is_not_noticed(serve: Serve) -> None:
    killed = serve(reply(GOOD))
    killed.close()
    loads = [reply(status=503)] * 2
    port = urlsplit(killed.url).port
    restart = Timer(0.3, serve, [*loads, reply(GOOD)], {"port": port})
    restart.start()
    retriever = HttpRetriever(settings(killed.url, max_attempts=1))
    assert asyncio.run(search(retriever)) == FOUND
    assert retriever.stats.retries > 2
    assert retriever.stats.failures == 0
    restart.join()


def test_a_server_that_stays_broken_costs_a_bounded_number_of_attempts(serve: Serve) -> None:
    server = serve(reply(b"out of memory", status=500))
    retriever = HttpRetriever(settings(server.url, max_attempts=3))
    assert failure_of(retriever) == f"{server.url}: HTTP 500: out of memory"
    assert len(server.requests) == 3


def test_a_slow_reply_is_given_up_and_tried_again(serve: Serve) -> None:
    server = serve(reply(GOOD, delay_s=5.0), reply(GOOD))
    retriever = HttpRetriever(settings(server.url, attempt_timeout_seconds=0.7))
    assert asyncio.run(search(retriever)) == FOUND
    assert retriever.stats.retries == 1


def test_the_deadline_bounds_the_whole_search(serve: Serve) -> None:
    server = serve(reply(GOOD, delay_s=5.0))
    retriever = HttpRetriever(settings(server.url, timeout_seconds=0.2))
    assert failure_of(retriever) == f"{server.url}: no reply within 0.2 seconds"


@pytest.mark.parametrize(
    "retry_after",
    ["0.3", lambda: format_datetime(datetime.now(UTC) + timedelta(seconds=2), usegmt=True)],
    ids=["seconds", "date"],
)
def test_retry_after_is_honoured(serve: Serve, retry_after: str | Callable[[], str]) -> None:
    value = retry_after if isinstance(retry_after, str) else retry_after()
    busy = reply(status=503, headers={"Retry-After": value})
    server = serve(busy, reply(GOOD))
    started = time.perf_counter()
    assert asyncio.run(search(HttpRetriever(settings(server.url)))) == FOUND
    assert time.perf_counter() - started > 0.25


def test_a_retry_after_that_says_nothing_is_passed_over(serve: Serve) -> None:
    server = serve(reply(status=429, headers={"Retry-After": "soon"}), reply(GOOD))
    assert asyncio.run(search(HttpRetriever(settings(server.url)))) == FOUND


def test_a_wait_beyond_the_deadline_ends_at_the_deadline(serve: Serve) -> None:
    server = serve(reply(status=429, headers={"Retry-After": "3600"}))
    retriever = HttpRetriever(settings(server.url, timeout_seconds=0.2))
    assert "no reply within" in failure_of(retriever)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<html>", "malformed reply: the reply is not JSON"),
        (b"[" * 100_000, "malformed reply: the reply is nested too deeply"),
        (b"\xff", "malformed reply: "),
        ({"result": []}, "malformed reply: 'result' has 0 lists for 1 queries"),
        ({"error": "x"}, "malformed reply: field 'result' is not a list"),
        ({"result": [[{"document": {}}]]}, "malformed reply: result[0][0] has neither"),
    ],
)
def test_a_malformed_reply_is_an_error_at_once(serve: Serve, body: object, reason: str) -> None:
    server = serve(reply(body))
    assert failure_of(HttpRetriever(settings(server.url))).startswith(f"{server.url}: {reason}")
    assert len(server.requests) == 1


def test_a_refused_request_is_an_error_at_once(serve: Serve) -> None:
    server = serve(reply(b"topk must be positive", status=422))
    message = failure_of(HttpRetriever(settings(server.url)))
    assert message == f"{server.url}: HTTP 422: topk must be positive"
    assert len(server.requests) == 1


def test_searches_take_turns_among_the_servers(serve: Serve) -> None:
    servers = [serve(reply(GOOD)) for _ in range(3)]
    retriever = HttpRetriever(settings(*[server.url for server in servers]))

    async def six_searches() -> None:
        for _ in range(6):
            await retriever.search(["q"], 3)

    asyncio.run(six_searches())
    assert [len(server.requests) for server in servers] == [2, 2, 2]


def test_a_server_that_is_down_is_left_for_the_next(serve: Serve) -> None:
    server = serve(reply(GOOD))
    retriever = HttpRetriever(settings(NOBODY_LISTENS, server.url))

    async def many_searches() -> list[list[list[Passage]]]:
        return await asyncio.gather(*[retriever.search(["q"], 3) for _ in range(8)])

    assert asyncio.run(many_searches()) == [FOUND] * 8
    assert (retriever.stats.retries, retriever.stats.failures) == (4, 0)


def test_a_server_that_failed_is_not_asked_first_by_each_search(serve: Serve) -> None:
    broken, good = serve(reply(status=500)), serve(reply(GOOD))
    retriever = HttpRetriever(settings(broken.url, good.url, rest_seconds=60))

    async def searches() -> None:
        for _ in range(6):
            await retriever.search(["q"], 3)

    asyncio.run(searches())
    assert (len(broken.requests), len(good.requests)) == (1, 6)
    assert (retriever.stats.retries, retriever.stats.failures) == (1, 0)


def test_a_server_that_failed_is_asked_again_after_its_rest(serve: Serve) -> None:
    servers = serve(reply(status=500), reply(GOOD)), serve(reply(GOOD))
    retriever = HttpRetriever(settings(*[server.url for server in servers], rest_seconds=0.05))

    async def searches() -> None:
        for _ in range(4):
            await retriever.search(["q"], 3)
            await asyncio.sleep(0.06)

    asyncio.run(searches())
    assert len(servers[0].requests) >= 2


def test_a_busy_server_is_not_waited_for_while_another_can_answer(serve: Serve) -> None:
    busy = serve(reply(status=429, headers={"Retry-After": "20"}))
    good = serve(reply(GOOD))
    retriever = HttpRetriever(settings(busy.url, good.url, timeout_seconds=5))
    assert asyncio.run(search(retriever)) == FOUND
    assert (len(busy.requests), len(good.requests)) == (1, 1)


@pytest.mark.parametrize(
    ("timeout", "attempt", "wait"), [(30.0, 10.0, "wait=10"), (2.5, 10.0, "wait=3")]
)
def test_the_server_is_told_how_long_it_is_waited_for(
    serve: Serve, timeout: float, attempt: float, wait: str
) -> None:
    server = serve(reply(GOOD))
    changes = {"timeout_seconds": timeout, "attempt_timeout_seconds": attempt}
    asyncio.run(search(HttpRetriever(settings(server.url, **changes))))
    assert server.headers[0]["Prefer"] == wait


def test_the_token_of_the_environment_is_sent(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve(reply(GOOD))
    monkeypatch.delenv("RETRIEVER_TOKEN", raising=False)
    asyncio.run(search(HttpRetriever(settings(server.url))))
    monkeypatch.setenv("RETRIEVER_TOKEN", "sesame")
    asyncio.run(search(HttpRetriever(settings(server.url))))
    sent = [headers.get("Authorization") for headers in server.headers]
    assert sent == [None, "Bearer sesame"]


def test_a_trajectory_has_its_own_counts_of_a_shared_client(serve: Serve) -> None:
    server = serve(reply(status=500), reply(GOOD))
    client = HttpRetriever(settings(server.url))
    first, second = CountedRetriever(client), CountedRetriever(client)

    async def searches() -> None:
        assert await first.search(["q"], 3) == FOUND
        assert await second.search(["q"], 3) == FOUND

    asyncio.run(searches())
    counts = [(stats.calls, stats.retries) for stats in (first.stats, second.stats, client.stats)]
    assert counts == [(1, 1), (1, 0), (2, 1)]


def test_connections_are_reused(serve: Serve) -> None:
    server = serve(reply(GOOD))
    retriever = HttpRetriever(settings(server.url))

    async def searches() -> None:
        for _ in range(5):
            await retriever.search(["q"], 3)
        await retriever.aclose()

    asyncio.run(searches())
    assert len(server.connections) == 1


def test_one_client_serves_several_event_loops(serve: Serve) -> None:
    server = serve(reply(GOOD))
    retriever = HttpRetriever(settings(server.url))
    for _ in range(3):  # without aclose: the loops end with their connections open
        assert asyncio.run(retriever.search(["q"], 3)) == FOUND


def test_concurrent_searches_keep_their_own_retries(serve: Serve) -> None:
    server = serve(*[reply(status=500)] * 6, reply(GOOD))
    retriever = HttpRetriever(settings(server.url, max_attempts=8))

    async def many_searches() -> list[list[list[Passage]]]:
        return await asyncio.gather(*[retriever.search(["q"], 3) for _ in range(6)])

    assert asyncio.run(many_searches()) == [FOUND] * 6
    assert retriever.stats.retries == 6


def test_a_run_whose_searches_keep_failing_ends(serve: Serve) -> None:
    server = serve(reply(status=404))
    retriever = HttpRetriever(settings(server.url, failure_min_calls=3, max_failure_rate=0.5))

    async def searches() -> None:
        for _ in range(2):
            with pytest.raises(RetrievalError):
                await retriever.search(["q"], 3)
        await retriever.search(["q"], 3)

    with pytest.raises(RetrievalUnavailableError) as caught:
        asyncio.run(searches())
    for part in (server.url, "3 of the last 3", "100%", "search.max_failure_rate", "search.urls"):
        assert part in str(caught.value)
