"""Third stage of an index: vectors to a FAISS file of any type, resumable, in bounded memory."""

import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Final

import faiss
import numpy as np

from data_prep.index_flat_file import write_flat
from data_prep.index_vectors import blocks
from retrieval_server.encoder import FloatArray
from retrieval_server.index import VectorArray, innermost
from retrieval_server.index_types import BuildParameters, IndexType
from search_r1.files import atomic_path

Advance = Callable[[int], None]
"""Takes how many more rows are in the index."""

BLOCK_ROWS: Final = 65_536
"""Vectors added at a time; fixed, since the bytes of a graph depend on it."""
CHECKPOINT_SECONDS: Final = 600.0
_LEAST_WORK_A_CHECKPOINT: Final = 10
"""Time between two checkpoints, in times that the last one took to write."""
_PQ_CENTROIDS: Final = 256

_FACTORY: Final = {
    IndexType.FLAT: "Flat",
    IndexType.FLAT_FP16: "SQfp16",
    IndexType.FLAT_SQ8: "SQ8",
    IndexType.IVF_FLAT: "IVF{lists},Flat",
    IndexType.IVF_SQ8: "IVF{lists},SQ8",
    # Without the polysemous order of its codes, which takes longer than all the rest of training.
    IndexType.IVF_PQ: "IVF{lists},PQ{code_bytes}np",
    # Its bits are fair only of rotated vectors (Gao and Long, arXiv 2405.12497, section 3.1).
    IndexType.IVF_RABITQ: "RR{dimension},IVF{lists},RaBitQ",
    IndexType.HNSW: "HNSW{links}_Flat",
    IndexType.HNSW_SQ8: "HNSW{links}_SQ8",
}


def new_index(type_: IndexType, dimension: int, made_with: BuildParameters) -> faiss.Index:
    """An empty index, not trained yet, that ranks by inner product."""
    name = _FACTORY[type_].format(dimension=dimension, **made_with.model_dump())
    index = faiss.index_factory(dimension, name, faiss.METRIC_INNER_PRODUCT)
    inner = innermost(index)
    if type_.has_lists:
        inner.cp.seed = made_with.seed or 0
    if type_ is IndexType.IVF_PQ:
        inner.pq.cp.seed = made_with.seed or 0
    if made_with.ef_construction is not None:
        inner.hnsw.efConstruction = made_with.ef_construction
    return index


def write_faiss(
    vectors: VectorArray,
    type_: IndexType,
    made_with: BuildParameters,
    target: Path,
    advance: Advance,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
) -> None:
    """Build an index of `vectors` into `target`, from the last checkpoint beside it if any.

    The same vectors, type and parameters give the same bytes, interrupted or not. A graph is the
    exception: its links depend on the order in which threads add rows, and its bytes are the
    same with one thread (OMP_NUM_THREADS=1) alone.

    Memory: that of the training sample; then, but for the flat types, that of the index.

    Args:
        vectors: `[rows, dimension]`, memory-mapped.
        type_: The type.
        made_with: Its parameters, filled in by `build_parameters`.
        target: The file to write.
        advance: Told of rows added.
        checkpoint_seconds: How much work a kill may lose.

    Raises:
        ValueError: There are too few rows for the type.
    """
    _check_enough(type_, len(vectors))
    digest = sha256(f"{type_} {made_with.model_dump_json()}".encode()).hexdigest()[:12]
    checkpoint = target.with_name(f"checkpoint-{digest}.faiss")
    if checkpoint.exists():
        index = faiss.read_index(str(checkpoint))
    else:
        index = new_index(type_, vectors.shape[1], made_with)
        if not index.is_trained:
            index.train(training_sample(vectors, made_with))
            _save(index, checkpoint)
    if type_.has_lists or type_.has_graph:
        _fill(index, vectors, made_with, advance, _Checkpoints(checkpoint, checkpoint_seconds))
        _save(index, target)
    else:
        with atomic_path(target) as temporary:
            write_flat(index, vectors, temporary, BLOCK_ROWS, advance)
    checkpoint.unlink(missing_ok=True)


def training_sample(vectors: VectorArray, made_with: BuildParameters) -> FloatArray:
    """Rows drawn by the seed, float32 `[train_rows, dimension]`."""
    count = min(len(vectors), made_with.train_rows or len(vectors))
    drawn = np.random.default_rng(made_with.seed or 0).choice(len(vectors), count, replace=False)
    return np.asarray(vectors[np.sort(drawn)], dtype=np.float32)


class _Checkpoints:
    """Writes an unfinished index now and then."""

    def __init__(self, path: Path, every_seconds: float) -> None:
        self._path = path
        self._every = every_seconds
        self._due = time.monotonic() + every_seconds

    def offer(self, index: faiss.Index) -> None:
        begin = time.monotonic()
        if begin >= self._due:
            _save(index, self._path)
            end = time.monotonic()
            self._due = end + max(self._every, _LEAST_WORK_A_CHECKPOINT * (end - begin))


def _fill(
    index: faiss.Index,
    vectors: VectorArray,
    made_with: BuildParameters,
    advance: Advance,
    checkpoints: _Checkpoints,
) -> None:
    advance(index.ntotal)
    graph = getattr(innermost(index), "hnsw", None)
    for block in blocks(vectors, index.ntotal, BLOCK_ROWS):
        if graph is not None:
            # A file does not keep where the generator stood: each block has its own.
            graph.rng = faiss.RandomGenerator(  # type: ignore[attr-defined]
                (made_with.seed or 0) + index.ntotal // BLOCK_ROWS
            )
        index.add(block)
        advance(len(block))
        if index.ntotal < len(vectors):
            checkpoints.offer(index)


def _save(index: faiss.Index, path: Path) -> None:
    with atomic_path(path) as temporary:
        faiss.write_index(index, str(temporary))


def _check_enough(type_: IndexType, rows: int) -> None:
    if type_ is IndexType.IVF_PQ and rows < _PQ_CENTROIDS:
        raise ValueError(
            f"--type {type_}: {rows} passages are fewer than the {_PQ_CENTROIDS} that a product "
            "quantiser learns from; use --type flat"
        )
