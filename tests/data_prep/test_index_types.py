"""Every type of index: resumed to the same bytes, made from another, as large as planned."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import faiss
import numpy as np
import pytest

from data_prep import index_faiss
from data_prep.index_build import build_index
from data_prep.index_encode import Workers
from data_prep.index_faiss import new_index, training_sample
from data_prep.index_flat_file import write_flat
from data_prep.index_sizes import index_size
from data_prep.index_source import VectorSource, open_source
from data_prep.index_stages import IndexRequest
from retrieval_server.encoder import EncoderSettings, FloatArray
from retrieval_server.engines.assemble import load_service
from retrieval_server.index_types import BuildParameters, IndexType, build_parameters
from retrieval_server.manifest import Manifest, ManifestError
from retrieval_server.service import IndexService
from retrieval_server.settings import Settings

ROWS = 600
DIMENSION = 16
ENCODER = EncoderSettings(
    model="hashing", query_prefix="", passage_prefix="", pooling="mean", device="cpu"
)
DENSE = [type_ for type_ in IndexType if type_.is_dense]
FILLED = [type_ for type_ in DENSE if type_.has_lists or type_.has_graph]

ENCODER_MODULE = """
import numpy as np, zlib

class Words:
    dimension = 16

    def encode_passages(self, passages):
        seeds = [zlib.crc32(passage.encode()) for passage in passages]
        drawn = np.array([np.random.default_rng(seed).standard_normal(16) for seed in seeds])
        drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
        return drawn.astype(np.float32)

    encode_queries = encode_passages

def load(settings):
    return Words()
"""


class Killed(BaseException):
    """Ends a build as a signal would."""


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., object]]:
    """An encoder's loader that other processes can import too."""
    folder = tmp_path_factory.mktemp("module")
    (folder / "words_encoder.py").write_text(ENCODER_MODULE)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        patch.setenv("PYTHONPATH", str(folder), prepend=os.pathsep)
        import words_encoder

        yield words_encoder.load


@pytest.fixture(autouse=True, scope="module")
def small_blocks() -> Iterator[None]:
    """Several blocks, and one thread: the links of a graph depend on the threads."""
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_faiss, "BLOCK_ROWS", 100)
        patch.setattr(index_faiss, "_LEAST_WORK_A_CHECKPOINT", 0)
        yield
    faiss.omp_set_num_threads(threads)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "passages.jsonl"
    rows = [json.dumps({"id": str(n), "contents": f"passage number{n}"}) for n in range(ROWS)]
    path.write_text("\n".join(rows))
    return path


Build = Callable[..., Manifest]
Whole = Callable[[IndexType], Path]


@pytest.fixture(scope="module")
def build_at(corpus: Path, load: Callable[..., object]) -> Build:
    def run(type_: IndexType, output: Path, **request: object) -> Manifest:
        source = request.pop("source", None)
        wanted = IndexRequest(type=type_, **({"chunk_rows": 256} | request))
        encoder = ENCODER if type_.is_dense else None
        return build_index(corpus, output, encoder, wanted, source=source, load=load)

    return run


@pytest.fixture
def build(build_at: Build, tmp_path: Path) -> Build:
    """Builds a type into a folder of this test."""
    return lambda type_, output, **request: build_at(type_, tmp_path / output, **request)


