"""Several worker processes on one port: starts them, replaces those that end, stops them together.

    python -m retrieval_server --index DIR --workers 4

Each worker is the whole server, with an encoder and batches of its own; the mapped index and
corpus are in memory once. The kernel spreads connections over the workers that listen, so a
worker that dies takes with it what it was answering and nothing else: its replacement loads
before it listens. This process answers nothing itself, and loads nothing.
"""

import logging
import os
import signal
import threading
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing import connection, parent_process
from multiprocessing.context import SpawnProcess
from tempfile import TemporaryDirectory
from typing import Final

from prometheus_client.multiprocess import mark_process_dead

from retrieval_server.board import SPAWN, Board, Seat, WorkerState
from retrieval_server.exits import Exit
from retrieval_server.listener import address_problem, bind, claim, url_of
from retrieval_server.logs import configure_logs
from retrieval_server.metrics import METRICS_FOLDER
from retrieval_server.settings import Settings

logger = logging.getLogger(__name__)

_TICK_SECONDS: Final = 0.2
_STEADY_SECONDS: Final = 60.0
"""A worker that has lived so long is replaced at once when it ends."""
_MAX_PAUSE_SECONDS: Final = 30.0
_KILL_AFTER_SECONDS: Final = 5.0
"""Beyond the time to drain."""


def supervise(settings: Settings) -> Exit:
    """Serve with `settings.workers` processes until SIGTERM or SIGINT.

    Returns:
        Why the server ended; a load that fails before all have succeeded ends it.
    """
    with ExitStack() as stack:
        try:
            bind(settings.host, settings.port).close()  # or a server that shares would be joined
            holder = stack.enter_context(bind(settings.host, settings.port, shared=True))
            stack.enter_context(claim(holder))
        except OSError as error:
            logger.error("%s", address_problem(settings, error))
            return Exit.ADDRESS
        folder = stack.enter_context(TemporaryDirectory(prefix="retriever-metrics-"))
        os.environ[METRICS_FOLDER] = folder
        logger.info(
            "%d workers on %s, loading %s", settings.workers, url_of(holder), settings.engines
        )
        port = holder.getsockname()[1]
        return Supervisor(settings.model_copy(update={"port": port}), folder).run()


@dataclass
class _Worker:
    """One seat and the process that has it."""

    seat: Seat
    process: SpawnProcess | None = None
    started: float = 0.0
    start_at: float = 0.0
    pauses: int = 0


@dataclass
class Supervisor:
    """Keeps the workers of one server running.

    Args:
        settings: Of each worker, with the port that they share.
        metrics_folder: Where the workers' metrics lie.
    """

    settings: Settings
    metrics_folder: str
    _stopping: bool = field(default=False, init=False)
    _loaded_once: bool = field(default=False, init=False)
    """Whether all workers were ready at one time."""

    def __post_init__(self) -> None:
        self.board = Board(self.settings.workers)
        self._workers = [_Worker(Seat(self.board, n)) for n in range(self.settings.workers)]

    def run(self) -> Exit:
        """Keep every seat taken until a signal, or until a worker fails to load at the start."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        ended = Exit.OK
        while not self._stopping and ended is Exit.OK:
            self._fill_seats()
            self._await_end(_TICK_SECONDS)
            ended = self._clear_seats()
        self._end_workers()
        return ended

    def _stop(self, *_: object) -> None:
        self._stopping = True

    def _fill_seats(self) -> None:
        now = time.monotonic()
        for worker in self._workers:
            if worker.process is None and now >= worker.start_at:
                settings = self._settings_of(worker)
                worker.process = SPAWN.Process(target=_work, args=(settings, worker.seat))
                worker.process.start()
                worker.started = now

    def _settings_of(self, worker: _Worker) -> Settings:
        """One worker hashes the corpus, once: it is the same file for all."""
        if worker.seat.worker == 0 and not self._loaded_once:
            return self.settings
        return self.settings.model_copy(update={"verify_corpus": False})

    def _await_end(self, seconds: float) -> None:
        running = [worker.process for worker in self._workers if worker.process]
        connection.wait([process.sentinel for process in running], seconds)
        self._loaded_once = self._loaded_once or self.board.ready == len(self.board)

    def _clear_seats(self) -> Exit:
        """Take note of workers that ended; say whether the server must end for it."""
        for worker in self._workers:
            process = worker.process
            if process is None or process.is_alive():
                continue
            self._forget(worker)
            if self._stopping:
                continue
            if process.exitcode == Exit.LOAD_FAILED and not self._loaded_once:
                return Exit.LOAD_FAILED
            self._plan_restart(worker, process)
        return Exit.OK

    def _forget(self, worker: _Worker) -> None:
        assert worker.process is not None
        worker.seat.enter(WorkerState.DOWN)
        mark_process_dead(worker.process.pid, self.metrics_folder)  # type: ignore[no-untyped-call]
        worker.process = None

    def _plan_restart(self, worker: _Worker, process: SpawnProcess) -> None:
        steady = time.monotonic() - worker.started > _STEADY_SECONDS
        worker.pauses = 0 if steady else worker.pauses + 1
        pause = min(2.0 ** (worker.pauses - 1), _MAX_PAUSE_SECONDS) if worker.pauses > 1 else 0.0
        worker.start_at = time.monotonic() + pause
        self.board.count_restart()
        fields = {"worker": worker.seat.worker, "worker_pid": process.pid}
        logger.warning(
            "Worker %d ended (%s): started again in %.0f s",
            worker.seat.worker,
            _how_it_ended(process.exitcode),
            pause,
            extra=fields | {"exit_code": process.exitcode},
        )

    def _end_workers(self) -> None:
        """Let the workers drain; those that take no requests, or take too long, are killed."""
        running = [worker for worker in self._workers if worker.process]
        for worker in running:
            _end(worker)
        deadline = time.monotonic() + self.settings.drain_seconds + _KILL_AFTER_SECONDS
        for worker in running:
            assert worker.process is not None
            worker.process.join(max(0.0, deadline - time.monotonic()))
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()


def _end(worker: _Worker) -> None:
    assert worker.process is not None
    if worker.seat.board[worker.seat.worker] is WorkerState.READY:
        worker.process.terminate()
    else:
        worker.process.kill()


def _how_it_ended(code: int | None) -> str:
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"


def _work(settings: Settings, seat: Seat) -> None:
    """Be one worker: the target of its process."""
    configure_logs(settings.log_format)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # Imported here, since it loads faiss, which the parent has no use for.
    from retrieval_server.serve import run_app

    with bind(settings.host, settings.port, shared=True) as listener:
        code = run_app(settings, listener, seat)
    raise SystemExit(code)


def _end_with_parent() -> None:
    """Drain when the parent is gone, however it ended: nobody else could end this process."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
