"""The stages of an index build after the corpus: vectors, then the index itself."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from rich.progress import Progress

from data_prep.index_bm25 import write_bm25
from data_prep.index_encode import LoadEncoder, Workers, encoding
from data_prep.index_faiss import CHECKPOINT_SECONDS, write_faiss
from data_prep.index_plan_file import Plan
from data_prep.index_progress import passages_bar
from data_prep.index_source import VectorSource
from data_prep.index_vectors import VectorStore, vector_dtype
from retrieval_server.corpus import Corpus
from retrieval_server.encoder import EncoderSettings, FloatArray
from retrieval_server.index_types import BuildParameters, IndexType, build_parameters
from retrieval_server.manifest import CORPUS_FILE, INDEX_FILE, OFFSETS_FILE, CorpusInfo

Fill = Callable[[dict[int, range]], Iterable[tuple[int, FloatArray]]]
"""Takes chunks with their rows, gives each with its vectors, in order."""

Bar = Callable[[int, int], Callable[[int], None]]
"""Takes how many vectors there will be and are, gives what is told of more."""

DEFAULT_CHUNK_ROWS = 1024


@dataclass(frozen=True, slots=True)
class IndexRequest:
    """What index is wanted, beyond its corpus and encoder, and how it is made."""

    type: IndexType = IndexType.FLAT
    parameters: BuildParameters = field(default_factory=BuildParameters)
    """What is None is filled in by the number of rows."""
    chunk_rows: int = DEFAULT_CHUNK_ROWS
    """Passages encoded and stored at a time; a kill loses at most these."""
    checkpoint_seconds: float = CHECKPOINT_SECONDS
    """Of adding vectors to an index; a kill loses about these."""
    workers: Workers = field(default_factory=Workers)
    overwrite: bool = False
    """Replace another index at the output, and drop another unfinished build."""

    def filled(self, rows: int, dimension: int | None) -> BuildParameters:
        """All parameters of the type.

        Raises:
            ValueError: One is given that the type does not have, or that cannot work.
        """
        return build_parameters(self.type, rows, dimension, self.parameters)


def open_corpus(folder: Path) -> "closing[Corpus]":
    """The stored corpus of a build folder, closed after a `with` block."""
    return closing(Corpus(folder / CORPUS_FILE, folder / OFFSETS_FILE))


def make_vectors(
    folder: Path,
    info: CorpusInfo,
    encoder: EncoderSettings,
    request: IndexRequest,
    fill: Fill,
    bar: Bar,
) -> VectorStore:
    """Fill in the vectors that a build folder lacks; those of another plan are not used.

    Raises:
        UnfinishedBuildError: The folder holds vectors of another plan, and may not lose them.
        ValueError: A vector is not finite, or of a wrong shape.
    """
    store = VectorStore(folder, info.rows, request.chunk_rows, vector_dtype(request.type))
    plan = Plan(
        encoder=encoder.identity(),
        chunk_rows=request.chunk_rows,
        corpus_sha256=info.sha256,
        vectors=store.dtype,
    )
    plan.claim(folder, replace=request.overwrite)
    missing = store.missing()
    done = info.rows - sum(map(len, missing.values()))
    advance = bar(info.rows, done)
    if missing:
        for chunk, vectors in fill(missing):
            store.write(chunk, vectors)
            advance(len(vectors))
    return store


def encode(folder: Path, encoder: EncoderSettings, workers: Workers, load: LoadEncoder) -> Fill:
    """Fill chunks by encoding the passages of a build folder's corpus."""

    def fill(chunks: dict[int, range]) -> Iterator[tuple[int, FloatArray]]:
        with open_corpus(folder) as corpus, encoding(load, encoder, workers) as encode_all:
            texts = ([passage.contents for passage in corpus.fetch(r)] for r in chunks.values())
            yield from zip(chunks, encode_all(texts), strict=True)

    return fill


def take(source: VectorSource) -> Fill:
    """Fill chunks with the vectors of a finished index."""
    return lambda chunks: ((chunk, source.read(rows)) for chunk, rows in chunks.items())


def make_index(
    folder: Path, store: VectorStore, request: IndexRequest, progress: Progress
) -> tuple[BuildParameters, int]:
    """Write `index.faiss`; return its parameters and the dimension."""
    vectors = store.open()
    rows, dimension = vectors.shape
    parameters = request.filled(rows, dimension)
    if parameters.train_rows:
        progress.console.print(
            f"The index first learns from {parameters.train_rows:,} vectors; that has no bar."
        )
    write_faiss(
        vectors,
        request.type,
        parameters,
        folder / INDEX_FILE,
        passages_bar(progress, "Indexing vectors", rows),
        request.checkpoint_seconds,
    )
    return parameters, dimension


def make_words(folder: Path, request: IndexRequest, progress: Progress) -> BuildParameters:
    """Write the folder `bm25`; return its parameters."""
    with open_corpus(folder) as corpus:
        parameters = request.filled(len(corpus), None)
        write_bm25(
            corpus, parameters, folder, passages_bar(progress, "Indexing words", len(corpus))
        )
    return parameters
