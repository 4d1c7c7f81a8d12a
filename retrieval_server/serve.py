"""Runs the app on a socket until a signal or a failed load; gives the process its exit code."""

import logging
import os
import signal
import socket
import sys
from contextlib import ExitStack, suppress

import uvicorn

from retrieval_server.app import create_app
from retrieval_server.board import Seat
from retrieval_server.engines.assemble import load_service
from retrieval_server.exits import Exit
from retrieval_server.lifecycle import Lifecycle, ServiceFactory, Status
from retrieval_server.listener import address_problem, bind, claim, url_of
from retrieval_server.settings import Settings

logger = logging.getLogger(__name__)


def serve(settings: Settings, service_factory: ServiceFactory = load_service) -> Exit:
    """Serve in this process until SIGTERM or SIGINT, then finish the requests in flight.

    Returns:
        Why the server ended.
    """
    with ExitStack() as stack:
        try:
            listener = stack.enter_context(bind(settings.host, settings.port))
            stack.enter_context(claim(listener))
        except OSError as error:
            logger.error("%s", address_problem(settings, error))
            return Exit.ADDRESS
        logger.info("Listening on %s, loading %s", url_of(listener), settings.engines)
        return run_app(settings, listener, Seat.alone(), service_factory)


def run_app(
    settings: Settings,
    listener: socket.socket,
    seat: Seat,
    service_factory: ServiceFactory = load_service,
) -> Exit:
    """Serve on a bound socket, as the worker of a seat.

    Returns:
        Why it ended.
    """
    app = create_app(settings, service_factory, seat)
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
