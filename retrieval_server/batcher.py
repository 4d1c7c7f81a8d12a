"""Cross-request micro-batching: queries of many requests are searched together.

As many batches run at the same time as there are lanes, each in a thread; the next queries gather
meanwhile. An idle server starts at once. A busy one waits, at most `max_wait` seconds after the
last batch, for as many requests as that batch merged: a lone client never waits, and clients whose
answers went out together are met together again. Of many queries a batch takes half, or a lane's
share: one part is searched while answers and new questions of another are on their way.
"""

import asyncio
import functools
import logging
import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import Final

from retrieval_server.cache import ResultCache
from retrieval_server.jobs import Job, JobQueue, PartialPassages, Passages
from retrieval_server.metrics import Metrics

logger = logging.getLogger(__name__)

_FULL_PASS: Final = 16
"""Queries that an engine answers about as fast, each, as it does many more."""

Search = Callable[[Sequence[str], int], list[Passages]]
UseCores = Callable[[bool], None]


class QueueFullError(Exception):
    """The queue has no room for the request.

    Attributes:
        retry_after: Whole seconds after which there should be room.
    """

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"the queue is full: try again in {retry_after} s")
        self.retry_after = retry_after


class SearchFailedError(Exception):
    """The engine raised while it answered a query; the message says what."""


class DeadlineError(Exception):
    """The request's time ran out before its queries were answered."""