@pytest.fixture(scope="module")
def whole(build_at: Build, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """The folder of a type that was encoded and built in one go; made once, not to be changed."""
    folder = tmp_path_factory.mktemp("whole")

    def made(type_: IndexType) -> Path:
        if not (folder / type_).exists():
            build_at(type_, folder / type_)
        return folder / type_

    return made


def contents_of(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.name: path.read_bytes() for path in files if path.name != "manifest.json"}


def source_of(folder: Path) -> VectorSource:
    return open_source(folder, Manifest.load(folder))


def dying_blocks(dies_at: int) -> Callable[..., Iterator[FloatArray]]:
    whole = index_faiss.blocks

    def blocks(*arguments: object) -> Iterator[FloatArray]:
        for number, block in enumerate(whole(*arguments)):
            if number == dies_at:
                raise Killed
            yield block

    return blocks


@pytest.mark.parametrize("type_", FILLED)
def test_an_index_killed_while_it_fills_goes_on_to_the_same_bytes(
    build: Build, tmp_path: Path, whole: Whole, type_: IndexType, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(index_faiss, "blocks", dying_blocks(3))
        with pytest.raises(Killed):
            build(type_, "index", checkpoint_seconds=0)
    (checkpoint,) = (tmp_path / "index.partial").glob("checkpoint-*.faiss")
    assert faiss.read_index(str(checkpoint)).ntotal == 300
    build(type_, "index")
    assert contents_of(tmp_path / "index") == contents_of(whole(type_))


@pytest.mark.parametrize("type_", [IndexType.FLAT, IndexType.FLAT_FP16, IndexType.FLAT_SQ8])
def test_a_flat_file_is_what_faiss_writes(tmp_path: Path, type_: IndexType) -> None:
    vectors = np.random.default_rng(0).standard_normal((250, DIMENSION)).astype(np.float32)
    index = new_index(type_, DIMENSION, build_parameters(type_, 250, DIMENSION, BuildParameters()))
    index.train(vectors)
    write_flat(index, vectors, tmp_path / "streamed", 100, lambda *_: None)
    index.add(vectors)
    faiss.write_index(index, str(tmp_path / "whole"))
    assert (tmp_path / "streamed").read_bytes() == (tmp_path / "whole").read_bytes()


@pytest.mark.parametrize("type_", DENSE)
def test_a_type_made_from_another_is_the_one_that_encoding_gives(
    build: Build, tmp_path: Path, whole: Whole, type_: IndexType
) -> None:
    build(type_, "taken", source=source_of(whole(IndexType.FLAT)))
    assert contents_of(tmp_path / "taken") == contents_of(whole(type_))


@pytest.mark.parametrize("type_", [IndexType.IVF_PQ, IndexType.HNSW, IndexType.FLAT_FP16])
def test_half_precision_vectors_pass_from_type_to_type_unchanged(
    build: Build, tmp_path: Path, whole: Whole, type_: IndexType
) -> None:
    build(IndexType.IVF_FLAT, "taken", source=source_of(whole(type_)))
    assert contents_of(tmp_path / "taken") == contents_of(whole(IndexType.IVF_FLAT))


def test_a_type_without_exact_vectors_is_no_source(whole: Whole) -> None:
    with pytest.raises(ValueError, match=r"hnsw-sq8, which keeps no exact vectors; give"):
        source_of(whole(IndexType.HNSW_SQ8))


@pytest.mark.slow
@pytest.mark.parametrize("workers", [Workers(2), Workers(2, "local")], ids=["processes", "Ray"])
def test_several_encoders_give_the_bytes_of_one(
    build: Build, tmp_path: Path, whole: Whole, workers: Workers
) -> None:
    build(IndexType.FLAT, "index", workers=workers, chunk_rows=64)
    assert contents_of(tmp_path / "index") == contents_of(whole(IndexType.FLAT))


def test_words_give_the_same_bytes_again(build: Build, tmp_path: Path, whole: Whole) -> None:
    build(IndexType.BM25, "again")
    assert contents_of(tmp_path / "again") == contents_of(whole(IndexType.BM25))


@pytest.mark.parametrize("type_", list(IndexType))
@pytest.mark.parametrize("memory_map", [True, False])
def test_every_type_is_served_and_finds_a_passage_by_its_text(
    whole: Whole, type_: IndexType, memory_map: bool, load: Callable[..., object]
) -> None:
    settings = Settings(index=whole(type_), memory_map=memory_map, max_topk=20)
    if type_.has_lists:
        settings = settings.model_copy(update={"nprobe": 8})
    service: IndexService = load_service(settings, lambda *_: None, load=load)
    wanted = range(0, ROWS, 37)
    found = service.search([f"passage number{n}" for n in wanted], 5)
    assert [passages[0].document.id for passages in found] == [str(n) for n in wanted]
    few = service.search([f"passage number{n}" for n in wanted], 2)
    assert few == [passages[:2] for passages in found]
    service.close()


@pytest.mark.parametrize("type_", DENSE)
def test_a_file_is_as_large_as_planned(whole: Whole, type_: IndexType) -> None:
    folder = whole(type_)
    size = index_size(type_, ROWS, DIMENSION, Manifest.load(folder).parameters)
    stored = (folder / "index.faiss").stat().st_size
    assert stored == pytest.approx(size.index, rel=0.03, abs=600)
    vectors = folder / "vectors.npy"
    stored = vectors.stat().st_size if vectors.exists() else 0
    assert stored == pytest.approx(size.vectors, abs=128)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("backend", "ivf-sq8", "holds a IndexIVFFlat, not a ivf-sq8 index"),
        ("parameters", {"lists": 4}, r"index\.faiss has 8 lists, but manifest\.json says 4"),
        ("backend", "a-tree", "field 'backend'"),
    ],
)
def test_an_index_of_another_type_or_parameters_than_the_manifests_is_refused(
    whole: Whole, tmp_path: Path, load: Callable[..., object], name: str, value: object, reason: str
) -> None:
    folder = tmp_path / "index"
    shutil.copytree(whole(IndexType.IVF_FLAT), folder)
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {name: value}))
    with pytest.raises(ValueError, match=reason):
        load_service(Settings(index=folder), lambda *_: None, load=load)


