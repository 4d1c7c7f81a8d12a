"""Micro-batching without HTTP: when a batch starts, what is in it, who gets what."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval_server.batcher import (
    DeadlineError,
    MicroBatcher,
    QueueFullError,
    SearchFailedError,
    UseCores,
)
from retrieval_server.board import Board
from retrieval_server.jobs import PartialPassages, Passages
from retrieval_server.metrics import Metrics
from retrieval_server.schemas import Document, ScoredDocument

Scenario = Callable[[MicroBatcher], Awaitable[None]]
FOREVER = 60.0


def passages(query: str, topk: int) -> Passages:
    return [
        ScoredDocument(document=Document(id=f"{query}/{rank}", contents=""), score=-rank)
        for rank in range(topk)
    ]


class Engine:
    """Answers with the query's own name; notes batches; waits at the gate."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.batches: list[list[str]] = []
        self.error: Exception | None = None
        self.bad: set[str] = set()

    def __call__(self, queries: Sequence[str], topk: int) -> list[Passages]:
        self.batches.append(list(queries))
        assert self.gate.wait(20)
        if self.error is not None:
            raise self.error
        if self.bad & set(queries):
            raise ValueError("a bad query")
        return [passages(query, topk) for query in queries]


@pytest.fixture
def engine() -> Engine:
    return Engine()


def play(
    engine: Engine,
    scenario: Scenario,
    *,
    max_batch: int = 100,
    max_wait: float = FOREVER,
    max_queue: int = 1000,
    cache_size: int = 0,
    metrics: Metrics | None = None,
    lanes: int = 1,
    use_cores: UseCores | None = None,
) -> None:
    async def run() -> None:
        with ThreadPoolExecutor(lanes) as executor:
            batcher = MicroBatcher(
                engine,
                executor,
                metrics or Metrics(Board()),
                max_batch=max_batch,
                max_wait=max_wait,
                max_queue=max_queue,
                cache_size=cache_size,
                lanes=lanes,
                use_cores=use_cores,
            )
            try:
                async with asyncio.timeout(20):
                    await scenario(batcher)
            finally:
                engine.gate.set()
                await batcher.close()

    asyncio.run(run())


def ask(batcher: MicroBatcher, *queries: str, topk: int = 1) -> "asyncio.Task[list[Passages]]":
    return asyncio.create_task(batcher.submit(queries, topk))


async def busy(engine: Engine, batcher: MicroBatcher, query: str) -> "asyncio.Task[list[Passages]]":
    """Occupy the engine, which then waits at its gate."""
    engine.gate.clear()
    task = ask(batcher, query)
    seen = len(engine.batches)
    while len(engine.batches) == seen:  # noqa: ASYNC110 - the engine is in another thread
        await asyncio.sleep(0.001)
    return task


async def together(engine: Engine, batcher: MicroBatcher, *queries: str) -> None:
    """Make one batch of several requests."""
    first = await busy(engine, batcher, "first")
    tasks = [ask(batcher, query) for query in queries]
    await asyncio.sleep(0)
    engine.gate.set()
    await asyncio.gather(first, *tasks)


def test_an_idle_server_and_a_lone_client_never_wait(engine: Engine) -> None:
    async def scenario(batcher: MicroBatcher) -> None:
        begin = time.monotonic()
        for number in range(20):
            assert await batcher.submit([str(number)], 2) == [passages(str(number), 2)]
        assert time.monotonic() - begin < FOREVER / 10

    play(engine, scenario)
    assert engine.batches == [[str(number)] for number in range(20)]


def test_a_busy_server_waits_for_as_many_requests_as_it_last_merged(engine: Engine) -> None:
    async def scenario(batcher: MicroBatcher) -> None:
        await together(engine, batcher, "a", "b", "c")
        tasks = [ask(batcher, "d"), ask(batcher, "e")]
        await asyncio.sleep(0.05)
        assert not any(task.done() for task in tasks)
        await asyncio.gather(*tasks, ask(batcher, "f"))

    play(engine, scenario)
    assert engine.batches == [["first"], ["a", "b", "c"], ["d", "e", "f"]]


