"""Vectors and queries to measure indexes with: made ones of any number, or those of real passages.

How vectors are made. Embeddings of text are anisotropic, and lie in topics. A vector is
W (0.7 t + 0.7 z), scaled to length 1 and rounded to half precision: t is the centre of its topic,
z its own deviation, both standard normal; W turns them by a random rotation after scaling axis i
by i^-1/2, so that the variance falls as 1/i, as in a spectrum of real embeddings. There is a topic
for 50 rows, and the rows fall to topics as the square of a uniform number, so some topics are
large. A query is a stored vector plus 0.6 W z': as a question is to its passage, it is nearest to
its own row, and then to rows whose scores lie close together (of 20,000 rows: 0.86, 0.62, 0.60,
0.58; of real questions to MiniLM over 13,153 passages: 0.62, 0.53, 0.49, 0.47).
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from data_prep.index_source import open_source
from data_prep.index_vectors import VectorStore
from retrieval_server.encoder import FloatArray
from retrieval_server.index import VectorArray
from retrieval_server.manifest import Manifest
from retrieval_server.sentence_encoder import load_encoder
from search_r1.files import atomic_path

CHUNK_ROWS = 50_000
ROWS_A_TOPIC = 50
QUERY_NOISE = 0.6


class VectorSet(Protocol):
    """Vectors with queries."""

    def arguments(self) -> str:
        """How `index_recall.py run` is told to take this set."""

    def setting(self) -> dict[str, Any]:
        """What decides the set: `rows`, `dimension` and `queries` at least."""

    def fill(self, folder: Path) -> FloatArray:
        """Write what is missing of `vectors.npy`, half precision; return the queries."""


@dataclass(frozen=True)
class MadeSet:
    """Vectors and queries made by a seed."""

    rows: int
    dimension: int
    queries: int
    seed: int

    def arguments(self) -> str:
        """See `VectorSet`."""
        return " ".join(f"--{name} {value}" for name, value in asdict(self).items())

    def setting(self) -> dict[str, Any]:
        """See `VectorSet`."""
        return asdict(self)

    def fill(self, folder: Path) -> FloatArray:
        """See `VectorSet`."""
        store = VectorStore(folder, self.rows, CHUNK_ROWS, "float16")
        shape, topics = self._shape(), self._topics()
        for number, rows in store.missing().items():
            store.write(number, self._chunk(number, len(rows), shape, topics))
        return self._queries(store.open(), shape)

    def _shape(self) -> FloatArray:
        """W: falling scales, then a random rotation, `[dimension, dimension]`."""
        scales = np.arange(1, self.dimension + 1) ** -0.5
        drawn = np.random.default_rng([self.seed, 1]).standard_normal([self.dimension] * 2)
        rotation, _ = np.linalg.qr(drawn)
        return ((scales / np.linalg.norm(scales))[:, None] * rotation).astype(np.float32)

    def _topics(self) -> FloatArray:
        shape = (max(1, self.rows // ROWS_A_TOPIC), self.dimension)
        return np.random.default_rng([self.seed, 3]).standard_normal(shape, dtype=np.float32)

    def _chunk(self, number: int, rows: int, shape: FloatArray, topics: FloatArray) -> FloatArray:
        rng = np.random.default_rng([self.seed, 2, number])
        topic = (rng.random(rows) ** 2 * len(topics)).astype(np.int64)
        own = rng.standard_normal((rows, self.dimension), dtype=np.float32)
        return _unit((0.7 * topics[topic] + 0.7 * own) @ shape)

    def _queries(self, vectors: VectorArray, shape: FloatArray) -> FloatArray:
        rng = np.random.default_rng([self.seed, 4])
        near = np.sort(rng.choice(self.rows, self.queries, replace=False))
        noise = rng.standard_normal((self.queries, self.dimension), dtype=np.float32) @ shape
        return _unit(vectors[near].astype(np.float32) + QUERY_NOISE * noise)


@dataclass(frozen=True)
class RealSet:
    """The vectors of an index folder, and questions encoded by its encoder."""

    index: Path
    questions: list[Path]

    def arguments(self) -> str:
        """See `VectorSet`."""
        files = " ".join(f"--questions {path}" for path in self.questions)
        return f"--index {self.index} {files}"

    def setting(self) -> dict[str, Any]:
        """See `VectorSet`."""
        there = Manifest.load(self.index)
        sizes = {"rows": there.rows, "dimension": there.dimension, "queries": len(self._texts())}
        return sizes | {"corpus": there.corpus.sha256, "encoder": there.encoder.identity()}

    def fill(self, folder: Path) -> FloatArray:
        """See `VectorSet`."""
        there = Manifest.load(self.index)
        source = open_source(self.index, there)
        store = VectorStore(folder, there.rows, CHUNK_ROWS, "float16")
        for number, rows in store.missing().items():
            store.write(number, source.read(rows))
        return load_encoder(there.encoder).encode_queries(self._texts())

    def _texts(self) -> list[str]:
        lines = [line for path in self.questions for line in path.read_text().splitlines()]
        return [json.loads(line)["question"] for line in lines]


def prepare(folder: Path, vectors: VectorSet) -> None:
    """Write `vectors.npy` and `queries.npy` of a set, unless they are there.

    Raises:
        ValueError: The folder holds another set.
    """
    folder.mkdir(parents=True, exist_ok=True)
    wanted = json.dumps(vectors.setting())
    described = folder / "made.json"
    if described.exists() and described.read_text() != wanted:
        raise ValueError(f"--folder: {folder} holds other vectors: {described.read_text()}")
    described.write_text(wanted)
    if not (folder / "queries.npy").exists():
        queries = vectors.fill(folder)
        with atomic_path(folder / "queries.npy") as temporary, temporary.open("wb") as file:
            np.save(file, queries)


def _unit(vectors: FloatArray) -> FloatArray:
    scaled: FloatArray = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return scaled
