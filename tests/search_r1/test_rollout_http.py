"""The loop over the real client and a local server that is down, slow or broken."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from search_r1.prompts import SEARCH_FAILED_TEXT
from search_r1.result import RolloutResult
from search_r1.retriever import HttpRetriever, RetrievalUnavailableError
from search_r1.rollout import Generation, run_rollout
from search_r1.settings import SearchSettings
from search_r1.trajectory import StopReason

GOOD = {"result": [[{"document": {"id": "1", "contents": '"Ada"\nAda wrote'}, "score": 0.5}]]}
BROKEN: dict[str, dict[str, Any] | None] = {
    "down": None,
    "slow": {"body": GOOD, "delay_s": 3.0},
    "error 500": {"status": 500},
    "bad JSON": {"body": b"{"},
    "too few lists": {"body": {"result": []}},
}
NOBODY_LISTENS = "http://127.0.0.1:1/retrieve"

Play = Callable[[SearchSettings, int], list[RolloutResult]]


@pytest.fixture
def play(make_tokenizer: Callable[[], Any]) -> Play:
    """Runs so many trajectories, one after the other, each of one search and an answer."""

    async def play_all(settings: SearchSettings, count: int) -> list[RolloutResult]:
        tokenizer = make_tokenizer()
        retriever = HttpRetriever(settings)
        results = []
        for _ in range(count):
            turns = iter(["<search>who</search>", "<answer>Ada</answer>"])

            async def generate(
                ids: list[int],
                max_tokens: int,
                turns: Any = turns,
            ) -> Generation:
                return Generation(tokenizer.sampled(next(turns)))

            result = await run_rollout(
                tokenizer.encode("who?"),
                generate=generate,
                retriever=retriever,
                tokenizer=tokenizer,
                settings=settings,
            )
            results.append(result)
        await retriever.aclose()
        return results

    return lambda settings, count: asyncio.run(asyncio.wait_for(play_all(settings, count), 30))


def settings(
    url: str,
    min_calls: int,
    attempt_timeout_seconds: float = 10.0,
    timeout_seconds: float = 20.0,
) -> SearchSettings:
    return SearchSettings(
        urls=(url,),
        timeout_seconds=timeout_seconds,
        attempt_timeout_seconds=attempt_timeout_seconds,
        max_attempts=2,
        backoff_seconds=0.01,
        failure_min_calls=min_calls,
    )


def broken_settings(serve: Callable[..., Any], kind: str, min_calls: int) -> SearchSettings:
    reply = BROKEN[kind]
    url = serve(reply).url if reply else NOBODY_LISTENS
    return settings(
        url,
        min_calls,
        attempt_timeout_seconds=0.1 if kind == "slow" else 10.0,
        timeout_seconds=0.3 if kind == "down" else 20.0,
    )


def test_passages_reach_the_trajectory(serve: Callable[..., Any], play: Play) -> None:
    [result] = play(settings(serve({"body": GOOD}).url, min_calls=1), 1)
    assert 'Doc 1(Title: "Ada") Ada wrote' in result.turns[0].observation
    assert (result.searches, result.failed_searches) == (1, 0)


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_server_is_observed_and_counted(
    serve: Callable[..., Any], play: Play, kind: str
) -> None:
    [result] = play(broken_settings(serve, kind, min_calls=2), 1)
    assert SEARCH_FAILED_TEXT in result.turns[0].observation
    assert (result.searches, result.failed_searches) == (1, 1)
    assert result.stop_reason == StopReason.ANSWERED
    assert result.trajectory.inserted_tokens == result.turns[0].inserted_tokens > 0


@pytest.mark.parametrize("kind", BROKEN)
def test_a_server_that_stays_broken_ends_the_run(
    serve: Callable[..., Any], play: Play, kind: str
) -> None:
    broken = broken_settings(serve, kind, min_calls=3)
    with pytest.raises(RetrievalUnavailableError, match=f"3 of the last 3.*{broken.urls[0]}"):
        play(broken, 10)