def test_the_wait_ends_at_its_limit(engine: Engine) -> None:
    async def scenario(batcher: MicroBatcher) -> None:
        await together(engine, batcher, "a", "b", "c")
        await asyncio.gather(ask(batcher, "d"), ask(batcher, "e"))

    play(engine, scenario, max_wait=0.02)
    assert engine.batches == [["first"], ["a", "b", "c"], ["d", "e"]]


def test_an_idle_time_makes_the_next_request_start_at_once(engine: Engine) -> None:
    async def scenario(batcher: MicroBatcher) -> None:
        await together(engine, batcher, "a", "b", "c")
        await asyncio.sleep(0.1)
        begin = time.monotonic()
        await batcher.submit(["d"], 1)
        assert time.monotonic() - begin < 0.05

    play(engine, scenario, max_wait=0.09)


def test_a_request_above_the_batch_size_is_split_and_joined(engine: Engine) -> None:
    queries = [str(number) for number in range(7)]

    async def scenario(batcher: MicroBatcher) -> None:
        assert await batcher.submit(queries, 1) == [passages(query, 1) for query in queries]

    play(engine, scenario, max_batch=3)
    assert engine.batches == [queries[:3], queries[3:6], queries[6:]]


def test_each_request_gets_its_own_topk_of_one_search(engine: Engine) -> None:
    async def scenario(batcher: MicroBatcher) -> None:
        first = await busy(engine, batcher, "first")
        tasks = [ask(batcher, "a", topk=topk) for topk in (1, 5, 3)]
        await asyncio.sleep(0)
        engine.gate.set()
        await first
        assert [len((await task)[0]) for task in tasks] == [1, 5, 3]

    play(engine, scenario)
    assert engine.batches == [["first"], ["a"]]


def test_identical_queries_share_one_search_even_while_it_runs(engine: Engine) -> None:
    async def scenario(batcher: MicroBatcher) -> None:
        first = await busy(engine, batcher, "a")
        tasks = [ask(batcher, "a"), ask(batcher, "b", "a", "b"), ask(batcher, "b")]
        await asyncio.sleep(0)
        engine.gate.set()
        await asyncio.gather(first, *tasks)
        assert await tasks[1] == [passages(query, 1) for query in "bab"]

    play(engine, scenario)
    assert engine.batches == [["a"], ["b"]]


def test_a_query_being_searched_serves_as_many_passages_and_no_more(engine: Engine) -> None:
    async def scenario(batcher: MicroBatcher) -> None:
        engine.gate.clear()
        first = ask(batcher, "a", topk=3)
        while not engine.batches:  # noqa: ASYNC110 - the engine is in another thread
            await asyncio.sleep(0.001)
        fewer, more, again = (ask(batcher, "a", topk=topk) for topk in (2, 4, 3))
        await asyncio.sleep(0)
        engine.gate.set()
        assert await first == [passages("a", 3)]
        assert await fewer == [passages("a", 2)]
        assert await more == [passages("a", 4)]
        assert await again == [passages("a", 3)]

    play(engine, scenario)
    assert engine.batches == [["a"], ["a"]]


def test_of_many_a_batch_takes_half_and_then_the_halves_alternate(engine: Engine) -> None:
    async def scenario(batcher: MicroBatcher) -> None:
        async def client(name: int) -> None:
            for turn in range(4):
                await batcher.submit([f"{name}/{turn}"], 1)

        first = await busy(engine, batcher, "first")
        clients = [asyncio.create_task(client(name)) for name in range(40)]
        await asyncio.sleep(0.01)
        engine.gate.set()
        await asyncio.gather(first, *clients)

    play(engine, scenario, max_wait=0.005)
    sizes = [len(batch) for batch in engine.batches]
    assert sizes[:3] == [1, 21, 20]  # half of 41 under way, then of 40
    assert sum(sizes) == 161


