"""How far the load is: the stage, and the share of its bytes that this process has read.

Whatever reads an index file or hashes a corpus reads it through the kernel, which counts: no
engine has to report its own progress, nor FAISS, which cannot.
"""

import asyncio
import logging
import time
from pathlib import Path
from typing import Final

logger = logging.getLogger(__name__)

_TELL_SECONDS: Final = 10.0
_IO_COUNTERS: Final = Path("/proc/self/io")


class LoadProgress:
    """The stage of a load; call it as a `retrieval_server.service.Report`.

    Attributes:
        stage: What is being loaded.
    """

    def __init__(self) -> None:
        self.stage = "start"
        self._begin = time.monotonic()
        self._reads = 0
        self._read_before = 0

    def __call__(self, stage: str, reads: int = 0) -> None:
        """Enter a stage that will read so many bytes; 0 if that is not known."""
        self._reads = reads
        self._read_before = _bytes_read() or 0
        self.stage = stage
        logger.info("Loading: %s", stage, extra={"stage": stage, "bytes": reads})

    @property
    def seconds(self) -> float:
        """Since the load began."""
        return round(time.monotonic() - self._begin, 1)

    @property
    def fraction(self) -> float | None:
        """The share of the stage that is done, in [0, 1]; None if it cannot be known."""
        read = _bytes_read()
        if read is None or not self._reads:
            return None
        return round(min((read - self._read_before) / self._reads, 1.0), 3)

    async def keep_telling(self) -> None:
        """Log how far the load is, every so many seconds, until cancelled."""
        while True:
            await asyncio.sleep(_TELL_SECONDS)
            done = "" if self.fraction is None else f" {self.fraction:.0%}"
            logger.info("Loading: %s%s after %.0f s", self.stage, done, self.seconds)


def _bytes_read() -> int | None:
    """What this process has read so far; None where the kernel does not count it."""
    try:
        return int(_IO_COUNTERS.read_text().split()[1])
    except OSError:
        return None
