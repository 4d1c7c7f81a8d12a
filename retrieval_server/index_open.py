"""The parts of an index folder, opened and held against the manifest."""

from pathlib import Path
from typing import Final

import numpy as np

from retrieval_server.corpus import Corpus
from retrieval_server.encoder import Encoder
from retrieval_server.index import FaissIndex, VectorIndex
from retrieval_server.index_bm25 import BM25_FOLDER, Bm25Index
from retrieval_server.index_gpu import GpuFlatIndex
from retrieval_server.index_rerank import ReRankedIndex, open_vectors
from retrieval_server.manifest import (
    INDEX_FILE,
    MANIFEST_FILE,
    OFFSETS_FILE,
    VECTORS_FILE,
    Manifest,
    ManifestError,
)

# Half precision and other kernels move a vector by less than 0.001, 8 bits by less than 0.005;
# other weights, pooling or prefixes move it by far more.
_SAME_VECTOR: Final = 0.99


def open_corpus(folder: Path, manifest: Manifest, *, verify_hash: bool) -> Corpus:
    """Open the passages.

    Raises:
        ManifestError: They are not those of the manifest.
    """
    manifest.check_corpus(folder, verify_hash=verify_hash)
    corpus = Corpus(folder / manifest.corpus.file, folder / OFFSETS_FILE)
    manifest.check_rows(OFFSETS_FILE, len(corpus))
    return corpus


def open_vector_index(
    folder: Path, manifest: Manifest, *, memory_map: bool, gpu: bool = False
) -> VectorIndex:
    """Open the index of a dense type, with its exact vectors where it re-ranks.

    Args:
        folder: The index folder.
        manifest: Its manifest, with the search that is wanted.
        memory_map: Leave the index in its file, see `FaissIndex.load`.
        gpu: Copy a flat index to all GPUs.

    Raises:
        ManifestError: A part is not what the manifest says.
        ValueError: A file is damaged, or the GPUs cannot be had.
    """
    vectors = open_vectors(folder / VECTORS_FILE) if manifest.backend.keeps_vectors else None
    index = FaissIndex.load(
        folder / INDEX_FILE, manifest.backend, manifest.search, vectors, memory_map=memory_map
    )
    _check_index(index, manifest)
    if gpu:
        return GpuFlatIndex(index, manifest.backend)
    if vectors is not None and manifest.backend.re_ranks:
        return ReRankedIndex(index, vectors, manifest.search.candidates or 0)
    return index


def _check_index(index: FaissIndex, manifest: Manifest) -> None:
    manifest.check_rows(INDEX_FILE, index.rows)
    manifest.check_dimension(INDEX_FILE, index.dimension)
    if manifest.parameters.lists not in (None, index.lists):
        raise ManifestError(
            f"{INDEX_FILE} has {index.lists} lists, but {MANIFEST_FILE} says "
            f"{manifest.parameters.lists}: build the index again"
        )


def open_bm25(folder: Path, manifest: Manifest) -> Bm25Index:
    """Open the words of the passages.

    Raises:
        ManifestError: They are not of the manifest's passages.
        ValueError: The folder is damaged.
    """
    index = Bm25Index.load(folder)
    manifest.check_rows(BM25_FOLDER, index.rows)
    return index


def check_vectors(encoder: Encoder, index: VectorIndex, corpus: Corpus, manifest: Manifest) -> None:
    """Encode the first passage again: other weights than the builder's must not be served.

    Raises:
        ManifestError: The encoder's vector is another than the stored one.
    """
    name = manifest.encoder.model if manifest.encoder else ""
    manifest.check_dimension(f"encoder '{name}'", encoder.dimension)
    fresh = encoder.encode_passages([corpus[0].contents])[0]
    stored = index.vector(0)
    norms = float(np.linalg.norm(fresh) * np.linalg.norm(stored))
    cosine = float(fresh @ stored) / norms if norms else 1.0
    if cosine < _SAME_VECTOR:
        raise ManifestError(
            f"encoder '{name}' gives the first passage another vector than the "
            f"index holds (cosine {cosine:.3f}): its weights changed; build the index again"
        )