def test_one_request_is_not_halved(engine: Engine) -> None:
    async def scenario(batcher: MicroBatcher) -> None:
        await batcher.submit([str(number) for number in range(90)], 1)

    play(engine, scenario)
    assert [len(batch) for batch in engine.batches] == [90]


def test_lanes_search_at_the_same_time_and_share_the_cores_unless_one_is_alone(
    engine: Engine,
) -> None:
    alone: list[bool] = []

    async def scenario(batcher: MicroBatcher) -> None:
        first = await busy(engine, batcher, "first")
        second = await busy(engine, batcher, "second")  # although the gate is closed
        waiting = [ask(batcher, str(number)) for number in range(40)]
        await asyncio.sleep(0.01)
        assert engine.batches == [["first"], ["second"]]
        engine.gate.set()
        await asyncio.gather(first, second, *waiting)
        await asyncio.sleep(0.1)
        await batcher.submit(["last"], 1)

    play(engine, scenario, lanes=2, use_cores=alone.append, max_wait=0.01)
    sizes = [len(batch) for batch in engine.batches]
    assert sorted(engine.batches[2] + engine.batches[3]) == sorted(map(str, range(40)))
    assert sizes == [1, 1, 21, 19, 1]  # of the 41 under way, half
    assert alone == [True, False, False, False, True]


def test_closing_waits_for_every_lane(engine: Engine) -> None:
    async def scenario(batcher: MicroBatcher) -> None:
        tasks = [await busy(engine, batcher, name) for name in ("first", "second")]
        closing = asyncio.create_task(batcher.close())
        await asyncio.sleep(0.01)
        assert not closing.done()
        engine.gate.set()
        await closing
        assert all(task.done() for task in tasks)

    play(engine, scenario, lanes=2)


def test_a_cancelled_request_leaves_the_queue_but_not_the_queries_it_shares(
    engine: Engine,
) -> None:
    async def scenario(batcher: MicroBatcher) -> None:
        first = await busy(engine, batcher, "first")
        kept = ask(batcher, "shared")
        gone = ask(batcher, "only mine", "shared")
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
        engine.gate.set()
        await first
        assert await kept == [passages("shared", 1)]
        assert gone.cancelled()

    play(engine, scenario)
    assert engine.batches == [["first"], ["shared"]]


def test_a_query_given_up_while_it_runs_can_be_asked_again(engine: Engine) -> None:
    async def scenario(batcher: MicroBatcher) -> None:
        gone = await busy(engine, batcher, "a")
        gone.cancel()
        await asyncio.sleep(0)
        again = ask(batcher, "a")
        await asyncio.sleep(0)
        engine.gate.set()
        assert await again == [passages("a", 1)]

    play(engine, scenario)
    assert engine.batches == [["a"], ["a"]]


def test_a_full_queue_takes_all_of_a_request_or_nothing(engine: Engine) -> None:
    async def scenario(batcher: MicroBatcher) -> None:
        first = await busy(engine, batcher, "first")
        waiting = ask(batcher, "a", "b")
        await asyncio.sleep(0)
        with pytest.raises(QueueFullError) as refusal:
            await batcher.submit(["c", "d"], 1)
        assert refusal.value.retry_after >= 1
        shared = ask(batcher, "a", "first")  # needs no room
        fits = ask(batcher, "c")
        await asyncio.sleep(0)
        engine.gate.set()
        await asyncio.gather(first, waiting, shared, fits)

    play(engine, scenario, max_queue=3)
    assert engine.batches == [["first"], ["a", "b", "c"]]


def test_an_error_reaches_every_request_of_the_batch_and_no_other(engine: Engine) -> None:
    async def scenario(batcher: MicroBatcher) -> None:
        first = await busy(engine, batcher, "first")
        tasks = [ask(batcher, "a"), ask(batcher, "b")]
        await asyncio.sleep(0)
        engine.error = RuntimeError("broken")
        engine.gate.set()
        results = await asyncio.gather(first, *tasks, return_exceptions=True)
        assert [str(result) for result in results] == ["RuntimeError: broken"] * 3
        engine.error = None
        assert await asyncio.gather(ask(batcher, "a"), ask(batcher, "b"))

    play(engine, scenario)


