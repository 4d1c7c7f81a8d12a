"""Corpus to index folder, stage by stage, with progress and resumption."""

import functools
import logging
import shutil
from datetime import UTC, datetime
from pathlib import Path

import bm25s
import faiss
from rich.console import Console
from rich.progress import Progress

from data_prep.index_corpus import store_corpus
from data_prep.index_encode import LoadEncoder
from data_prep.index_plan_file import PLAN_FILE
from data_prep.index_progress import build_progress, passages_bar
from data_prep.index_source import VectorSource
from data_prep.index_stages import (
    IndexRequest,
    encode,
    make_index,
    make_vectors,
    make_words,
    take,
)
from data_prep.outputs import refuse_inputs
from retrieval_server.encoder import EncoderSettings
from retrieval_server.index_bm25 import BM25_FOLDER
from retrieval_server.index_types import IndexType, search_parameters
from retrieval_server.manifest import (
    CORPUS_FILE,
    INDEX_FILE,
    MANIFEST_FILE,
    OFFSETS_FILE,
    VECTORS_FILE,
    CorpusInfo,
    Manifest,
)
from retrieval_server.sentence_encoder import load_encoder

logger = logging.getLogger(__name__)

_DEFAULT = IndexRequest()


def build_index(
    corpus: Path,
    output: Path,
    encoder: EncoderSettings | None,
    request: IndexRequest = _DEFAULT,
    *,
    source: VectorSource | None = None,
    load: LoadEncoder = load_encoder,
    console: Console | None = None,
) -> Manifest:
    """Build an index folder: the index, `corpus.jsonl`, `offsets.npy`, `manifest.json`.

    Work goes on in `OUTPUT.partial`, which becomes `output` in one rename at the end. The same
    corpus, encoder and request give the same bytes of an index, interrupted or not.

    Args:
        corpus: JSONL or JSONL.gz, see `store_corpus`.
        output: The folder to make.
        encoder: Decides the vectors, written into the manifest; None for a type without any.
        request: The index that is wanted.
        source: Vectors of the corpus that are there already; nothing is encoded.
        load: Makes the encoder.
        console: Where progress is shown; nowhere by default.

    Returns:
        The manifest of the folder.

    Raises:
        FileExistsError: `output` holds something else and may not be replaced.
        ValueError: `corpus` is at or inside a folder that is replaced, or the request cannot be.
        CorpusError: The corpus cannot be read; the message names the line.
        UnfinishedBuildError: `OUTPUT.partial` is of other settings and may not be replaced.
    """
    partial = output.with_name(f"{output.name}.partial")
    _refuse_corpus_inside(corpus, output, partial)
    _refuse_foreign_folder(output)
    partial.mkdir(parents=True, exist_ok=True)
    with build_progress(console) as progress:
        info = _store(corpus, partial, progress)
        if not request.overwrite and (output / MANIFEST_FILE).exists():
            return _keep(output, partial, encoder, request, info)
        # What cannot be built is refused before hours of encoding.
        request.filled(info.rows, None)
        if encoder is None:
            parameters, dimension = make_words(partial, request, progress), None
        else:
            fill = take(source) if source else encode(partial, encoder, request.workers, load)
            bar = functools.partial(
                passages_bar, progress, "Copying vectors" if source else "Encoding passages"
            )
            store = make_vectors(partial, info, encoder, request, fill, bar)
            parameters, dimension = make_index(partial, store, request, progress)
    manifest = Manifest(
        backend=request.type,
        metric="inner_product" if encoder else "bm25",
        rows=info.rows,
        dimension=dimension,
        encoder=encoder,
        corpus=info,
        parameters=parameters,
        search=search_parameters(request.type, parameters),
        library=_library(encoder),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    (partial / MANIFEST_FILE).write_text(manifest.model_dump_json(indent=2) + "\n")
    _tidy(partial, request.type)
    _move_into_place(partial, output)
    return manifest


def _library(encoder: EncoderSettings | None) -> str:
    return f"faiss {faiss.__version__}" if encoder else f"bm25s {bm25s.__version__}"


def _refuse_corpus_inside(corpus: Path, output: Path, partial: Path) -> None:
    refuse_inputs(output, [corpus])
    # An index's own corpus.jsonl is linked or copied before the folder is replaced.
    own = (output / CORPUS_FILE).resolve()
    for folder in (output, partial):
        if folder.resolve() in corpus.resolve().parents and corpus.resolve() != own:
            raise ValueError(f"corpus: {corpus} is inside {folder}, which is replaced; move it out")


def _refuse_foreign_folder(output: Path) -> None:
    if output.exists() and not (output / MANIFEST_FILE).exists():
        raise FileExistsError(
            f"{output} exists and is not an index folder: choose another --output"
        )


def _keep(
    output: Path,
    partial: Path,
    encoder: EncoderSettings | None,
    request: IndexRequest,
    info: CorpusInfo,
) -> Manifest:
    """Return the manifest of a finished folder, if it is what is asked for."""
    if not (partial / PLAN_FILE).exists():
        shutil.rmtree(partial)
    there = Manifest.load(output)
    if what := _difference(there, encoder, request, info):
        raise FileExistsError(
            f"{output} holds an index with another {what}: choose another --output, or replace "
            "it with --overwrite"
        )
    logger.info("%s is up to date", output)
    return there


def _difference(
    there: Manifest, encoder: EncoderSettings | None, request: IndexRequest, info: CorpusInfo
) -> str | None:
    if there.corpus != info:
        return "corpus"
    if there.backend != request.type:
        return "type"
    if there.encoder and encoder and there.encoder.identity() != encoder.identity():
        return "encoder"
    given = request.parameters.model_dump(exclude_none=True)
    made = there.parameters.model_dump()
    return next((name.replace("_", "-") for name in given if given[name] != made[name]), None)


def _store(corpus: Path, partial: Path, progress: Progress) -> CorpusInfo:
    task = progress.add_task("Reading the corpus", total=corpus.stat().st_size, unit="bytes")
    return store_corpus(corpus, partial, lambda read: progress.update(task, completed=read))


def _tidy(folder: Path, type_: IndexType) -> None:
    """Leave the files of a finished index, and none of how it was made."""
    wanted = {CORPUS_FILE, OFFSETS_FILE, MANIFEST_FILE}
    wanted.add(INDEX_FILE if type_.is_dense else BM25_FOLDER)
    if type_.keeps_vectors:
        wanted.add(VECTORS_FILE)
    for path in folder.iterdir():
        if path.name in wanted:
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _move_into_place(folder: Path, output: Path) -> None:
    """Rename a finished build to its name, in place of an older index."""
    old = output.with_name(f"{output.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if output.exists():
        output.rename(old)
    folder.rename(output)
    shutil.rmtree(old, ignore_errors=True)
