"""Builds the index folder that the retrieval server serves.

Run it as `search-r1 prepare index --corpus corpus.jsonl.gz --output indexes/NAME`, with `--plan`
first to see what each type will cost. Killed and started again, it goes on where it was; a
finished folder is left as it is.
"""

from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError
from rich.console import Console

from data_prep.index_build import build_index
from data_prep.index_encode import Workers
from data_prep.index_plan import print_plan
from data_prep.index_source import VectorSource, open_source
from data_prep.index_stages import DEFAULT_CHUNK_ROWS, IndexRequest
from retrieval_server.encoder import Dtype, EncoderSettings, Pooling, resolve_encoder
from retrieval_server.index_types import BuildParameters, IndexType
from retrieval_server.manifest import Manifest
from retrieval_server.openmp import share_cores
from search_r1.exits import one_line_errors
from search_r1.files import require_folder

__all__ = ["build_index", "index_command"]

INDEX_EXAMPLES = """
What 21 million passages cost, before any work:

    search-r1 prepare index --plan --rows 21015324 --dimension 768

One that fits in 24 GiB, encoded on four GPUs, then another over the same vectors:

    search-r1 prepare index --corpus wiki-18.jsonl --output indexes/rabitq --encoder e5
        --type ivf-rabitq --workers 4

    search-r1 prepare index --from indexes/rabitq --output indexes/hnsw --type hnsw-sq8

Words instead of vectors:

    search-r1 prepare index --corpus wiki-18.jsonl --output indexes/bm25 --type bm25
"""

_ENCODING = "Encoding"
_TYPE = "Type of index"


def index_command(
    corpus: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="JSONL or JSONL.gz, a passage a line."),
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Index folder to make.")] = None,
    type_: Annotated[
        IndexType, typer.Option("--type", help="How passages are found; see --plan for the costs.")
    ] = IndexType.FLAT,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from", help="Index folder whose corpus and vectors are taken: no encoding."
        ),
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Print what each type costs, and build nothing.")
    ] = False,
    rows: Annotated[
        int | None, typer.Option(min=1, help="Of --plan; default: those of the corpus.")
    ] = None,
    dimension: Annotated[
        int | None, typer.Option(min=1, help="Of --plan; default: that of the encoder.")
    ] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace another index at --output.")] = False,
    encoder: Annotated[
        str,
        typer.Option(help="minilm, e5, or a model's name or folder.", rich_help_panel=_ENCODING),
    ] = "minilm",
    query_prefix: Annotated[
        str | None, typer.Option(help="Put before each query.", rich_help_panel=_ENCODING)
    ] = None,
    passage_prefix: Annotated[
        str | None, typer.Option(help="Put before each passage.", rich_help_panel=_ENCODING)
    ] = None,
    pooling: Annotated[
        Pooling | None,
        typer.Option(help="How token vectors become one.", rich_help_panel=_ENCODING),
    ] = None,
    normalize: Annotated[
        bool | None, typer.Option(help="Scale vectors to length 1.", rich_help_panel=_ENCODING)
    ] = None,
    max_length: Annotated[
        int | None, typer.Option(help="Tokens read of a text.", rich_help_panel=_ENCODING)
    ] = None,
    dtype: Annotated[
        Dtype | None,
        typer.Option(help="Of the weights while encoding.", rich_help_panel=_ENCODING),
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(help="Passages in one forward pass.", rich_help_panel=_ENCODING)
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(help="cpu, cuda, ...; default: best found.", rich_help_panel=_ENCODING),
    ] = None,
    chunk_rows: Annotated[
        int,
        typer.Option(
            min=1,
            help="Passages kept at a time; a kill loses at most these.",
            rich_help_panel=_ENCODING,
        ),
    ] = DEFAULT_CHUNK_ROWS,
    workers: Annotated[
        int,
        typer.Option(
            min=1, help="Processes that encode, a GPU each in turn.", rich_help_panel=_ENCODING
        ),
    ] = 1,
    ray: Annotated[
        str | None,
        typer.Option(
            help="Encode with --workers actors of this Ray cluster: auto, local, ray://HOST:PORT.",
            rich_help_panel=_ENCODING,
        ),
    ] = None,
    lists: Annotated[
        int | None,
        typer.Option(help="ivf: inverted lists. [default: by rows]", rich_help_panel=_TYPE),
    ] = None,
    code_bytes: Annotated[
        int | None,
        typer.Option(help="ivf-pq: bytes of a code. [default: by size]", rich_help_panel=_TYPE),
    ] = None,
    links: Annotated[
        int | None, typer.Option(help="hnsw: neighbours. [default: 32]", rich_help_panel=_TYPE)
    ] = None,
    ef_construction: Annotated[
        int | None,
        typer.Option(help="hnsw: candidates of a link. [default: 80]", rich_help_panel=_TYPE),
    ] = None,
    train_rows: Annotated[
        int | None,
        typer.Option(help="ivf, sq8: sample that is learned from.", rich_help_panel=_TYPE),
    ] = None,
    k1: Annotated[
        float | None, typer.Option(help="bm25. [default: 0.9]", rich_help_panel=_TYPE)
    ] = None,
    b: Annotated[
        float | None, typer.Option(help="bm25. [default: 0.4]", rich_help_panel=_TYPE)
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(help="Of the sample and of clusters. [default: 0]", rich_help_panel=_TYPE),
    ] = None,
) -> None:
    """Encode a corpus and build the folder that the retrieval server serves."""
    share_cores()
    with one_line_errors():
        parameters = _parameters(
            lists=lists,
            code_bytes=code_bytes,
            links=links,
            ef_construction=ef_construction,
            train_rows=train_rows,
            seed=seed,
            k1=k1,
            b=b,
        )
        changes: dict[str, object] = {
            "query_prefix": query_prefix,
            "passage_prefix": passage_prefix,
            "pooling": pooling,
            "normalize": normalize,
            "max_length": max_length,
            "dtype": dtype,
            "batch_size": batch_size,
            "device": device,
        }
        if plan:
            print_plan(corpus, rows, dimension, encoder, parameters)
            return
        request = IndexRequest(
            type=type_,
            parameters=parameters,
            chunk_rows=chunk_rows,
            workers=Workers(workers, ray),
            overwrite=overwrite,
        )
        _build(corpus, output, source, encoder, changes, request)


