"""The HTTP surface: `/retrieve`, `/health` and `/metrics` over a service of any kind."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, FastAPI, Header, HTTPException, Request, Response, Security
from fastapi.exceptions import RequestValidationError
from fastapi.params import Depends
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.security import HTTPBearer
from pydantic_core import to_json

from retrieval_server.batcher import (
    DeadlineError,
    MicroBatcher,
    QueueFullError,
    SearchFailedError,
)
from retrieval_server.board import Seat, WorkerState
from retrieval_server.engines.assemble import load_service
from retrieval_server.jobs import Passages
from retrieval_server.json_route import RetrieveRoute
from retrieval_server.lifecycle import Lifecycle, ServiceFactory
from retrieval_server.limits import check_limits, declare_limits, refuse
from retrieval_server.metrics import Metrics
from retrieval_server.middleware import BearerToken, BodyLimit, RequestMetrics
from retrieval_server.patience import ClientLeftError, preferred_wait, while_connected
from retrieval_server.schemas import ErrorResponse, RetrieveRequest, RetrieveResponse
from retrieval_server.settings import Settings

_LOADING_RETRY_SECONDS = 2
_CLIENT_LEFT = 499
"""What nginx notes when nobody is left to be answered."""
_PREFER = "wait=SECONDS: the deadline; wait=0: only what is remembered."
_UNAUTHORIZED = "The server has a token, and the request does not carry it."
_RETRIEVE_ERRORS: dict[int | str, dict[str, object]] = {
    status: {"model": ErrorResponse, "description": description}
    for status, description in {
        HTTPStatus.BAD_REQUEST: "The body cannot be read.",
        HTTPStatus.UNAUTHORIZED: _UNAUTHORIZED,
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The body is over its limit.",
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE: "The body is said to be something else than JSON.",
        HTTPStatus.UNPROCESSABLE_ENTITY: "A field is missing, of a wrong type or over its limit.",
        HTTPStatus.TOO_MANY_REQUESTS: "The queue is full; Retry-After says when to come back.",
        HTTPStatus.INTERNAL_SERVER_ERROR: "The engine failed; the log has the traceback.",
        HTTPStatus.SERVICE_UNAVAILABLE: "Still loading, or loading failed.",
        HTTPStatus.GATEWAY_TIMEOUT: "The deadline passed; what was not searched yet, never is.",
    }.items()
}
_METRICS_ERRORS: dict[int | str, dict[str, object]] = {
    HTTPStatus.UNAUTHORIZED: {
        "description": _UNAUTHORIZED,
        # Spelled out, or it would be taken for text as the metrics are.
        "content": {"application/json": {"schema": ErrorResponse.model_json_schema()}},
    }
}


def create_app(
    settings: Settings,
    service_factory: ServiceFactory = load_service,
    seat: Seat | None = None,
) -> FastAPI:
    """Build the app; the service is loaded once the app starts.

    In the background, so that /health can tell how far it is; but before the app takes any
    connection when other workers answer queries meanwhile.

    Args:
        settings: Limits and batching.
        service_factory: Loads the service, in the worker thread; told to report its stages.
        seat: This worker's place among others; None when it is alone.

    Returns:
        The app; `app.state.lifecycle` is its `Lifecycle`.
    """
    seat = seat or Seat.alone()
    metrics = Metrics(seat.board)
    lifecycle = Lifecycle(settings, service_factory, metrics, seat)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        loading = asyncio.create_task(lifecycle.load())
        if seat.begin() is WorkerState.LOADING:
            await loading
        yield
        await lifecycle.close()
        loading.cancel()

    token = settings.token.get_secret_value() if settings.token else None
    app = FastAPI(
        title="Search-R1 retrieval server",
        lifespan=lifespan,
    )
    app.state.lifecycle = lifecycle
    app.add_middleware(BodyLimit, most=int(settings.max_body_mib * 2**20))
    if token:
        app.add_middleware(BearerToken, token=token, open_paths={"/health"})
    app.add_middleware(RequestMetrics, metrics=metrics, path="/retrieve", log=settings.access_log)
    app.add_exception_handler(RequestValidationError, refuse)
    # For the schema; the middleware checks it, before the body is read.
    guarded = [Security(HTTPBearer(auto_error=False))] if token else []
    _add_retrieve(app, settings, lifecycle, guarded)
    _add_operations(app, lifecycle, metrics, guarded)
    declare_limits(app, settings)
    return app


def _add_retrieve(
    app: FastAPI, settings: Settings, lifecycle: Lifecycle, guarded: list[Depends]
) -> None:
    router = APIRouter(route_class=RetrieveRoute)

    @router.post(
        "/retrieve",
        response_model=RetrieveResponse,
        responses=_RETRIEVE_ERRORS,
        dependencies=guarded,
    )
    async def retrieve(
        body: RetrieveRequest,
        request: Request,
        prefer: Annotated[str | None, Header(description=_PREFER)] = None,
    ) -> Response:
        """Find the best passages for each query."""
        topk = settings.topk if body.topk is None else body.topk
        check_limits(body.queries, topk, settings)
        wait = preferred_wait(prefer)
        seconds = settings.deadline_seconds if wait is None else wait
        work = _search(_ready(lifecycle), body.queries, topk, seconds)
        try:
            found = await while_connected(request, work)
        except ClientLeftError:
            return Response(status_code=_CLIENT_LEFT)
        # Written here, not by FastAPI, which would validate every passage a second time.
        return Response(
            to_json({"result": _present(found, body.return_scores)}, exclude_none=True),
            media_type="application/json",
        )

    app.include_router(router)


def _add_operations(
    app: FastAPI, lifecycle: Lifecycle, metrics: Metrics, guarded: list[Depends]
) -> None:
    @app.get("/health", responses={HTTPStatus.SERVICE_UNAVAILABLE: {"description": "Not ready."}})
    async def health() -> JSONResponse:
        """Say whether queries are answered, and from what."""
        status = HTTPStatus.OK if lifecycle.ready else HTTPStatus.SERVICE_UNAVAILABLE
        return JSONResponse(lifecycle.health(), status)

    @app.get(
        "/metrics",
        response_class=PlainTextResponse,
        responses=_METRICS_ERRORS,
        dependencies=guarded,
    )
    async def show_metrics() -> Response:
        """Prometheus text."""
        return Response(metrics.render(), media_type=metrics.media_type)


def _ready(lifecycle: Lifecycle) -> MicroBatcher:
    if lifecycle.batcher is None:
        raise HTTPException(
            HTTPStatus.SERVICE_UNAVAILABLE,
            f"not ready: {lifecycle.status}; see /health",
            headers={"Retry-After": str(_LOADING_RETRY_SECONDS)},
        )
    return lifecycle.batcher


async def _search(
    batcher: MicroBatcher, queries: list[str], topk: int, seconds: float
) -> list[Passages]:
    try:
        return await batcher.submit(queries, topk, seconds)
    except QueueFullError as error:
        raise HTTPException(
            HTTPStatus.TOO_MANY_REQUESTS,
            str(error),
            headers={"Retry-After": str(error.retry_after)},
        ) from error
    except DeadlineError as error:
        raise HTTPException(HTTPStatus.GATEWAY_TIMEOUT, f"{error} ({seconds:g} s)") from error
    except SearchFailedError as error:
        raise HTTPException(HTTPStatus.INTERNAL_SERVER_ERROR, str(error)) from error


def _present(found: list[Passages], return_scores: bool) -> list[list[object]]:
    if return_scores:
        return [list(passages) for passages in found]
    return [[passage.document for passage in passages] for passages in found]
