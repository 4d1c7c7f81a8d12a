"""The vectors that a finished index folder holds, to build another type without encoding."""

import os
import shutil
from pathlib import Path
from typing import Protocol

import faiss
import numpy as np

from retrieval_server.encoder import FloatArray
from retrieval_server.index import VectorArray, read_faiss
from retrieval_server.index_rerank import open_vectors
from retrieval_server.index_types import IndexType
from retrieval_server.manifest import INDEX_FILE, VECTORS_FILE, Manifest

_EXACT = (IndexType.FLAT, IndexType.FLAT_FP16, IndexType.HNSW)
"""Types whose own file gives every vector back."""


class VectorSource(Protocol):
    """Vectors by their rows."""

    dimension: int

    def read(self, rows: range) -> FloatArray:
        """Float32 `[len(rows), dimension]`."""


class _FileSource:
    def __init__(self, vectors: VectorArray) -> None:
        self._vectors = vectors
        self.dimension = int(vectors.shape[1])

    def read(self, rows: range) -> FloatArray:
        return np.asarray(self._vectors[rows.start : rows.stop], dtype=np.float32)


class _IndexSource:
    def __init__(self, index: faiss.Index) -> None:
        self._index = index
        self.dimension = int(index.d)

    def read(self, rows: range) -> FloatArray:
        return np.asarray(self._index.reconstruct_n(rows.start, len(rows)), dtype=np.float32)


def open_source(folder: Path, manifest: Manifest) -> VectorSource:
    """The vectors of a finished folder, memory-mapped.

    Raises:
        ValueError: It keeps none, or only inexact ones.
    """
    if (folder / VECTORS_FILE).exists():
        return _FileSource(open_vectors(folder / VECTORS_FILE))
    if manifest.backend not in _EXACT:
        raise ValueError(
            f"--from: {folder} is of type {manifest.backend}, which keeps no exact vectors; give "
            f"a folder of type {', '.join(_EXACT)} or ivf-*, or encode anew with --corpus"
        )
    return _IndexSource(read_faiss(folder / INDEX_FILE, manifest.backend, memory_map=True))


def link_or_copy(source: Path, target: Path) -> None:
    """Give a finished file a second name, or copy it where the file system has no links."""
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