def test_vectors_of_other_rows_than_the_manifests_are_refused(
    whole: Whole, tmp_path: Path, load: Callable[..., object]
) -> None:
    folder = tmp_path / "index"
    shutil.copytree(whole(IndexType.IVF_PQ), folder)
    np.save(folder / "vectors.npy", np.zeros((3, DIMENSION), dtype=np.float16))
    with pytest.raises(ManifestError, match=r"vectors\.npy has 3 rows"):
        load_service(Settings(index=folder), lambda *_: None, load=load)


def test_the_training_sample_is_drawn_by_the_seed() -> None:
    vectors = np.arange(1000, dtype=np.float32).reshape(500, 2)
    first, again, other = (
        training_sample(vectors, BuildParameters(train_rows=50, seed=seed)) for seed in (1, 1, 2)
    )
    assert first.shape == (50, 2)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert len(np.unique(first[:, 0])) == 50


@pytest.mark.parametrize(
    ("type_", "given", "reason"),
    [
        (IndexType.FLAT, {"lists": 4}, "--lists: 'flat' has no such parameter"),
        (IndexType.BM25, {"links": 4}, "--links: 'bm25' has no such parameter"),
        (IndexType.IVF_PQ, {"code_bytes": 5}, "--code-bytes: 5 does not divide dimension 16"),
        (IndexType.IVF_FLAT, {"lists": 601}, "--lists: 601 lists need at least as many"),
        (IndexType.IVF_FLAT, {"train_rows": 3}, "more --train-rows"),
    ],
)
def test_parameters_that_cannot_work_are_refused(
    build: Build, type_: IndexType, given: dict[str, int], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        build(type_, "index", parameters=BuildParameters(**given))


def test_a_finished_index_of_another_type_or_parameter_is_not_taken_for_this(build: Build) -> None:
    build(IndexType.IVF_FLAT, "index")
    with pytest.raises(FileExistsError, match=r"another type: .* --overwrite"):
        build(IndexType.FLAT, "index")
    with pytest.raises(FileExistsError, match="another lists"):
        build(IndexType.IVF_FLAT, "index", parameters=BuildParameters(lists=2))
    assert build(IndexType.IVF_FLAT, "index").backend == IndexType.IVF_FLAT


def test_an_unfinished_build_may_be_finished_as_another_type(
    build: Build, tmp_path: Path, whole: Whole, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(index_faiss, "blocks", dying_blocks(1))
        with pytest.raises(Killed):
            build(IndexType.IVF_PQ, "index", checkpoint_seconds=0)
    build(IndexType.HNSW_SQ8, "index")
    assert contents_of(tmp_path / "index") == contents_of(whole(IndexType.HNSW_SQ8))


def test_a_product_quantiser_needs_enough_passages(
    corpus: Path, tmp_path: Path, load: Callable[..., object]
) -> None:
    few = tmp_path / "few.jsonl"
    few.write_text("\n".join(corpus.read_text().splitlines()[:200]))
    request = IndexRequest(type=IndexType.IVF_PQ)
    with pytest.raises(ValueError, match="200 passages are fewer than the 256"):
        build_index(few, tmp_path / "index", ENCODER, request, load=load)
