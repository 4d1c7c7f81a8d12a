"""Second stage of an index: passages to chunks of vectors that survive a kill, then one folder."""

import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import faiss
import numpy as np
from pydantic import BaseModel, ConfigDict

from retrieval_server.corpus import Corpus
from retrieval_server.encoder import Encoder, EncoderSettings, FloatArray
from retrieval_server.index import FlatIndex
from retrieval_server.manifest import (
    CORPUS_FILE,
    INDEX_FILE,
    MANIFEST_FILE,
    OFFSETS_FILE,
    CorpusInfo,
    Manifest,
)
from search_r1.files import atomic_path

PLAN_FILE = "plan.json"
_VECTORS_FOLDER = "vectors"

Advance = Callable[[int], None]
"""Takes how many more rows have been encoded."""


class UnfinishedBuildError(ValueError):
    """The folder holds an unfinished build with other settings."""


class Plan(BaseModel):
    """What a chunk of vectors depends on; chunks of different plans are never mixed."""

    model_config = ConfigDict(frozen=True)

    encoder: dict[str, object]
    chunk_rows: int
    corpus_sha256: str

    def claim(self, folder: Path, *, replace: bool) -> None:
        """Make a build folder this plan's; the chunks of another plan are dropped if `replace`.

        Raises:
            UnfinishedBuildError: The folder is another plan's and `replace` is false.
        """
        path = folder / PLAN_FILE
        if path.exists():
            there = Plan.model_validate_json(path.read_text())
            names = [
                name for name in Plan.model_fields if getattr(there, name) != getattr(self, name)
            ]
            if names and not replace:
                raise UnfinishedBuildError(
                    f"{folder} holds an unfinished build that differs in {', '.join(names)}: run "
                    "with its settings to finish it, or with --overwrite to start again"
                )
            if names:
                shutil.rmtree(folder / _VECTORS_FOLDER, ignore_errors=True)
        with atomic_path(path) as temporary:
            temporary.write_text(self.model_dump_json())


def missing_chunks(folder: Path, rows: int, chunk_rows: int) -> dict[Path, range]:
    """Return the chunk files a build folder lacks, with the corpus rows of each."""
    chunks = {}
    for number, start in enumerate(range(0, rows, chunk_rows)):
        path = folder / _VECTORS_FOLDER / f"{number:06d}.npy"
        if not path.exists():
            chunks[path] = range(start, min(start + chunk_rows, rows))
    return chunks


def encode_chunks(
    folder: Path, chunks: dict[Path, range], encoder: Encoder, advance: Advance
) -> None:
    """Encode rows of a build folder's corpus into chunk files, float32 `[rows, dimension]`.

    One chunk is in memory at a time; a file appears when it is complete.

    Raises:
        ValueError: The encoder gave a vector that is not finite, or of a wrong shape.
    """
    corpus = Corpus(folder / CORPUS_FILE, folder / OFFSETS_FILE)
    for path, rows in chunks.items():
        vectors = encoder.encode_passages([document.contents for document in corpus.fetch(rows)])
        _check_vectors(vectors, rows, encoder.dimension)
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            np.save(file, vectors)
        advance(len(rows))
    corpus.close()


def _check_vectors(vectors: FloatArray, rows: range, dimension: int) -> None:
    if vectors.shape != (len(rows), dimension):
        raise ValueError(f"the encoder gave {vectors.shape}, not {(len(rows), dimension)}")
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if bad.size:
        row = rows[int(bad[0])] + 1
        raise ValueError(f"corpus row {row} has a vector that is not finite: use --dtype float32")


def write_index(folder: Path, encoder: EncoderSettings, corpus: CorpusInfo) -> Manifest:
    """Join the chunks into `index.faiss` and write the manifest. Memory: the whole flat index."""
    chunks = sorted((folder / _VECTORS_FOLDER).glob("*.npy"))
    dimension = int(np.load(chunks[0], mmap_mode="r").shape[1])
    index = FlatIndex.build(dimension, (np.load(path) for path in chunks))
    index.save(folder / INDEX_FILE)
    manifest = Manifest(
        rows=index.rows,
        dimension=dimension,
        encoder=encoder,
        corpus=corpus,
        faiss_version=faiss.__version__,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    manifest.check_rows(CORPUS_FILE, corpus.rows)
    (folder / MANIFEST_FILE).write_text(manifest.model_dump_json(indent=2) + "\n")
    return manifest


def move_into_place(folder: Path, output: Path) -> None:
    """Rename a finished build to its name, in place of an older index, and drop the chunks."""
    old = output.with_name(f"{output.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    if output.exists():
        output.rename(old)
    folder.rename(output)
    shutil.rmtree(old, ignore_errors=True)
    shutil.rmtree(output / _VECTORS_FOLDER)
    (output / PLAN_FILE).unlink()
