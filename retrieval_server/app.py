"""The HTTP surface: `/retrieve`, `/health` and `/metrics` over a service of any kind."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic_core import to_json

from retrieval_server.batcher import MicroBatcher, QueueFullError, SearchFailedError
from retrieval_server.engines.assemble import load_service
from retrieval_server.jobs import Passages
from retrieval_server.lifecycle import Lifecycle, ServiceFactory, Status
from retrieval_server.metrics import Metrics, RequestMetrics
from retrieval_server.schemas import ErrorResponse, RetrieveRequest, RetrieveResponse
from retrieval_server.settings import Settings

_LOADING_RETRY_SECONDS = 2
_RETRIEVE_ERRORS: dict[int | str, dict[str, object]] = {
    status: {"model": ErrorResponse, "description": description}
    for status, description in {
        HTTPStatus.UNPROCESSABLE_ENTITY: "A field is missing, of a wrong type or over its limit.",
        HTTPStatus.TOO_MANY_REQUESTS: "The queue is full; Retry-After says when to come back.",
        HTTPStatus.INTERNAL_SERVER_ERROR: "The engine failed; the log has the traceback.",
        HTTPStatus.SERVICE_UNAVAILABLE: "Still loading, or loading failed.",
    }.items()
}


def create_app(settings: Settings, service_factory: ServiceFactory = load_service) -> FastAPI:
    """Build the app; the service is loaded in the background once the app starts.

    Args:
        settings: Limits and batching.
        service_factory: Loads the service, in the worker thread; told to report its stages.

    Returns:
        The app; `app.state.lifecycle` is its `Lifecycle`.
    """
    metrics = Metrics()
    lifecycle = Lifecycle(settings, service_factory, metrics)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        loading = asyncio.create_task(lifecycle.load())
        yield
        await lifecycle.close()
        loading.cancel()

    app = FastAPI(title="Search-R1 retrieval server", lifespan=lifespan)
    app.state.lifecycle = lifecycle
    app.add_middleware(RequestMetrics, metrics=metrics, path="/retrieve")
    app.add_exception_handler(RequestValidationError, _refuse)
    _add_retrieve(app, settings, lifecycle)
    _add_operations(app, lifecycle, metrics)
    return app


def _add_retrieve(app: FastAPI, settings: Settings, lifecycle: Lifecycle) -> None:
    @app.post("/retrieve", response_model=RetrieveResponse, responses=_RETRIEVE_ERRORS)
    async def retrieve(request: RetrieveRequest) -> Response:
        """Find the best passages for each query."""
        topk = settings.topk if request.topk is None else request.topk
        _check_limits(request.queries, topk, settings)
        found = await _search(_ready(lifecycle), request.queries, topk)
        # Written here, not by FastAPI, which would validate every passage a second time.
        return Response(
            to_json({"result": _present(found, request.return_scores)}, exclude_none=True),
            media_type="application/json",
        )


def _add_operations(app: FastAPI, lifecycle: Lifecycle, metrics: Metrics) -> None:
    @app.get("/health", responses={HTTPStatus.SERVICE_UNAVAILABLE: {"description": "Not ready."}})
    async def health() -> JSONResponse:
        """Say whether queries are answered, and from what."""
        ready = lifecycle.status is Status.READY
        status = HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE
        return JSONResponse(lifecycle.health(), status)

    @app.get("/metrics", response_class=Response)
    async def show_metrics() -> Response:
        """Prometheus text."""
        return Response(metrics.render(), media_type=metrics.media_type)


def _check_limits(queries: list[str], topk: int, settings: Settings) -> None:
    if len(queries) > settings.max_queries:
        _over("queries", f"{len(queries)} queries; at most {settings.max_queries} in a request")
    for number, query in enumerate(queries):
        if len(query) > settings.max_query_chars:
            most = settings.max_query_chars
            _over("queries", f"{len(query)} characters; at most {most} in a query", number)
    if topk > settings.max_topk:
        _over("topk", f"{topk} is above the limit of {settings.max_topk}")


def _over(field: str, message: str, *position: int) -> None:
    loc = ("body", field, *position)
    raise RequestValidationError([{"type": "over_limit", "loc": loc, "msg": message}])


async def _refuse(_: Request, error: Exception) -> JSONResponse:
    """Name the field and what is wrong with it; the input is not sent back."""
    assert isinstance(error, RequestValidationError)
    detail = [{key: item[key] for key in ("type", "loc", "msg")} for item in error.errors()]
    return JSONResponse({"detail": detail}, HTTPStatus.UNPROCESSABLE_ENTITY)


def _ready(lifecycle: Lifecycle) -> MicroBatcher:
    if lifecycle.batcher is None:
        raise HTTPException(
            HTTPStatus.SERVICE_UNAVAILABLE,
            f"not ready: {lifecycle.status}; see /health",
            headers={"Retry-After": str(_LOADING_RETRY_SECONDS)},
        )
    return lifecycle.batcher


async def _search(batcher: MicroBatcher, queries: list[str], topk: int) -> list[Passages]:
    try:
        return await batcher.submit(queries, topk)
    except QueueFullError as error:
        raise HTTPException(
            HTTPStatus.TOO_MANY_REQUESTS,
            str(error),
            headers={"Retry-After": str(error.retry_after)},
        ) from error
    except SearchFailedError as error:
        raise HTTPException(HTTPStatus.INTERNAL_SERVER_ERROR, str(error)) from error


def _present(found: list[Passages], return_scores: bool) -> list[list[object]]:
    if return_scores:
        return [list(passages) for passages in found]
    return [[passage.document for passage in passages] for passages in found]
