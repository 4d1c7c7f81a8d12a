"""One batch of queries: search, fetch. Synchronous, called from worker threads."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from retrieval_server.corpus import Corpus
from retrieval_server.encoder import PRESETS, Encoder, EncoderSettings, FloatArray, resolve_encoder
from retrieval_server.index import NO_ROW, RowArray, VectorIndex
from retrieval_server.index_bm25 import BM25_FOLDER
from retrieval_server.index_open import check_vectors, open_bm25, open_corpus, open_vector_index
from retrieval_server.manifest import INDEX_FILE, Manifest, ManifestError
from retrieval_server.schemas import ScoredDocument
from retrieval_server.sentence_encoder import load_encoder
from retrieval_server.settings import Settings

LoadEncoder = Callable[[EncoderSettings], Encoder]


class Report(Protocol):
    """Told by a service factory how far it is; /health shows it."""

    def __call__(self, stage: str, reads: int = 0) -> None:
        """Enter a loading stage, which will read so many bytes of files; 0 if not known."""


class Service(Protocol):
    """A search engine of any kind, as the micro-batcher calls it."""

    def search(self, queries: Sequence[str], topk: int) -> list[list[ScoredDocument]]:
        """Return the best `topk` passages of each query, best first.

        A smaller topk must give the beginning of the same list.
        """

    def info(self) -> dict[str, object]:
        """Say what is served, in JSON terms; shown by /health.

        With `engine`, its kind, `rows`, None where nobody knows, and, where it searches a corpus,
        `corpus`; one that is made of others has what they say as `parts`.
        """

    def close(self) -> None:
        """Release files."""


class RowSearch(Protocol):
    """Finds rows of a corpus for queries in words; what a service fetches passages with.

    Several over the same corpus can be joined by their rows.
    """

    def search(self, queries: Sequence[str], topk: int) -> tuple[FloatArray, RowArray]:
        """Return scores (descending) and rows, both `[n, min(topk, rows)]`.

        Where fewer are found, the last rows are `NO_ROW`.
        """


class DenseSearch:
    """An encoder, and a vector index over its embeddings: a `RowSearch`."""

    def __init__(self, encoder: Encoder, index: VectorIndex) -> None:
        self._encoder = encoder
        self._index = index

    def search(self, queries: Sequence[str], topk: int) -> tuple[FloatArray, RowArray]:
        """Encode the queries and search their vectors."""
        return self._index.search(self._encoder.encode_queries(queries), topk)


class IndexService:
    """An index folder: what finds rows of its corpus, and the corpus."""

    def __init__(self, rows: RowSearch, corpus: Corpus, manifest: Manifest) -> None:
        self.rows = rows
        self.corpus = corpus
        self._manifest = manifest

    def search(self, queries: Sequence[str], topk: int) -> list[list[ScoredDocument]]:
        """Return the best `topk` passages of each query, best first; fewer where none is left."""
        scores, rows = self.rows.search(queries, topk)
        return [
            [
                ScoredDocument(document=self.corpus[row], score=score)
                for row, score in zip(*line, strict=True)
                if row != NO_ROW
            ]
            for line in zip(rows.tolist(), scores.tolist(), strict=True)
        ]

    def info(self) -> dict[str, object]:
        """Return the manifest."""
        engine = "bm25" if self._manifest.encoder is None else "dense"
        return {"engine": engine, **self._manifest.model_dump(mode="json")}

    def close(self) -> None:
        """Release the corpus."""
        self.corpus.close()


def load_index(
    folder: Path, settings: Settings, report: Report, load: LoadEncoder = load_encoder
) -> IndexService:
    """Open an index folder, check every part against its manifest, and load the encoder.

    Raises:
        ManifestError: A part does not belong to the others.
        ValueError: The settings ask for what the type of index does not have.
    """
    report("manifest")
    manifest = Manifest.load(folder)
    if settings.encoder is not None:
        manifest.check_encoder(_wanted_encoder(settings.encoder, manifest))
    manifest = _with_search(manifest, settings)
    report("corpus", manifest.corpus.bytes if settings.verify_corpus else 0)
    corpus = open_corpus(folder, manifest, verify_hash=settings.verify_corpus)
    index_file = folder / INDEX_FILE
    report("index", index_file.stat().st_size if index_file.is_file() else 0)
    if manifest.encoder is None:
        rows: RowSearch = open_bm25(folder / BM25_FOLDER, manifest)
    else:
        rows = _open_dense(folder, settings, manifest, manifest.encoder, corpus, report, load)
    return IndexService(rows, corpus, manifest)


def _open_dense(
    folder: Path,
    settings: Settings,
    manifest: Manifest,
    encoder_settings: EncoderSettings,
    corpus: Corpus,
    report: Report,
    load: LoadEncoder,
) -> DenseSearch:
    index = open_vector_index(
        folder,
        manifest,
        memory_map=settings.memory_map,
        gpu=settings.faiss_gpu,
    )
    report("encoder")
    encoder = load(_runtime_encoder(settings, encoder_settings))
    report("check")
    check_vectors(encoder, index, corpus, manifest)
    return DenseSearch(encoder, index)


def _with_search(manifest: Manifest, settings: Settings) -> Manifest:
    search = manifest.search.override(settings.nprobe, settings.ef_search, settings.candidates)
    # As many as any request may ask for, so that fewer are always the beginning of more.
    least = {
        name: max(value, settings.deepest)
        for name in ("ef_search", "candidates")
        if (value := getattr(search, name)) is not None
    }
    return manifest.model_copy(update={"search": search.model_copy(update=least)})


def _wanted_encoder(name: str, manifest: Manifest) -> EncoderSettings:
    """Resolve a preset; a model's name or folder is compared by that alone."""
    if manifest.encoder is None:
        raise ManifestError(f"a {manifest.backend} index has no encoder: leave --encoder out")
    built = manifest.encoder.model_dump(exclude={"model"})
    return PRESETS.get(name) or resolve_encoder(name, **built)


def _runtime_encoder(settings: Settings, built: EncoderSettings) -> EncoderSettings:
    changes = {"device": settings.device, "dtype": settings.dtype}
    given = {field: value for field, value in changes.items() if value is not None}
    base = built.model_dump() | {"device": None}
    return EncoderSettings.model_validate(base | given)
