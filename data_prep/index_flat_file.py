"""FAISS's file of a flat index, written block by block: the vectors are never all in memory."""

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Final

import faiss

from data_prep.index_vectors import blocks
from retrieval_server.index import VectorArray

_NTOTAL_AT: Final = 8
"""Byte at which the number of rows stands: after the type's four letters and the dimension."""
_FLOAT_BYTES: Final = 4


def write_flat(
    index: faiss.Index,
    vectors: VectorArray,
    target: Path,
    block_rows: int,
    advance: Callable[[int], None],
) -> None:
    """Write what `faiss.write_index` would, had all vectors been added to the index.

    Args:
        index: Empty and trained, an `IndexFlat` or `IndexScalarQuantizer`.
        vectors: `[rows, dimension]`.
        target: The file.
        block_rows: Vectors in memory at a time.
        advance: Told of rows written.
    """
    with target.open("wb") as file:
        file.write(_header(index, len(vectors)))
        for block in blocks(vectors, 0, block_rows):
            file.write(index.sa_encode(block).tobytes())
            advance(len(block))


def _header(index: faiss.Index, rows: int) -> bytes:
    """The file of an empty index, but for its last 8 bytes, the length of the codes."""
    empty = bytearray(faiss.serialize_index(index).tobytes())
    struct.pack_into("<q", empty, _NTOTAL_AT, rows)
    # Float vectors are counted in floats, codes in bytes.
    unit = _FLOAT_BYTES if isinstance(index, faiss.IndexFlat) else 1
    struct.pack_into("<Q", empty, len(empty) - 8, rows * index.sa_code_size() // unit)
    return bytes(empty)
