"""The baseline of retrieval_load.py: each request is encoded and searched alone, in its own thread.

    python benchmarks/per_request_server.py --index FOLDER --port 8000

This is how a plain FastAPI handler serves an encoder, and how the method's first implementation
did: no batches, no queue, and the threads of torch and FAISS as they are by default. Encoder,
index and JSON are those of the real server.
"""

from pathlib import Path
from typing import Annotated

import typer
import uvicorn
from fastapi import FastAPI, Response
from pydantic_core import to_json

from retrieval_server.engines.assemble import load_service
from retrieval_server.schemas import RetrieveRequest
from retrieval_server.service import Service
from retrieval_server.settings import Settings


def create_app(service: Service) -> FastAPI:
    """The app over a loaded engine."""
    app = FastAPI()

    @app.get("/health")
    def health() -> dict[str, str]:
        """Say that it is there: it listens only once it has loaded."""
        return {"status": "ready"}

    # A handler without async runs in a thread of the pool, 40 at a time.
    @app.post("/retrieve")
    def retrieve(request: RetrieveRequest) -> Response:
        """Find the best passages for each query."""
        found = service.search(request.queries, request.topk or 3)
        return Response(
            to_json({"result": found}, exclude_none=True), media_type="application/json"
        )

    return app


def main(
    index: Annotated[Path, typer.Option(help="Index folder.")],
    port: Annotated[int, typer.Option(help="On the loopback address.")],
    dtype: Annotated[str, typer.Option(help="Of the encoder's weights.")] = "float32",
) -> None:
    """Load the engine, then serve until a signal."""
    settings = Settings.model_validate({"index": index, "dtype": dtype})
    app = create_app(load_service(settings, lambda *_: None))
    uvicorn.run(app, port=port, access_log=False, log_config=None)


if __name__ == "__main__":
    typer.run(main)
