"""What every request passes before the app: who may ask, how much, and what is noted of it."""

import hmac
import logging
import time
from collections.abc import Collection
from http import HTTPStatus

from fastapi import HTTPException
from fastapi.responses import JSONResponse
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from retrieval_server.metrics import Metrics

access_log = logging.getLogger("retrieval_server.access")


class RequestMetrics:
    """Counts the answers of one path by status, and their time.

    Args:
        app: The app behind it.
        metrics: Where they are counted.
        path: The path; others are passed on.
        log: Whether each answer is a line of the log, too.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, path: str, *, log: bool = False) -> None:
        self._app = app
        self._metrics = metrics
        self._path = path
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, watching the status of its answer."""
        if scope["type"] != "http" or scope["path"] != self._path:
            await self._app(scope, receive, send)
            return
        status = HTTPStatus.INTERNAL_SERVER_ERROR.value

        async def watch(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        begin = time.perf_counter()
        try:
            await self._app(scope, receive, watch)
        finally:
            self._note(scope, status, time.perf_counter() - begin)

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        self._metrics.latency.observe(seconds)
        self._metrics.requests.labels(status).inc()
        if self._log:
            client = (scope.get("client") or ("-",))[0]
            fields = {"method": scope["method"], "path": self._path, "status": status}
            extra = fields | {"seconds": round(seconds, 4), "client": client}
            access_log.info("%(method)s %(path)s %(status)d", fields, extra=extra)


class BearerToken:
    """Refuses requests without `Authorization: Bearer TOKEN`.

    Args:
        app: The app behind it.
        token: The secret.
        open_paths: Paths that anyone may ask for.
    """

    def __init__(self, app: ASGIApp, token: str, open_paths: Collection[str]) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()
        self._open_paths = open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 401 before its body is read."""
        if scope["type"] != "http" or scope["path"] in self._open_paths or self._knows(scope):
            await self._app(scope, receive, send)
            return
        refusal = JSONResponse(
            {"detail": "send the header Authorization: Bearer TOKEN, with this server's token"},
            HTTPStatus.UNAUTHORIZED,
            headers={"WWW-Authenticate": "Bearer"},
        )
        await refusal(scope, receive, send)

    def _knows(self, scope: Scope) -> bool:
        given = Headers(scope=scope).get("authorization", "").encode("latin-1")
        # In constant time, or the time of the answer would tell how much of a guess is right.
        return hmac.compare_digest(given, self._expected)


class BodyLimit:
    """Refuses bodies above a size: by their declared length, else as they come.

    Args:
        app: The app behind it.
        most: Bytes.
    """

    def __init__(self, app: ASGIApp, most: int) -> None:
        self._app = app
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, counting its bytes; answer 413 when there are too many."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = Headers(scope=scope).get("content-length", "0")
        if declared.isdecimal() and int(declared[:20]) > self._most:
            refusal = JSONResponse(self._refusal(), HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
            await refusal(scope, receive, send)
            return
        received = 0

        async def count() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._most:
                raise HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, self._refusal()["detail"])
            return message

        await self._app(scope, count, send)

    def _refusal(self) -> dict[str, list[dict[str, object]]]:
        message = f"the body has more than {self._most} bytes"
        return {"detail": [{"type": "over_limit", "loc": ["body"], "msg": message}]}
