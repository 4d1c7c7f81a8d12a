"""An index folder is served only when its parts belong together."""

import json
from collections.abc import Callable
from pathlib import Path

import faiss
import numpy as np
import pytest

from retrieval_server.encoder import PRESETS, Encoder, EncoderSettings, FloatArray
from retrieval_server.engines.assemble import load_service
from retrieval_server.manifest import Manifest, ManifestError
from retrieval_server.service import Service
from retrieval_server.settings import Settings

Load = Callable[..., Service]
LATER_STAGES = [("encoder", 0), ("check", 0)]


@pytest.fixture
def load_folder(index_folder: Path, encoder: Encoder) -> Load:
    def run(with_encoder: Encoder = encoder, **settings: object) -> Service:
        values = Settings.model_validate({"index": index_folder} | settings)
        return load_service(values, lambda *_: None, load=lambda _: with_encoder)

    return run


def change(folder: Path, **fields: object) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def test_stages_are_reported_in_order(index_folder: Path, encoder: Encoder) -> None:
    stages: list[tuple[str, int]] = []
    report = lambda stage, reads=0: stages.append((stage, reads))  # noqa: E731
    service = load_service(Settings(index=index_folder), report, load=lambda _: encoder)
    corpus = (index_folder / "corpus.jsonl").stat().st_size
    index = (index_folder / "index.faiss").stat().st_size
    assert stages == [("manifest", 0), ("corpus", corpus), ("index", index), *LATER_STAGES]
    assert service.info() == {"engine": "dense"} | Manifest.load(index_folder).model_dump(
        mode="json"
    )
    service.close()


def test_a_folder_without_a_manifest_is_refused(load_folder: Load, index_folder: Path) -> None:
    (index_folder / "manifest.json").unlink()
    with pytest.raises(ManifestError, match="search-r1 prepare index"):
        load_folder()


@pytest.mark.parametrize(
    ("field", "value"), [("metric", "l2"), ("version", 2), ("rows", "many"), ("extra", 1)]
)
def test_a_manifest_it_does_not_know_is_refused_by_field(
    load_folder: Load, index_folder: Path, field: str, value: object
) -> None:
    change(index_folder, **{field: value})
    with pytest.raises(ManifestError, match=f"field '{field}'"):
        load_folder()


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("rows", 6, r"offsets\.npy has 5 rows, but manifest\.json says 6"),
        ("dimension", 32, r"index\.faiss has dimension 64, but manifest\.json says 32"),
    ],
)
def test_other_rows_or_dimension_are_refused(
    load_folder: Load, index_folder: Path, field: str, value: int, reason: str
) -> None:
    change(index_folder, **{field: value})
    with pytest.raises(ManifestError, match=reason):
        load_folder()


def test_an_index_of_other_rows_is_refused(load_folder: Load, index_folder: Path) -> None:
    other = faiss.IndexFlatIP(64)
    other.add(np.zeros((4, 64), dtype=np.float32))
    faiss.write_index(other, str(index_folder / "index.faiss"))
    with pytest.raises(ManifestError, match=r"index\.faiss has 4 rows"):
        load_folder()


def test_a_corpus_of_another_size_is_refused(load_folder: Load, index_folder: Path) -> None:
    with (index_folder / "corpus.jsonl").open("ab") as file:
        file.write(b"\n")
    with pytest.raises(ManifestError, match=r"corpus\.jsonl has \d+ bytes.*build the index again"):
        load_folder()


def test_an_edited_corpus_is_refused_unless_the_hash_is_not_asked_for(
    load_folder: Load, index_folder: Path
) -> None:
    path = index_folder / "corpus.jsonl"
    path.write_bytes(path.read_bytes().replace(b"without a title", b"without a totle"))
    with pytest.raises(ManifestError, match="sha256"):
        load_folder()
    load_folder(verify_corpus=False)


class OtherEncoder:
    """An encoder whose vectors are not the ones in the index."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension

    def encode_queries(self, queries: list[str]) -> FloatArray:
        return np.eye(len(queries), self.dimension, dtype=np.float32)

    encode_passages = encode_queries


@pytest.mark.parametrize(
    ("dimension", "reason"), [(32, "has dimension 32"), (64, r"cosine 0\.\d+.*weights changed")]
)
def test_an_encoder_that_did_not_make_the_index_is_refused(
    load_folder: Load, dimension: int, reason: str
) -> None:
    with pytest.raises(ManifestError, match=reason):
        load_folder(OtherEncoder(dimension))


def test_asking_for_another_encoder_is_refused(load_folder: Load) -> None:
    load_folder(encoder="hashing")
    with pytest.raises(ManifestError, match=r"built with encoder\.model = 'hashing'"):
        load_folder(encoder="another")
    with pytest.raises(ManifestError, match=r"built with encoder\.model = 'hashing'"):
        load_folder(encoder="minilm")


def test_device_and_dtype_are_the_servers_own(index_folder: Path, encoder: Encoder) -> None:
    change(index_folder, encoder=PRESETS["e5"].model_dump() | {"device": "cuda:7"})
    seen: list[EncoderSettings] = []

    def load(settings: EncoderSettings) -> Encoder:
        seen.append(settings)
        return encoder

    for settings in ({}, {"device": "cpu", "dtype": "bfloat16"}):
        values = Settings.model_validate({"index": index_folder} | settings)
        load_service(values, lambda *_: None, load=load).close()
    e5 = PRESETS["e5"]
    assert seen == [e5, e5.model_copy(update={"device": "cpu", "dtype": "bfloat16"})]