class MicroBatcher:
    """Merges concurrent `submit` calls into batches; make it inside a running event loop.

    Args:
        search: Answers a batch; called in `executor`, at most `lanes` times at once.
        executor: The worker threads, one a lane.
        metrics: Counts batches, queue and cache.
        max_batch: Most distinct queries in one batch.
        max_wait: Seconds after a batch during which the next one may gather.
        max_queue: Distinct queries that may wait.
        cache_size: Queries whose answers are remembered; 0 for none.
        lanes: Batches that may be searched at the same time.
        use_cores: Called in the thread of a batch before it is searched, with whether it is alone.
    """

    def __init__(
        self,
        search: Search,
        executor: Executor,
        metrics: Metrics,
        *,
        max_batch: int,
        max_wait: float,
        max_queue: int,
        cache_size: int = 0,
        lanes: int = 1,
        use_cores: UseCores | None = None,
    ) -> None:
        self._search = search
        self._executor = executor
        self._metrics = metrics
        self._max_batch = max_batch
        self._max_wait = max_wait
        self._max_queue = max_queue
        self._cache = ResultCache(cache_size)
        self._loop = asyncio.get_running_loop()
        self._jobs = JobQueue()
        self._arrival = asyncio.Event()
        self._last_requests = 1
        self._expected_queries = 1
        self._last_seconds = 0.0
        self._last_end = -math.inf
        self._searched = 0
        self._use_cores = use_cores
        self._parts = max(2, lanes)
        self._gathering = asyncio.Lock()
        self._lanes = [asyncio.create_task(self._run()) for _ in range(lanes)]

    async def submit(
        self, queries: Sequence[str], topk: int, seconds: float = math.inf
    ) -> list[Passages]:
        """Search the queries with whatever else waits; one list for each, in order.

        Args:
            queries: Of one request.
            topk: Passages for each.
            seconds: How long the request can wait; what it alone waits for is then dropped.

        Raises:
            QueueFullError: The queue has no room for all of them; none was accepted.
            DeadlineError: Its time ran out.
            SearchFailedError: The engine failed on one of them.
        """
        deadline = self._loop.time() + seconds
        known = self._recall(queries, topk)
        wanted = [query for query in queries if query not in known]
        found = iter(await self._search_together(wanted, topk, deadline))
        return [known[query] if query in known else next(found) for query in queries]

    async def close(self) -> None:
        """Finish what was accepted, then stop. Submit nothing after."""
        while under_way := self._jobs.under_way():
            await asyncio.wait(under_way)
        for lane in self._lanes:
            lane.cancel()
        await asyncio.gather(*self._lanes, return_exceptions=True)

    def _recall(self, queries: Sequence[str], topk: int) -> dict[str, Passages]:
        remembered = {query: self._cache.get(query, topk) for query in queries}
        known = {query: found for query, found in remembered.items() if found is not None}
        self._metrics.cache_hits.inc(len(known))
        self._metrics.cache_misses.inc(len(remembered) - len(known))
        return known

    async def _search_together(
        self, queries: Sequence[str], topk: int, deadline: float
    ) -> list[Passages]:
        if not queries:
            return []
        if deadline <= self._loop.time():
            raise DeadlineError("the deadline was past when the request came")
        jobs = self._join(queries, topk, deadline)
        reason = "cancelled"
        try:
            async with asyncio.timeout_at(None if math.isinf(deadline) else deadline):
                # Shielded: a request that goes away must not take a shared job with it.
                found = await asyncio.shield(asyncio.gather(*(job.done for job in jobs)))
            return [passages[:topk] for passages in found]
        except TimeoutError:
            reason = "deadline"
            raise DeadlineError("the deadline passed before the queries were answered") from None
        finally:
            dropped = [self._jobs.leave(job) for job in jobs]
            self._metrics.dropped.labels(reason).inc(sum(dropped))
            self._metrics.queued.set(len(self._jobs))

    def _join(self, queries: Sequence[str], topk: int, deadline: float) -> list[Job]:
        missing = len(self._jobs.missing(queries, topk))
        if missing and len(self._jobs) + missing > self._max_queue:
            raise QueueFullError(self._retry_after())
        jobs = self._jobs.join(queries, topk, deadline)
        self._metrics.shared.inc(len(queries) - missing)
        self._metrics.queued.set(len(self._jobs))
        self._arrival.set()
        return jobs

    def _retry_after(self) -> int:
        batches = math.ceil(len(self._jobs) / self._max_batch)
        return max(1, math.ceil(batches * self._last_seconds / len(self._lanes)))

    async def _run(self) -> None:
        """One lane."""
        while True:
            async with self._gathering:
                await self._gather()
                batch, requests = self._jobs.take(self._limit(), self._loop.time())
            self._metrics.queued.set(len(self._jobs))
            if batch:
                alone = self._is_alone(batch)
                self._searched += len(batch)
                await self._answer(batch, alone=alone)
                self._searched -= len(batch)
                self._last_requests, self._last_end = requests, self._loop.time()
                self._expected_queries = len(batch) + len(self._jobs) + self._searched
            else:  # all that wait are late: let them leave
                await asyncio.sleep(0)

    def _is_alone(self, batch: list[Job]) -> bool:
        """Whether nothing else is searched nor about to be."""
        idle = self._loop.time() > self._last_end + self._max_wait
        return not self._searched and (idle or len(batch) >= self._expected_queries)

    async def _gather(self) -> None:
        while not self._jobs:
            await self._next_arrival()
        try:
            async with asyncio.timeout_at(self._last_end + self._max_wait):
                while self._expects_more():
                    await self._next_arrival()
        except TimeoutError:
            pass

    def _expects_more(self) -> bool:
        return self._jobs.requests < self._last_requests and len(self._jobs) < self._limit()

    def _limit(self) -> int:
        """How many queries the next batch takes: its part of those expected, if that is enough."""
        if self._jobs.requests == 1:
            return self._max_batch
        part = math.ceil(max(self._expected_queries, len(self._jobs)) / self._parts)
        return min(part, self._max_batch) if part >= _FULL_PASS else self._max_batch

    async def _next_arrival(self) -> None:
        self._arrival.clear()
        await self._arrival.wait()

    async def _answer(self, jobs: list[Job], *, alone: bool) -> None:
        """Search the jobs together; after an error each half alone, so that only the bad fail."""
        try:
            answers = await self._call_engine(jobs, alone=alone)
        except Exception as error:  # whatever the engine raises is the answer
            self._metrics.search_errors.inc()
            reason = f"{type(error).__name__}: {error}"
            if len(jobs) == 1:
                logger.exception("A query failed")
                self._jobs.fail(jobs[0], SearchFailedError(reason))
                return
            logger.warning("A batch of %d queries failed, now its halves: %s", len(jobs), reason)
            middle = len(jobs) // 2
            for half in (jobs[:middle], jobs[middle:]):
                if wanted := [job for job in half if not job.done.done()]:
                    await self._answer(wanted, alone=alone)
        else:
            for job, passages in answers:
                if not isinstance(passages, PartialPassages):
                    self._cache.put(job.query, job.topk, passages[: job.topk])
                self._jobs.finish(job, passages[: job.topk])
            self._metrics.cached.set(len(self._cache))

    async def _call_engine(self, jobs: list[Job], *, alone: bool) -> list[tuple[Job, Passages]]:
        queries = [job.query for job in jobs]
        topk = max(job.topk for job in jobs)
        begin = self._loop.time()
        try:
            search = functools.partial(self._search_in_lane, queries, topk, alone=alone)
            answers = await self._loop.run_in_executor(self._executor, search)
            return list(zip(jobs, answers, strict=True))
        finally:
            self._last_seconds = self._loop.time() - begin
            self._metrics.batch_queries.observe(len(jobs))
            self._metrics.batch_seconds.observe(self._last_seconds)

    def _search_in_lane(self, queries: Sequence[str], topk: int, *, alone: bool) -> list[Passages]:
        """In a thread of the executor."""
        if self._use_cores is not None:
            self._use_cores(alone)
        return self._search(queries, topk)
