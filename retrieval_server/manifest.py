"""The manifest of an index folder: what the index was made of, checked before it is served."""

import hashlib
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from retrieval_server.encoder import EncoderSettings
from retrieval_server.index_types import BuildParameters, IndexType, SearchParameters

MANIFEST_FILE = "manifest.json"
INDEX_FILE = "index.faiss"
CORPUS_FILE = "corpus.jsonl"
OFFSETS_FILE = "offsets.npy"
VECTORS_FILE = "vectors.npy"

_HASH_BLOCK = 1 << 22


class ManifestError(ValueError):
    """The index folder is not what its manifest says; the message tells what to do."""


class CorpusInfo(BaseModel):
    """The corpus file in the index folder."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: str = CORPUS_FILE
    rows: int
    bytes: int
    sha256: str


class Manifest(BaseModel):
    """What an index folder holds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = 1
    backend: IndexType = IndexType.FLAT
    metric: Literal["inner_product", "bm25"] = "inner_product"
    rows: int
    dimension: int | None
    """Of the vectors; None where there are none."""
    encoder: EncoderSettings | None
    """None where words are searched."""
    corpus: CorpusInfo
    parameters: BuildParameters = BuildParameters()
    search: SearchParameters = SearchParameters()
    """What the server's searches choose when it is told nothing else."""
    library: str = ""
    """What wrote the index, and its version."""
    faiss_version: str | None = None
    """In place of `library`, in folders of the first kind."""
    created: str
    """UTC, ISO 8601."""

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read `manifest.json` of an index folder.

        Raises:
            ManifestError: It is missing or not a manifest of this version.
        """
        path = folder / MANIFEST_FILE
        try:
            return cls.model_validate_json(path.read_bytes())
        except FileNotFoundError as error:
            raise ManifestError(
                f"{folder} has no {MANIFEST_FILE}: build the folder with `search-r1 prepare index`"
            ) from error
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            field = ".".join(str(part) for part in first["loc"])
            raise ManifestError(f"{path}, field '{field}': {first['msg']}") from error

    def check_corpus(self, folder: Path, *, verify_hash: bool) -> None:
        """Compare the corpus file with the manifest: its size, and its hash when asked to.

        Raises:
            ManifestError: They differ.
        """
        path = folder / self.corpus.file
        size = path.stat().st_size
        if size != self.corpus.bytes:
            raise ManifestError(self._mismatch(f"{path} has {size} bytes", self.corpus.bytes))
        if verify_hash and (found := sha256_of(path)) != self.corpus.sha256:
            raise ManifestError(self._mismatch(f"{path} has sha256 {found}", self.corpus.sha256))

    def check_rows(self, what: str, rows: int) -> None:
        """Refuse a part of the folder whose number of rows is not the manifest's."""
        if rows != self.rows:
            raise ManifestError(self._mismatch(f"{what} has {rows} rows", self.rows))

    def check_dimension(self, what: str, dimension: int) -> None:
        """Refuse vectors whose length is not the manifest's."""
        if dimension != self.dimension:
            raise ManifestError(self._mismatch(f"{what} has dimension {dimension}", self.dimension))

    def check_encoder(self, wanted: EncoderSettings) -> None:
        """Refuse an index that another encoder made than the one that is asked for."""
        built = self.encoder.identity() if self.encoder else {}
        for field, value in wanted.identity().items():
            if built.get(field) != value:
                raise ManifestError(
                    f"the index was built with encoder.{field} = {built.get(field)!r}, but "
                    f"{value!r} is asked for: leave --encoder out, or build the index again"
                )

    @staticmethod
    def _mismatch(found: str, expected: object) -> str:
        return f"{found}, but {MANIFEST_FILE} says {expected}: build the index again"


def sha256_of(path: Path) -> str:
    """Hash a file in blocks, in bounded memory."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_HASH_BLOCK):
            digest.update(block)
    return digest.hexdigest()
