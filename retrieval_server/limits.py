"""What a request may ask for, and the refusal that names the field that asks for more."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, NoReturn

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse

from retrieval_server.schemas import RetrieveRequest
from retrieval_server.settings import Settings


def check_limits(queries: Sequence[str], topk: int, settings: Settings) -> None:
    """Pass a request whose numbers are within the settings.

    Raises:
        RequestValidationError: They are not; it names the field.
    """
    if len(queries) > settings.max_queries:
        _over("queries", f"{len(queries)} queries; at most {settings.max_queries} in a request")
    for number, query in enumerate(queries):
        if len(query) > settings.max_query_chars:
            most = settings.max_query_chars
            _over("queries", f"{len(query)} characters; at most {most} in a query", number)
    if topk > settings.max_topk:
        _over("topk", f"{topk} is above the limit of {settings.max_topk}")


def declare_limits(app: FastAPI, settings: Settings) -> None:
    """Let the app's own OpenAPI schema tell the limits of the settings."""
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        schema = generate()
        fields = schema["components"]["schemas"][RetrieveRequest.__name__]["properties"]
        fields["queries"]["maxItems"] = settings.max_queries
        fields["queries"]["items"]["maxLength"] = settings.max_query_chars
        fields["topk"]["anyOf"][0]["maximum"] = settings.max_topk
        return schema

    app.openapi = openapi  # type: ignore[method-assign] # as FastAPI's documentation does


async def refuse(_: Request, error: Exception) -> JSONResponse:
    """Name the field and what is wrong with it; the input is not sent back."""
    assert isinstance(error, RequestValidationError)
    detail = [{key: item[key] for key in ("type", "loc", "msg")} for item in error.errors()]
    return JSONResponse({"detail": detail}, HTTPStatus.UNPROCESSABLE_ENTITY)


def _over(field: str, message: str, *position: int) -> NoReturn:
    loc = ("body", field, *position)
    raise RequestValidationError([{"type": "over_limit", "loc": loc, "msg": message}])
