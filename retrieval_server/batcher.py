"""Cross-request micro-batching: queries of many requests are searched together.

One batch runs at a time, in the worker thread; the next queries gather meanwhile. An idle server
starts at once. A busy one waits, at most `max_wait` seconds after the last batch, for as many
requests as that batch merged: a lone client never waits, and many clients whose answers went out
together are met together again.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from concurrent.futures import Executor

from retrieval_server.jobs import Job, JobQueue, Passages
from retrieval_server.metrics import Metrics

logger = logging.getLogger(__name__)

Search = Callable[[Sequence[str], int], list[Passages]]


class QueueFullError(Exception):
    """The queue has no room for the request.

    Attributes:
        retry_after: Whole seconds after which there should be room.
    """

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"the queue is full: try again in {retry_after} s")
        self.retry_after = retry_after


class SearchFailedError(Exception):
    """The engine raised while it answered the batch; the message says what."""


class MicroBatcher:
    """Merges concurrent `submit` calls into batches; make it inside a running event loop.

    Args:
        search: Answers a batch; called in `executor`, never twice at once.
        executor: The worker thread.
        metrics: Counts batches and queue.
        max_batch: Most distinct queries in one batch.
        max_wait: Seconds after a batch during which the next one may gather.
        max_queue: Distinct queries that may wait.
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
    ) -> None:
        self._search = search
        self._executor = executor
        self._metrics = metrics
        self._max_batch = max_batch
        self._max_wait = max_wait
        self._max_queue = max_queue
        self._jobs = JobQueue()
        self._arrival = asyncio.Event()
        self._last_requests = 1
        self._last_seconds = 0.0
        self._last_end = -math.inf
        self._running = asyncio.create_task(self._run())

    async def submit(self, queries: Sequence[str], topk: int) -> list[Passages]:
        """Search the queries with whatever else waits; one list for each, in order.

        Raises:
            QueueFullError: The queue has no room for all of them; none was accepted.
            SearchFailedError: The engine failed on a batch that had one of them.
        """
        missing = len(self._jobs.missing(queries, topk))
        if missing and len(self._jobs) + missing > self._max_queue:
            raise QueueFullError(self._retry_after())
        jobs = self._jobs.join(queries, topk)
        self._metrics.shared.inc(len(queries) - missing)
        self._metrics.queued.set(len(self._jobs))
        self._arrival.set()
        try:
            # Shielded: a request that goes away must not take a shared job with it.
            return await asyncio.shield(asyncio.gather(*(job.done for job in jobs)))
        finally:
            for job in jobs:
                self._jobs.leave(job)

    async def close(self) -> None:
        """Finish what was accepted, then stop. Submit nothing after."""
        while under_way := self._jobs.under_way():
            await asyncio.wait(under_way)
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)

    def _retry_after(self) -> int:
        batches = math.ceil(len(self._jobs) / self._max_batch)
        return max(1, math.ceil(batches * self._last_seconds))

    async def _run(self) -> None:
        while True:
            await self._gather()
            batch, self._last_requests = self._jobs.take(self._max_batch)
            self._metrics.queued.set(len(self._jobs))
            if batch:
                await self._answer(batch)

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
        return self._jobs.requests < self._last_requests and len(self._jobs) < self._max_batch

    async def _next_arrival(self) -> None:
        self._arrival.clear()
        await self._arrival.wait()

    async def _answer(self, batch: list[Job]) -> None:
        queries = [job.query for job in batch]
        topk = max(job.topk for job in batch)
        loop = asyncio.get_running_loop()
        begin = loop.time()
        try:
            answers = await loop.run_in_executor(self._executor, self._search, queries, topk)
            pairs = list(zip(batch, answers, strict=True))
        except Exception as error:  # whatever the engine raises is the answer
            logger.exception("A batch of %d queries failed", len(batch))
            for job in batch:
                self._jobs.fail(job, SearchFailedError(f"{type(error).__name__}: {error}"))
        else:
            for job, passages in pairs:
                self._jobs.finish(job, passages[: job.topk])
        self._last_end = loop.time()
        self._last_seconds = self._last_end - begin
        self._metrics.batch_queries.observe(len(batch))
        self._metrics.batch_seconds.observe(self._last_seconds)
