"""Settings that no index can use are refused before anything is loaded."""

from pathlib import Path

import pytest

from retrieval_server.__main__ import main
from retrieval_server.engines.fit import check_fit
from retrieval_server.index_types import BuildParameters, IndexType, SearchParameters
from retrieval_server.manifest import MANIFEST_FILE, CorpusInfo, Manifest
from retrieval_server.settings import Settings

IVF = (IndexType.IVF_PQ, BuildParameters(lists=64), SearchParameters(nprobe=64, candidates=100))
HNSW = (IndexType.HNSW, BuildParameters(links=4), SearchParameters(ef_search=128))
FLAT = (IndexType.FLAT, BuildParameters(), SearchParameters())
BM25 = (IndexType.BM25, BuildParameters(), SearchParameters())

Kind = tuple[IndexType, BuildParameters, SearchParameters]


def folder(path: Path, kind: Kind) -> Path:
    backend, parameters, search = kind
    corpus = CorpusInfo(rows=1000, bytes=1, sha256="")
    manifest = Manifest(
        backend=backend,
        rows=1000,
        dimension=None,
        encoder=None,
        corpus=corpus,
        parameters=parameters,
        search=search,
        created="",
    )
    path.mkdir()
    (path / MANIFEST_FILE).write_text(manifest.model_dump_json())
    return path


@pytest.mark.parametrize(
    ("kinds", "setting", "reason"),
    [
        ([IVF], {"nprobe": 65}, "--nprobe 65 is above the 64 lists of .*/0"),
        ([IVF], {"candidates": 1001}, "--candidates 1001 is above the 1000 rows"),
        ([HNSW], {"ef_search": 1001}, "--ef-search 1001 is above the 1000 rows"),
        ([FLAT], {"nprobe": 1}, "--nprobe does nothing for an index of type flat"),
        ([BM25], {"faiss_gpu": True}, "--faiss-gpu does nothing for an index of type bm25"),
        ([BM25], {"lanes": 2}, "--lanes does nothing for an index of type bm25"),
        ([BM25, HNSW], {"faiss_gpu": True}, "--faiss-gpu does nothing .* bm25, hnsw"),
    ],
)
def test_what_no_index_can_use_is_refused(
    tmp_path: Path, kinds: list[Kind], setting: dict[str, object], reason: str
) -> None:
    index = tuple(folder(tmp_path / str(n), kind) for n, kind in enumerate(kinds))
    with pytest.raises(ValueError, match=reason):
        check_fit(Settings.model_validate({"index": index} | setting))


@pytest.mark.parametrize(
    ("kinds", "setting"),
    [
        ([IVF], {"nprobe": 64, "candidates": 1000}),
        ([HNSW], {}),
        ([BM25, FLAT], {"faiss_gpu": True}),
        ([BM25, IVF], {"nprobe": 3}),
    ],
)
def test_what_one_of_the_indexes_has_passes(
    tmp_path: Path, kinds: list[Kind], setting: dict[str, object]
) -> None:
    index = tuple(folder(tmp_path / str(n), kind) for n, kind in enumerate(kinds))
    check_fit(Settings.model_validate({"index": index} | setting))


def test_the_command_ends_with_code_2(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ivf = str(folder(tmp_path / "ivf", IVF))
    assert main(["--index", ivf, "--nprobe", "9999999"]) == 2
    assert main(["--index", ivf, "--nprobe", "99999999999999999999"]) == 2
