"""Builds the index folder that the retrieval server serves.

Run it as `search-r1 prepare index --corpus corpus.jsonl.gz --output indexes/NAME`. Killed and
started again, it goes on from the last finished chunk; a finished folder is left as it is.
"""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from data_prep.index_build import DEFAULT_CHUNK_ROWS, build_index
from retrieval_server.encoder import Dtype, Pooling, resolve_encoder
from retrieval_server.openmp import share_cores
from search_r1.exits import one_line_errors

__all__ = ["build_index", "index_command"]


def index_command(
    corpus: Annotated[
        Path, typer.Option(exists=True, dir_okay=False, help="JSONL or JSONL.gz, a passage a line.")
    ],
    output: Annotated[Path, typer.Option(help="Index folder to make.")],
    encoder: Annotated[
        str, typer.Option(help="minilm, e5, or a model's name or folder.")
    ] = "minilm",
    query_prefix: Annotated[str | None, typer.Option(help="Put before each query.")] = None,
    passage_prefix: Annotated[str | None, typer.Option(help="Put before each passage.")] = None,
    pooling: Annotated[Pooling | None, typer.Option(help="How token vectors become one.")] = None,
    normalize: Annotated[bool | None, typer.Option(help="Scale vectors to length 1.")] = None,
    max_length: Annotated[int | None, typer.Option(help="Tokens read of a text.")] = None,
    dtype: Annotated[Dtype | None, typer.Option(help="Of the weights while encoding.")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Passages in one forward pass.")] = None,
    device: Annotated[str | None, typer.Option(help="cpu, cuda, ...; default: best found.")] = None,
    chunk_rows: Annotated[
        int, typer.Option(min=1, help="Passages kept at a time; a kill loses at most these.")
    ] = DEFAULT_CHUNK_ROWS,
    overwrite: Annotated[bool, typer.Option(help="Replace another index at --output.")] = False,
) -> None:
    """Encode a corpus and build the folder that the retrieval server serves."""
    console = Console(stderr=True)
    share_cores()
    with one_line_errors():
        settings = resolve_encoder(
            encoder,
            query_prefix=query_prefix,
            passage_prefix=passage_prefix,
            pooling=pooling,
            normalize=normalize,
            max_length=max_length,
            dtype=dtype,
            batch_size=batch_size,
            device=device,
        )
        manifest = build_index(
            corpus, output, settings, chunk_rows=chunk_rows, overwrite=overwrite, console=console
        )
    console.print(
        f"{output}: {manifest.rows:,} passages, dimension {manifest.dimension}; serve it with "
        f"[bold]python -m retrieval_server --index {output}[/]"
    )