def test_only_the_bad_queries_of_a_batch_fail(engine: Engine) -> None:
    async def scenario(batcher: MicroBatcher) -> None:
        first = await busy(engine, batcher, "first")
        tasks = [ask(batcher, query) for query in "abcdefgh"]
        await asyncio.sleep(0)
        engine.bad = {"c"}
        engine.gate.set()
        results = await asyncio.gather(first, *tasks, return_exceptions=True)
        assert str(results[3]) == "ValueError: a bad query"
        del results[3]
        assert results == [[passages(query, 1)] for query in ["first", *"abdefgh"]]

    play(engine, scenario)
    halves = ["abcdefgh", "abcd", "ab", "cd", "c", "d", "efgh"]
    assert engine.batches == [["first"], *map(list, halves)]


def test_what_nobody_waits_for_is_not_searched_again_after_an_error(engine: Engine) -> None:
    async def scenario(batcher: MicroBatcher) -> None:
        first = await busy(engine, batcher, "first")
        tasks = [ask(batcher, query) for query in "abcd"]
        await asyncio.sleep(0)
        engine.bad = {"a"}
        engine.gate.set()
        await first
        tasks[2].cancel()
        tasks[3].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    play(engine, scenario)
    assert engine.batches == [["first"], list("abcd"), list("ab"), ["a"], ["b"]]


def test_a_late_request_is_told_so_and_what_it_alone_waits_for_is_not_searched(
    engine: Engine,
) -> None:
    metrics = Metrics(Board())

    async def scenario(batcher: MicroBatcher) -> None:
        first = await busy(engine, batcher, "first")
        kept = ask(batcher, "shared")
        late = asyncio.create_task(batcher.submit(["only mine", "shared"], 1, seconds=0.02))
        with pytest.raises(DeadlineError, match="the deadline passed"):
            await late
        engine.gate.set()
        await first
        assert await kept == [passages("shared", 1)]

    play(engine, scenario, metrics=metrics)
    assert engine.batches == [["first"], ["shared"]]
    assert b'retriever_dropped_queries_total{reason="deadline"} 1.0' in metrics.render()
    assert b"retriever_queue_queries 0.0" in metrics.render()


def test_a_request_that_comes_late_is_not_searched(engine: Engine) -> None:
    async def scenario(batcher: MicroBatcher) -> None:
        with pytest.raises(DeadlineError, match="when the request came"):
            await batcher.submit(["a"], 1, seconds=0)
        assert await batcher.submit([], 1, seconds=0) == []

    play(engine, scenario)
    assert engine.batches == []


def test_the_deadline_holds_while_the_engine_is_busy_with_the_query(engine: Engine) -> None:
    async def scenario(batcher: MicroBatcher) -> None:
        await busy(engine, batcher, "first")
        late = asyncio.create_task(batcher.submit(["first"], 1, seconds=0.02))
        with pytest.raises(DeadlineError):
            await late

    play(engine, scenario)


def test_dropped_queries_leave_room_in_the_queue(engine: Engine) -> None:
    metrics = Metrics(Board())

    async def scenario(batcher: MicroBatcher) -> None:
        first = await busy(engine, batcher, "first")
        gone = ask(batcher, "a", "b")
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
        fits = ask(batcher, "c", "d")
        await asyncio.sleep(0)
        engine.gate.set()
        await asyncio.gather(first, fits)

    play(engine, scenario, max_queue=2, metrics=metrics)
    assert engine.batches == [["first"], ["c", "d"]]
    assert b'retriever_dropped_queries_total{reason="cancelled"} 2.0' in metrics.render()