def _build(
    corpus: Path | None,
    output: Path | None,
    source: Path | None,
    encoder: str,
    changes: dict[str, object],
    request: IndexRequest,
) -> None:
    if output is None:
        raise ValueError("--output: give the folder to make, or --plan to see what it would cost")
    require_folder(output)
    if (corpus is None) == (source is None):
        raise ValueError("--corpus: give it, or --from with a finished index, and not both")
    console = Console(stderr=True)
    if source is not None:
        corpus, settings, vectors = _of_source(source, request.type)
    else:
        settings, vectors = None, None
        if request.type.is_dense:
            settings = resolve_encoder(encoder, **changes)
    assert corpus is not None
    manifest = build_index(corpus, output, settings, request, source=vectors, console=console)
    console.print(
        f"{output}: {manifest.rows:,} passages, {manifest.backend}; serve it with "
        f"[bold]python -m retrieval_server --index {output}[/]"
    )


def _of_source(
    source: Path, type_: IndexType
) -> tuple[Path, EncoderSettings | None, VectorSource | None]:
    """Corpus, encoder and vectors of a finished folder."""
    there = Manifest.load(source)
    corpus = source / there.corpus.file
    if not type_.is_dense:
        return corpus, None, None
    if there.encoder is None:
        raise ValueError(f"--from: {source} is of type {there.backend}, which has no vectors")
    return corpus, there.encoder, open_source(source, there)


def _parameters(**given: float | None) -> BuildParameters:
    """Raises: ValueError, which names the option that is out of its range."""
    try:
        return BuildParameters.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        option = str(first["loc"][0]).replace("_", "-")
        raise ValueError(f"--{option}: {first['input']}: {first['msg']}") from error
