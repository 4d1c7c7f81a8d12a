"""How long a request waits: what its `Prefer` header says, and no longer than its client stays."""

import asyncio
import re
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

from fastapi import Request

# RFC 7240, section 4.3: whole seconds from when the request was received.
_WAIT: Final = re.compile(r'(?:^|,)\s*wait\s*=\s*"?(\d{1,6})"?\s*(?:[,;]|$)', re.IGNORECASE)

T = TypeVar("T")


class ClientLeftError(Exception):
    """The client closed its connection before it was answered."""


def preferred_wait(header: str | None) -> int | None:
    """Return the seconds of `Prefer: wait=SECONDS`; None if it does not say, or not clearly."""
    found = _WAIT.search(header or "")
    return int(found[1]) if found else None


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """Await the work, unless the client leaves first: then the work is cancelled.

    Args:
        request: Its body must have been read: the next message is then that the client left.
        work: What answers it.

    Raises:
        ClientLeftError: The client left.
    """
    answer = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(request.receive())
    try:
        await asyncio.wait((answer, leaving), return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            return await answer
        raise ClientLeftError
    finally:
        leaving.cancel()
        answer.cancel()
