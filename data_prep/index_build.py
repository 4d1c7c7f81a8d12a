"""Corpus to index folder, stage by stage, with progress and resumption."""

import logging
import shutil
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from data_prep.index_chunks import (
    PLAN_FILE,
    Plan,
    encode_chunks,
    missing_chunks,
    move_into_place,
    write_index,
)
from data_prep.index_corpus import store_corpus
from data_prep.outputs import refuse_inputs
from retrieval_server.encoder import Encoder, EncoderSettings
from retrieval_server.manifest import CORPUS_FILE, MANIFEST_FILE, CorpusInfo, Manifest
from retrieval_server.sentence_encoder import load_encoder

logger = logging.getLogger(__name__)

LoadEncoder = Callable[[EncoderSettings], Encoder]

DEFAULT_CHUNK_ROWS = 1024
# A chunk takes minutes on a CPU with a large encoder: look that far back for the speed.
_SPEED_SECONDS = 1800


def build_index(
    corpus: Path,
    output: Path,
    encoder: EncoderSettings,
    *,
    chunk_rows: int = DEFAULT_CHUNK_ROWS,
    overwrite: bool = False,
    load: LoadEncoder = load_encoder,
    console: Console | None = None,
) -> Manifest:
    """Build an index folder: `index.faiss`, `corpus.jsonl`, `offsets.npy`, `manifest.json`.

    Work goes on in `OUTPUT.partial`, which becomes `output` in one rename at the end. The same
    corpus, encoder and chunk size give the same index bytes, interrupted or not.

    Args:
        corpus: JSONL or JSONL.gz, see `store_corpus`.
        output: The folder to make.
        encoder: Decides the vectors; written into the manifest.
        chunk_rows: Passages encoded and stored at a time.
        overwrite: Replace another index at `output`, and drop another unfinished build.
        load: Makes the encoder.
        console: Where progress is shown; nowhere by default.

    Returns:
        The manifest of the folder.

    Raises:
        FileExistsError: `output` holds something else and `overwrite` is false.
        ValueError: `corpus` is at or inside a folder that is replaced.
        CorpusError: The corpus cannot be read; the message names the line.
        UnfinishedBuildError: `OUTPUT.partial` is of other settings and `overwrite` is false.
    """
    partial = output.with_name(f"{output.name}.partial")
    _refuse_corpus_inside(corpus, output, partial)
    _refuse_foreign_folder(output)
    partial.mkdir(parents=True, exist_ok=True)
    with _progress(console) as progress:
        info = _store(corpus, partial, progress)
        if not overwrite and (output / MANIFEST_FILE).exists():
            return _keep(output, partial, encoder, info)
        plan = Plan(encoder=encoder.identity(), chunk_rows=chunk_rows, corpus_sha256=info.sha256)
        plan.claim(partial, replace=overwrite)
        _encode(partial, info.rows, chunk_rows, lambda: load(encoder), progress)
        manifest = write_index(partial, encoder, info)
    move_into_place(partial, output)
    return manifest


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


def _keep(output: Path, partial: Path, encoder: EncoderSettings, info: CorpusInfo) -> Manifest:
    """Return the manifest of a finished folder, if it is what is asked for."""
    if not (partial / PLAN_FILE).exists():
        shutil.rmtree(partial)
    there = Manifest.load(output)
    if there.corpus != info or there.encoder.identity() != encoder.identity():
        what = "corpus" if there.corpus != info else "encoder"
        raise FileExistsError(
            f"{output} holds an index with another {what}: choose another --output, or replace "
            "it with --overwrite"
        )
    logger.info("%s is up to date", output)
    return there


def _store(corpus: Path, partial: Path, progress: Progress) -> CorpusInfo:
    task = progress.add_task("Reading the corpus", total=corpus.stat().st_size, unit="bytes")
    return store_corpus(corpus, partial, lambda read: progress.update(task, completed=read))


def _encode(
    partial: Path, rows: int, chunk_rows: int, load: Callable[[], Encoder], progress: Progress
) -> None:
    missing = missing_chunks(partial, rows, chunk_rows)
    done = rows - sum(map(len, missing.values()))
    task = progress.add_task("Encoding passages", total=rows, completed=done, unit="passages")
    if missing:
        encode_chunks(partial, missing, load(), lambda more: progress.advance(task, more))


def _progress(console: Console | None) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f} {task.fields[unit]}"),
        TaskProgressColumn(show_speed=True),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console or Console(quiet=True),
        speed_estimate_period=_SPEED_SECONDS,
    )
