"""The queries under way: a queue of distinct ones, shared by the requests that ask for them."""

import asyncio
import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from retrieval_server.schemas import ScoredDocument

Passages = list[ScoredDocument]


class PartialPassages(Passages):
    """An answer that one of several engines had no part in: given, but not remembered."""


@dataclass(slots=True, eq=False)
class Job:
    """One distinct query on its way; identical ones wait for the same job."""

    query: str
    topk: int
    """The most that one of them asked for: fewer passages are the beginning of more."""
    done: asyncio.Future[Passages]
    request: int
    """Which request it first came with."""
    waiters: int = 0
    deadline: float = -math.inf
    """The latest of those that wait, in the event loop's time."""


class JobQueue:
    """Jobs that wait for a batch, and an index over these and those being searched."""

    def __init__(self) -> None:
        self._waiting: dict[Job, None] = {}
        self._waiting_of: Counter[int] = Counter()
        self._unanswered: dict[Job, None] = {}
        self._latest: dict[str, Job] = {}
        """Of each query: of two, the one that asks for more."""
        self._requests = itertools.count()

    def __len__(self) -> int:
        return len(self._waiting)

    @property
    def requests(self) -> int:
        """How many requests have jobs that wait."""
        return len(self._waiting_of)

    def missing(self, queries: Sequence[str], topk: int) -> list[str]:
        """Return the distinct queries that no job will answer with so many passages, in order."""
        return list(dict.fromkeys(q for q in queries if not self._serves(q, topk)))

    def join(self, queries: Sequence[str], topk: int, deadline: float = math.inf) -> list[Job]:
        """Return the job of each query, new or shared, counting the caller as a waiter.

        A job that still waits is asked for more passages; the caller takes its first `topk`.
        """
        request = next(self._requests)
        for query in self.missing(queries, topk):
            self._add(query, topk, request)
        jobs = [self._latest[query] for query in queries]
        for job in jobs:
            job.waiters += 1
            job.topk = max(job.topk, topk)
            job.deadline = max(job.deadline, deadline)
        return jobs

    def leave(self, job: Job) -> bool:
        """Take one waiter off; return whether this drops a job that was still to be searched."""
        job.waiters -= 1
        if job.waiters or job.done.done():
            return False
        job.done.cancel()
        self._forget(job)
        waited = job in self._waiting
        if waited:
            self._take_out(job)
        return waited

    def take(self, limit: int, now: float = -math.inf) -> tuple[list[Job], int]:
        """Remove the oldest jobs, at most `limit`; also say how many requests they belong to.

        Jobs whose deadline is past stay for those who wait for them to drop.
        """
        timely = (job for job in self._waiting if job.deadline > now)
        batch = list(itertools.islice(timely, limit))
        for job in batch:
            self._take_out(job)
        return batch, len({job.request for job in batch})

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
        return [job.done for job in self._unanswered]

    def _take_out(self, job: Job) -> None:
        del self._waiting[job]
        self._waiting_of[job.request] -= 1
        if not self._waiting_of[job.request]:
            del self._waiting_of[job.request]

    def _serves(self, query: str, topk: int) -> bool:
        job = self._latest.get(query)
        return job is not None and (job in self._waiting or job.topk >= topk)

    def _add(self, query: str, topk: int, request: int) -> None:
        job = Job(query, topk, asyncio.get_running_loop().create_future(), request)
        self._latest[query] = job
        self._unanswered[job] = None
        self._waiting[job] = None
        self._waiting_of[request] += 1

    def _forget(self, job: Job) -> None:
        self._unanswered.pop(job, None)
        # Another may have taken its place.
        if self._latest.get(job.query) is job:
            del self._latest[job.query]