def test_an_answer_is_remembered_and_a_longer_one_serves_a_shorter(engine: Engine) -> None:
    metrics = Metrics(Board())

    async def scenario(batcher: MicroBatcher) -> None:
        for topk in (3, 2, 3, 4, 1):
            expected = [passages(query, topk) for query in "aba"]
            assert await batcher.submit(["a", "b", "a"], topk) == expected
        assert await batcher.submit(["b", "c"], 1) == [passages("b", 1), passages("c", 1)]

    play(engine, scenario, cache_size=2, metrics=metrics)
    assert engine.batches == [["a", "b"], ["a", "b"], ["c"]]
    shown = metrics.render().decode().splitlines()
    assert "retriever_cache_hits_total 7.0" in shown  # 2 + 2 + 2 + b
    assert "retriever_cache_misses_total 5.0" in shown  # 2 + 2 + c
    assert "retriever_cache_queries 2.0" in shown


def test_the_least_recently_used_answer_is_forgotten(engine: Engine) -> None:
    async def scenario(batcher: MicroBatcher) -> None:
        for query in ("a", "b", "a", "c", "a", "b"):
            await batcher.submit([query], 1)

    play(engine, scenario, cache_size=2)
    assert engine.batches == [["a"], ["b"], ["c"], ["b"]]


def test_errors_are_not_remembered(engine: Engine) -> None:
    async def scenario(batcher: MicroBatcher) -> None:
        engine.error = RuntimeError("broken")
        with pytest.raises(SearchFailedError):
            await batcher.submit(["a"], 1)
        engine.error = None
        assert await batcher.submit(["a"], 1) == [passages("a", 1)]

    play(engine, scenario, cache_size=2)


def test_partial_answers_are_not_remembered(engine: Engine) -> None:
    def partial(queries: Sequence[str], topk: int) -> list[Passages]:
        return [PartialPassages(found) for found in engine(queries, topk)]

    async def scenario(batcher: MicroBatcher) -> None:
        batcher._search = partial
        assert await batcher.submit(["a"], 1) == [passages("a", 1)]
        batcher._search = engine
        assert await batcher.submit(["a"], 1) == [passages("a", 1)]
        assert await batcher.submit(["a"], 1) == [passages("a", 1)]

    play(engine, scenario, cache_size=2)
    assert engine.batches == [["a"], ["a"]]


def test_too_few_answers_are_an_error_not_a_hang(engine: Engine) -> None:
    def short(queries: Sequence[str], topk: int) -> list[Passages]:
        return [passages(query, topk) for query in queries[1:]]

    async def scenario(batcher: MicroBatcher) -> None:
        batcher._search = short
        with pytest.raises(SearchFailedError, match="shorter"):
            await batcher.submit(["a", "b"], 1)

    play(engine, scenario)


def test_closing_finishes_what_was_accepted(engine: Engine) -> None:
    async def scenario(batcher: MicroBatcher) -> None:
        tasks = [await busy(engine, batcher, "first"), ask(batcher, "a")]
        await asyncio.sleep(0)
        closing = asyncio.create_task(batcher.close())
        await asyncio.sleep(0.01)
        assert not closing.done()
        engine.gate.set()
        await closing
        assert [task.done() for task in tasks] == [True, True]

    play(engine, scenario)


requests = st.lists(
    st.tuples(st.lists(st.sampled_from("abcdef"), max_size=6), st.integers(1, 3)), max_size=12
)


@settings(max_examples=50)
@given(requests, st.integers(1, 5), st.integers(1, 3))
def test_whatever_is_merged_each_request_gets_its_own_answers(
    wanted: list[tuple[list[str], int]], max_batch: int, lanes: int
) -> None:
    async def scenario(batcher: MicroBatcher) -> None:
        answers = await asyncio.gather(*(batcher.submit(*request) for request in wanted))
        assert answers == [[passages(query, topk) for query in qs] for qs, topk in wanted]

    engine = Engine()
    play(engine, scenario, max_batch=max_batch, max_wait=0.001, lanes=lanes)
    assert all(len(batch) <= max_batch for batch in engine.batches)
