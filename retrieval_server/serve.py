"""Runs the app on a socket until a signal or a failed load; gives the process its exit code."""

import errno
import logging
import os
import signal
import socket
import sys
from contextlib import suppress
from enum import IntEnum

import uvicorn

from retrieval_server.app import create_app
from retrieval_server.engines.assemble import load_service
from retrieval_server.lifecycle import Lifecycle, ServiceFactory, Status
from retrieval_server.settings import Settings

logger = logging.getLogger(__name__)

_BACKLOG = 2048


class Exit(IntEnum):
    """Exit codes of the server."""

    OK = 0
    USAGE = 2
    LOAD_FAILED = 3
    ADDRESS = 4


def serve(settings: Settings, service_factory: ServiceFactory = load_service) -> Exit:
    """Serve until SIGTERM or SIGINT, then finish the requests in flight.

    Returns:
        Why the server ended.
    """
    try:
        listener = _listen(settings.host, settings.port)
    except OSError as error:
        logger.error("%s", _address_problem(settings, error))
        return Exit.ADDRESS
    app = create_app(settings, service_factory)
    lifecycle: Lifecycle = app.state.lifecycle
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            access_log=False,
            log_config=None,
            timeout_graceful_shutdown=max(1, round(settings.drain_seconds)),
        )
    )
    lifecycle.on_failed = lambda: setattr(server, "should_exit", True)
    logger.info("Listening on %s, loading %s", _url(listener), settings.engines)
    _run(server, listener)
    return _end(lifecycle)


def _run(server: uvicorn.Server, listener: socket.socket) -> None:
    # The server raises the signal again once it has drained: a plain end is wanted instead.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(Exit.OK))
    with suppress(SystemExit, KeyboardInterrupt), listener:
        server.run([listener])


def _end(lifecycle: Lifecycle) -> Exit:
    if lifecycle.status is Status.FAILED:
        return Exit.LOAD_FAILED
    if lifecycle.status is Status.LOADING:
        # Nothing can interrupt the thread that loads, and a normal exit would wait for it.
        logging.shutdown()
        os._exit(Exit.OK)
    return Exit.OK


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=_BACKLOG)


def _address_problem(settings: Settings, error: OSError) -> str:
    where = f"{settings.host}:{settings.port}"
    if error.errno == errno.EADDRINUSE:
        return f"{where} is in use: end the server that holds it, or choose another --port"
    return f"cannot listen on {where}: {error.strerror or error}"


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
