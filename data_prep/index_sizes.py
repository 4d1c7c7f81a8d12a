"""What an index of each type takes of disk and memory, computed before it is built.

FAISS's files are the sum of a few arrays; the tests hold these formulas against files that were
written. Everything is in bytes.
"""

from dataclasses import dataclass
from typing import Final

from retrieval_server.index_types import BuildParameters, IndexType

_FLOAT, _HALF, _ID, _LINK, _OFFSET = 4, 2, 8, 4, 8
_RABITQ_FACTORS: Final = 8
"""Two floats that stand beside the bits of a RaBitQ code."""
_LEVEL_BYTES: Final = 4
_PQ_CENTROIDS: Final = 256
_SAMPLE_COPIES: Final = 4
"""Of the training sample, while k-means runs: 2.1 to 3.3 at the peak of builds over 10^6 rows."""

_BM25_POSTING: Final = 8
"""A score and a row."""
_BM25_WORDS_A_PASSAGE: Final = 54
"""Different stems in a passage of 100 words with its title: 46 in paragraphs of 580 bytes."""
_BM25_BUILD: Final = 1 << 30
"""A block of words with what is computed of it (0.6 GiB, measured), and a vocabulary."""
_CORPUS_ROW: Final = 680
"""Bytes of a row of the 2018 Wikipedia dump in 100-word passages (14 GB in 21 million rows)."""


@dataclass(frozen=True, slots=True)
class IndexSize:
    """Bytes of one index, without the corpus."""

    index: int
    """The index file."""
    vectors: int
    """Half-precision vectors kept beside it."""
    resident: int
    """What every search may touch, so what should stay in memory, mapped or loaded."""
    build: int
    """Memory at the peak of building, after encoding."""
    gpu: int
    """Memory over all GPUs with --faiss-gpu; 0 where it cannot be used."""

    @property
    def disk(self) -> int:
        """Index and vectors."""
        return self.index + self.vectors

    @property
    def on_demand(self) -> int:
        """What stays on disk, and is read for some rows of each query only."""
        return self.disk - self.resident


def index_size(
    type_: IndexType, rows: int, dimension: int, made_with: BuildParameters
) -> IndexSize:
    """The size of an index with filled-in parameters (see `build_parameters`)."""
    if type_ is IndexType.BM25:
        postings = rows * _BM25_WORDS_A_PASSAGE * _BM25_POSTING
        return IndexSize(postings, 0, postings, _BM25_BUILD + rows * _OFFSET, 0)
    row = _row_bytes(type_, dimension, made_with)
    index = round(rows * row) + _tables(type_, dimension, made_with)
    vectors = rows * dimension * _HALF if type_.keeps_vectors else 0
    sample = _SAMPLE_COPIES * (made_with.train_rows or 0) * dimension * _FLOAT
    held = index if type_.has_lists or type_.has_graph else 0
    gpu = rows * dimension * _HALF if type_ is IndexType.FLAT else 0
    return IndexSize(index, vectors, index, max(held, sample), gpu)


def corpus_bytes(rows: int) -> int:
    """Disk that passages of 100 words and their offsets take."""
    return rows * (_CORPUS_ROW + _OFFSET)


def _row_bytes(type_: IndexType, dimension: int, made_with: BuildParameters) -> float:
    code = {
        IndexType.FLAT: dimension * _FLOAT,
        IndexType.FLAT_FP16: dimension * _HALF,
        IndexType.FLAT_SQ8: dimension,
        IndexType.IVF_FLAT: dimension * _FLOAT,
        IndexType.IVF_SQ8: dimension,
        IndexType.IVF_PQ: made_with.code_bytes or 0,
        IndexType.IVF_RABITQ: -(-dimension // 8) + _RABITQ_FACTORS,
        IndexType.HNSW: dimension * _FLOAT,
        IndexType.HNSW_SQ8: dimension,
    }[type_]
    if type_.has_lists:
        return code + _ID
    return code + (_graph_bytes(made_with.links or 0) if type_.has_graph else 0)


def _graph_bytes(links: int) -> float:
    """Links of a row on the lowest level, and on as many more as a row has on average."""
    higher = 1 / (links - 1)
    return _LINK * links * (2 + higher) + _LEVEL_BYTES + _OFFSET


def _tables(type_: IndexType, dimension: int, made_with: BuildParameters) -> int:
    """Centroids, codebooks, ranges and rotation: what does not grow with the rows."""
    tables = (made_with.lists or 0) * (dimension * _FLOAT + _OFFSET)
    if type_ is IndexType.IVF_PQ:
        tables += _PQ_CENTROIDS * dimension * _FLOAT
    elif type_ is IndexType.IVF_RABITQ:
        tables += dimension * dimension * _FLOAT
    elif type_.endswith("sq8"):
        tables += 2 * dimension * _FLOAT
    return tables
