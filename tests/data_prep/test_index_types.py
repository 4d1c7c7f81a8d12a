"""Every type of index: resumed to the same bytes, made from another, as large as planned."""

import json
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
from data_prep.index_source import open_source
from data_prep.index_stages import IndexRequest
from retrieval_server.encoder import EncoderSettings, FloatArray
from retrieval_server.engines.assemble import load_service
from retrieval_server.index_types import BuildParameters, IndexType, build_parameters
from retrieval_server.manifest import Manifest
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
        import words_encoder

        yield words_encoder.load


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Several blocks, and one thread: the links of a graph depend on the threads."""
    monkeypatch.setattr(index_faiss, "BLOCK_ROWS", 100)
    monkeypatch.setattr(index_faiss, "_LEAST_WORK_A_CHECKPOINT", 0)
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    yield
    faiss.omp_set_num_threads(threads)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "passages.jsonl"
    rows = [json.dumps({"id": str(n), "contents": f"passage number{n}"}) for n in range(ROWS)]
    path.write_text("\n".join(rows))
    return path


Build = Callable[..., Manifest]


@pytest.fixture
def build(corpus: Path, tmp_path: Path, load: Callable[..., object]) -> Build:
    def run(type_: IndexType, output: str, **request: object) -> Manifest:
        source = request.pop("source", None)
        wanted = IndexRequest(type=type_, chunk_rows=64, **request)
        encoder = ENCODER if type_.is_dense else None
        return build_index(corpus, tmp_path / output, encoder, wanted, source=source, load=load)

    return run


def contents_of(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.name: path.read_bytes() for path in files if path.name != "manifest.json"}


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
    build: Build, tmp_path: Path, type_: IndexType, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(type_, "whole")
    with monkeypatch.context() as patch:
        patch.setattr(index_faiss, "blocks", dying_blocks(3))
        with pytest.raises(Killed):
            build(type_, "index", checkpoint_seconds=0)
    (checkpoint,) = (tmp_path / "index.partial").glob("checkpoint-*.faiss")
    assert faiss.read_index(str(checkpoint)).ntotal == 300
    build(type_, "index")
    assert contents_of(tmp_path / "index") == contents_of(tmp_path / "whole")


@pytest.mark.parametrize("type_", [IndexType.FLAT, IndexType.FLAT_FP16, IndexType.FLAT_SQ8])
def test_a_flat_file_is_what_faiss_writes(tmp_path: Path, type_: IndexType) -> None:
    vectors = np.random.default_rng(0).standard_normal((250, DIMENSION)).astype(np.float32)
    index = new_index(type_, DIMENSION, build_parameters(type_, 250, DIMENSION, BuildParameters()))
    index.train(vectors)
    write_flat(index, vectors, tmp_path / "streamed", 100, lambda _: None)
    index.add(vectors)
    faiss.write_index(index, str(tmp_path / "whole"))
    assert (tmp_path / "streamed").read_bytes() == (tmp_path / "whole").read_bytes()


@pytest.mark.parametrize("type_", DENSE)
def test_a_type_made_from_another_is_the_one_that_encoding_gives(
    build: Build, tmp_path: Path, type_: IndexType
) -> None:
    there = build(IndexType.FLAT, "flat")
    build(type_, "encoded")
    build(type_, "taken", source=open_source(tmp_path / "flat", there))
    assert contents_of(tmp_path / "taken") == contents_of(tmp_path / "encoded")


@pytest.mark.parametrize("type_", [IndexType.IVF_PQ, IndexType.HNSW, IndexType.FLAT_FP16])
def test_half_precision_vectors_pass_from_type_to_type_unchanged(
    build: Build, tmp_path: Path, type_: IndexType
) -> None:
    there = build(type_, "first")
    build(IndexType.IVF_FLAT, "encoded")
    build(IndexType.IVF_FLAT, "taken", source=open_source(tmp_path / "first", there))
    assert contents_of(tmp_path / "taken") == contents_of(tmp_path / "encoded")


def test_a_type_without_exact_vectors_is_no_source(build: Build, tmp_path: Path) -> None:
    there = build(IndexType.HNSW_SQ8, "coarse")
    with pytest.raises(ValueError, match=r"hnsw-sq8, which keeps no exact vectors; give"):
        open_source(tmp_path / "coarse", there)


def test_several_processes_give_the_bytes_of_one(build: Build, tmp_path: Path) -> None:
    build(IndexType.FLAT, "one")
    build(IndexType.FLAT, "two", workers=Workers(2))
    assert contents_of(tmp_path / "two") == contents_of(tmp_path / "one")


@pytest.mark.slow
def test_actors_of_ray_give_the_bytes_of_one_process(build: Build, tmp_path: Path) -> None:
    build(IndexType.FLAT, "one")
    build(IndexType.FLAT, "two", workers=Workers(2, "local"))
    assert contents_of(tmp_path / "two") == contents_of(tmp_path / "one")


def test_words_give_the_same_bytes_again(build: Build, tmp_path: Path) -> None:
    build(IndexType.BM25, "one")
    build(IndexType.BM25, "two")
    assert contents_of(tmp_path / "two") == contents_of(tmp_path / "one")


@pytest.mark.parametrize("type_", list(IndexType))
@pytest.mark.parametrize("memory_map", [True, False])
def test_every_type_is_served_and_finds_a_passage_by_its_text(
    build: Build, tmp_path: Path, type_: IndexType, memory_map: bool, load: Callable[..., object]
) -> None:
    build(
        type_,
        "index",
        parameters=BuildParameters(lists=4) if type_.has_lists else BuildParameters(),
    )
    settings = Settings(index=tmp_path / "index", memory_map=memory_map, max_topk=20)
    service: IndexService = load_service(settings, lambda _: None, load=load)
    wanted = range(0, ROWS, 37)
    found = service.search([f"passage number{n}" for n in wanted], 5)
    assert [passages[0].document.id for passages in found] == [str(n) for n in wanted]
    few = service.search([f"passage number{n}" for n in wanted], 2)
    assert few == [passages[:2] for passages in found]
    service.close()


@pytest.mark.parametrize("type_", DENSE)
def test_a_file_is_as_large_as_planned(build: Build, tmp_path: Path, type_: IndexType) -> None:
    made = build(type_, "index")
    size = index_size(type_, ROWS, DIMENSION, made.parameters)
    assert (tmp_path / "index" / "index.faiss").stat().st_size == pytest.approx(
        size.index, rel=0.03, abs=600
    )
    vectors = tmp_path / "index" / "vectors.npy"
    assert (vectors.stat().st_size if vectors.exists() else 0) == pytest.approx(
        size.vectors, abs=128
    )


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
    build: Build, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(IndexType.HNSW_SQ8, "whole")
    with monkeypatch.context() as patch:
        patch.setattr(index_faiss, "blocks", dying_blocks(1))
        with pytest.raises(Killed):
            build(IndexType.IVF_PQ, "index", checkpoint_seconds=0)
    build(IndexType.HNSW_SQ8, "index")
    assert contents_of(tmp_path / "index") == contents_of(tmp_path / "whole")


def test_a_product_quantiser_needs_enough_passages(build: Build, corpus: Path) -> None:
    corpus.write_text("\n".join(corpus.read_text().splitlines()[:200]))
    with pytest.raises(ValueError, match="200 passages are fewer than the 256"):
        build(IndexType.IVF_PQ, "index")
