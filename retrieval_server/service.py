"""One batch of queries: encode, search, fetch. Synchronous, called from one worker thread."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from retrieval_server.corpus import Corpus
from retrieval_server.encoder import PRESETS, Encoder, EncoderSettings, resolve_encoder
from retrieval_server.index import FlatIndex, VectorIndex
from retrieval_server.manifest import INDEX_FILE, OFFSETS_FILE, Manifest, ManifestError
from retrieval_server.schemas import ScoredDocument
from retrieval_server.sentence_encoder import load_encoder
from retrieval_server.settings import Settings

LoadEncoder = Callable[[EncoderSettings], Encoder]

# Half precision and other kernels move a vector by less than 0.001; other weights, pooling
# or prefixes move it by far more.
_SAME_VECTOR = 0.99


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
        """Say what is served, in JSON terms, with `rows` and `encoder`; shown by /health."""

    def close(self) -> None:
        """Release files."""


class DenseService:
    """An encoder, a vector index over its embeddings, and the corpus they came from."""

    def __init__(
        self, encoder: Encoder, index: VectorIndex, corpus: Corpus, manifest: Manifest
    ) -> None:
        self._encoder = encoder
        self._index = index
        self._corpus = corpus
        self._manifest = manifest

    def search(self, queries: Sequence[str], topk: int) -> list[list[ScoredDocument]]:
        """Return the best `topk` passages of each query, best first."""
        scores, rows = self._index.search(self._encoder.encode_queries(queries), topk)
        return [
            [
                ScoredDocument(document=document, score=float(score))
                for document, score in zip(self._corpus.fetch(row), score_row, strict=True)
            ]
            for row, score_row in zip(rows.tolist(), scores, strict=True)
        ]

    def info(self) -> dict[str, object]:
        """Return the manifest."""
        return self._manifest.model_dump(mode="json")

    def close(self) -> None:
        """Release the corpus."""
        self._corpus.close()


def load_service(
    settings: Settings, report: Report, load: LoadEncoder = load_encoder
) -> DenseService:
    """Open an index folder, check every part against its manifest, and load the encoder.

    Raises:
        ManifestError: A part does not belong to the others.
    """
    folder = settings.index
    report("manifest")
    manifest = Manifest.load(folder)
    if settings.encoder is not None:
        manifest.check_encoder(_wanted_encoder(settings.encoder, manifest))
    report("corpus", manifest.corpus.bytes if settings.verify_corpus else 0)
    corpus = _open_corpus(folder, manifest, verify_hash=settings.verify_corpus)
    index_file = folder / INDEX_FILE
    report("index", index_file.stat().st_size if index_file.is_file() else 0)
    index = _open_index(folder, manifest, mapped=settings.workers > 1)
    report("encoder")
    encoder = load(_runtime_encoder(settings, manifest))
    report("check")
    _check_vectors(encoder, index, corpus, manifest)
    return DenseService(encoder, index, corpus, manifest)


def _wanted_encoder(name: str, manifest: Manifest) -> EncoderSettings:
    """Resolve a preset; a model's name or folder is compared by that alone."""
    built = manifest.encoder.model_dump(exclude={"model"})
    return PRESETS.get(name) or resolve_encoder(name, **built)


def _runtime_encoder(settings: Settings, manifest: Manifest) -> EncoderSettings:
    changes = {"device": settings.device, "dtype": settings.dtype}
    given = {field: value for field, value in changes.items() if value is not None}
    base = manifest.encoder.model_dump() | {"device": None}
    return EncoderSettings.model_validate(base | given)


def _open_corpus(folder: Path, manifest: Manifest, *, verify_hash: bool) -> Corpus:
    manifest.check_corpus(folder, verify_hash=verify_hash)
    corpus = Corpus(folder / manifest.corpus.file, folder / OFFSETS_FILE)
    manifest.check_rows(OFFSETS_FILE, len(corpus))
    return corpus


def _open_index(folder: Path, manifest: Manifest, *, mapped: bool) -> FlatIndex:
    index = FlatIndex.load(folder / INDEX_FILE, mapped=mapped)
    manifest.check_rows(INDEX_FILE, index.rows)
    manifest.check_dimension(INDEX_FILE, index.dimension)
    return index


def _check_vectors(
    encoder: Encoder, index: VectorIndex, corpus: Corpus, manifest: Manifest
) -> None:
    """Encode the first passage again: other weights than the builder's must not be served."""
    manifest.check_dimension(f"encoder '{manifest.encoder.model}'", encoder.dimension)
    fresh = encoder.encode_passages([corpus[0].contents])[0]
    stored = index.vector(0)
    norms = float(np.linalg.norm(fresh) * np.linalg.norm(stored))
    cosine = float(fresh @ stored) / norms if norms else 1.0
    if cosine < _SAME_VECTOR:
        raise ManifestError(
            f"encoder '{manifest.encoder.model}' gives the first passage another vector than the "
            f"index holds (cosine {cosine:.3f}): its weights changed; build the index again"
        )
