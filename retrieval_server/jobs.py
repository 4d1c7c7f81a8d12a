"""The queries under way: a queue of distinct ones, shared by the requests that ask for them."""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from retrieval_server.schemas import ScoredDocument

Passages = list[ScoredDocument]


@dataclass(slots=True, eq=False)
class Job:
    """One distinct query on its way; identical ones wait for the same job."""

    query: str
    topk: int
    done: asyncio.Future[Passages]
    opens_request: bool
    """Whether it is the first of its request that waits: requests are counted by these."""
    waiters: int = 0


class JobQueue:
    """Jobs that wait for a batch, and an index over these and those being searched.

    Attributes:
        requests: How many requests have jobs that wait.
    """

    def __init__(self) -> None:
        self.requests = 0
        self._waiting: deque[Job] = deque()
        self._under_way: dict[tuple[str, int], Job] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def missing(self, queries: Sequence[str], topk: int) -> list[str]:
        """Return the distinct queries that nobody has asked for yet, in order."""
        return list(dict.fromkeys(q for q in queries if (q, topk) not in self._under_way))

    def join(self, queries: Sequence[str], topk: int) -> list[Job]:
        """Return the job of each query, new or shared, counting the caller as a waiter."""
        loop = asyncio.get_running_loop()
        missing = self.missing(queries, topk)
        for number, query in enumerate(missing):
            job = Job(query, topk, loop.create_future(), opens_request=number == 0)
            self._under_way[query, topk] = job
            self._waiting.append(job)
        self.requests += bool(missing)
        jobs = [self._under_way[query, topk] for query in queries]
        for job in jobs:
            job.waiters += 1
        return jobs

    def leave(self, job: Job) -> None:
        """Take one waiter off; a job without any is dropped."""
        job.waiters -= 1
        if job.waiters == 0 and not job.done.done():
            job.done.cancel()
            self._forget(job)

    def take(self, limit: int) -> tuple[list[Job], int]:
        """Remove the oldest jobs, at most `limit`; also say how many requests they belong to."""
        batch: list[Job] = []
        requests = 0
        while self._waiting and len(batch) < limit:
            job = self._waiting.popleft()
            requests += job.opens_request
            if not job.done.cancelled():
                batch.append(job)
        self.requests -= requests
        if self._waiting and not self._waiting[0].opens_request:
            # The limit cut a request in two: its rest waits as a request of its own.
            self._waiting[0].opens_request = True
            self.requests += 1
        return batch, requests

    def finish(self, job: Job, passages: Passages) -> None:
        """Give a job its answer."""
        self._forget(job)
        if not job.done.done():
            job.done.set_result(passages)

    def fail(self, job: Job, error: Exception) -> None:
        """Give a job an error for an answer."""
        self._forget(job)
        if not job.done.done():
            job.done.set_exception(error)

    def under_way(self) -> list[asyncio.Future[Passages]]:
        """Return what is not answered yet."""
        return [job.done for job in self._under_way.values()]

    def _forget(self, job: Job) -> None:
        # A dropped job may have been replaced by a new one for the same query.
        if self._under_way.get((job.query, job.topk)) is job:
            del self._under_way[job.query, job.topk]
