"""A retrieval server of a benchmark's own: a process on a free port, awaited until it is ready."""

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import httpx

READY_SECONDS: Final = 600.0
"""A large index takes minutes to load."""
POLL_SECONDS: Final = 0.2


class Server:
    """A server that Python starts with `words`, on one port for all its lives.

    Args:
        words: Python's arguments without the port, such as ``-m retrieval_server --index X``.
        log: The file for what it says, written anew; None drops it.
    """

    def __init__(self, words: Sequence[object], log: Path | None = None) -> None:
        self.port = free_port()
        self._words = [sys.executable, *map(str, words), "--port", str(self.port)]
        self._log = log or Path("/dev/null")
        self.start()

    @property
    def url(self) -> str:
        """Of the server; a search is a POST to ``/retrieve`` below it."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, without waiting until it is ready."""
        with self._log.open("w") as log:
            self.process = subprocess.Popen(self._words, stdout=log, stderr=log)  # noqa: S603

    def await_ready(self) -> None:
        """Wait until it answers searches.

        Raises:
            RuntimeError: it ended; the message names its log.
            TimeoutError: it is not ready after ten minutes.
        """
        deadline = time.monotonic() + READY_SECONDS
        while not self._is_ready():
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended, see {self._log}: {self._words}")
            if time.monotonic() > deadline:
                raise TimeoutError(f"not ready after {READY_SECONDS:g} s: {self.url}/health")
            time.sleep(POLL_SECONDS)

    def restart(self) -> None:
        """Kill it, and start it again at once."""
        self.process.kill()
        self.process.wait()
        self.start()

    def stop(self) -> None:
        """End it as an operator would, and wait for it."""
        self.process.terminate()
        self.process.wait()

    def _is_ready(self) -> bool:
        try:
            return httpx.get(f"{self.url}/health").status_code == httpx.codes.OK
        except httpx.TransportError:
            return False


@contextlib.contextmanager
def serving(words: Sequence[object], log: Path | None = None) -> Iterator[Server]:
    """A server that is ready, and ends with the block; see `Server`."""
    server = Server(words, log)
    try:
        server.await_ready()
        yield server
    finally:
        server.stop()


def free_port() -> int:
    """A port that nothing listens on now."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])
