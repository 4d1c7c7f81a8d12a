"""From start to ready to drained: loads the service off the event loop and says how far it is."""

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from typing import Final

from retrieval_server.batcher import MicroBatcher
from retrieval_server.board import Seat, WorkerState
from retrieval_server.metrics import Metrics
from retrieval_server.openmp import Cores
from retrieval_server.progress import LoadProgress
from retrieval_server.service import Report, Service
from retrieval_server.settings import Settings

logger = logging.getLogger(__name__)

_AUTOMATIC_LANES: Final = 2

ServiceFactory = Callable[[Settings, Report], Service]


class Status(StrEnum):
    """What /health answers."""

    LOADING = "loading"
    READY = "ready"
    FAILED = "failed"


class Lifecycle:
    """The server's state; worker threads load the service and later answer its batches.

    Attributes:
        status: Loading, ready or failed.
        progress: How far the load is.
        reason: Why the load failed.
        batcher: The way to the service; None until ready.
        on_failed: Called some seconds after a failed load, so that /health can still tell it.
    """

    def __init__(
        self, settings: Settings, factory: ServiceFactory, metrics: Metrics, seat: Seat
    ) -> None:
        self.status = Status.LOADING
        self.progress = LoadProgress()
        self.reason = ""
        self.batcher: MicroBatcher | None = None
        self.on_failed: Callable[[], None] = _nothing
        self._settings = settings
        self._factory = factory
        self._metrics = metrics
        self._seat = seat
        self._service: Service | None = None
        self._loader = ThreadPoolExecutor(1, thread_name_prefix="load")
        self._searchers: ThreadPoolExecutor | None = None

    async def load(self) -> None:
        """Load the service; on an error log it, set the reason, and call `on_failed`."""
        try:
            service = await self._load_in_thread()
        except Exception as error:  # whatever it is, /health tells it
            await self._fail(error)
        else:
            self._service = service
            self.batcher = self._make_batcher(service)
            self.status = Status.READY
            self._seat.enter(WorkerState.READY)
            logger.info("Ready after %.1f s", self.progress.seconds)

    @property
    def ready(self) -> bool:
        """Whether a query is answered, whichever worker gets it."""
        return self.status is Status.READY and self._seat.board.whole

    def health(self) -> dict[str, object]:
        """Return the body of /health."""
        board = self._seat.board
        workers = {"ready": board.ready, "of": len(board), "restarts": board.restarts}
        if self._service is not None:
            status = Status.READY if self.ready else Status.LOADING
            return {"status": status, **self._service.info(), "workers": workers}
        if self.status is Status.FAILED:
            return {"status": self.status, "reason": self.reason}
        return {
            "status": self.status,
            "stage": self.progress.stage,
            "fraction": self.progress.fraction,
            "seconds": self.progress.seconds,
            "workers": workers,
        }

    async def close(self) -> None:
        """Finish accepted queries and release the service; does not wait for a running load."""
        if self.batcher is not None:
            await self.batcher.close()
        self._loader.shutdown(wait=self.status is not Status.LOADING, cancel_futures=True)
        if self._searchers is not None:
            self._searchers.shutdown()
        if self._service is not None:
            self._service.close()

    async def _load_in_thread(self) -> Service:
        telling = asyncio.create_task(self.progress.keep_telling())
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._loader, self._factory, self._settings, self.progress
            )
        finally:
            telling.cancel()

    async def _fail(self, error: Exception) -> None:
        self.reason = f"{type(error).__name__}: {error}"
        self.status = Status.FAILED
        # What the user can repair is a message; what only we can repair is a traceback.
        expected = isinstance(error, (ValueError, OSError))
        logger.error("Loading failed: %s", error, exc_info=None if expected else error)
        await asyncio.sleep(self._settings.failed_seconds)
        self.on_failed()

    def _make_batcher(self, service: Service) -> MicroBatcher:
        lanes = _lanes(self._settings, service)
        self._searchers = ThreadPoolExecutor(lanes, thread_name_prefix="search")
        return MicroBatcher(
            service.search,
            self._searchers,
            self._metrics,
            max_batch=self._settings.max_batch,
            max_wait=self._settings.max_wait_ms / 1000,
            max_queue=self._settings.max_queue,
            cache_size=self._settings.cache_size,
            lanes=lanes,
            use_cores=Cores(lanes).use if lanes > 1 else None,
        )


def _lanes(settings: Settings, service: Service) -> int:
    """As the settings say, or several for an index whose searches share nothing but cores."""
    if settings.lanes:
        return settings.lanes
    if settings.faiss_gpu or settings.rerank or service.info().get("engine") != "dense":
        return 1
    import faiss
    import torch

    on_cpu = settings.device == "cpu" or not (settings.device or torch.cuda.is_available())
    return min(_AUTOMATIC_LANES, faiss.omp_get_max_threads()) if on_cpu else 1


def _nothing() -> None:
    pass
