"""From settings to the engine that is served, through the real app; each keeps the contract."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from data_prep.index import build_index
from data_prep.index_stages import IndexRequest
from retrieval_server.encoder import Encoder, EncoderSettings, FloatArray
from retrieval_server.engines.assemble import load_service
from retrieval_server.engines.cross_encoder import RerankerSettings
from retrieval_server.index_types import BuildParameters, IndexType
from retrieval_server.lifecycle import ServiceFactory
from retrieval_server.service import Report, Service
from retrieval_server.settings import Settings
from search_r1.contract.examine import examine_server

Start = Callable[..., httpx.Client]


class SharedWords:
    """Scores a passage by the share of its words that the query has."""

    def __init__(self, settings: RerankerSettings) -> None:
        self.model = settings.model

    def score(self, pairs: Sequence[tuple[str, str]]) -> FloatArray:
        words = [(set(query.split()), passage.split()) for query, passage in pairs]
        shares = [sum(word in asked for word in of) / len(of) for asked, of in words]
        return np.array(shares, dtype=np.float32)


@pytest.fixture
def assemble(encoder: Encoder) -> ServiceFactory:
    """The real assembly over the hashing encoder and a scorer without a model."""

    def factory(settings: Settings, report: Report) -> Service:
        return load_service(settings, report, lambda _: encoder, SharedWords)

    return factory


@pytest.fixture
def bm25_index(index_folder: Path, tmp_path: Path) -> Path:
    """The words of the same corpus."""
    request = IndexRequest(type=IndexType.BM25)
    build_index(tmp_path / "corpus.jsonl", tmp_path / "bm25", None, request)
    return tmp_path / "bm25"


@pytest.fixture
def graph_index(
    index_folder: Path, encoder: Encoder, encoder_settings: EncoderSettings, tmp_path: Path
) -> Path:
    """The same vectors in a graph, which has a search setting of its own."""
    request = IndexRequest(type=IndexType.HNSW, parameters=BuildParameters(links=4))
    corpus, output = tmp_path / "corpus.jsonl", tmp_path / "graph"
    build_index(corpus, output, encoder_settings, request, load=lambda _: encoder)
    return output


def broken(client: httpx.Client) -> dict[str, str]:
    """The rules that the server breaks, with what it did."""
    verdicts = list(examine_server(str(client.base_url.join("/retrieve"))))
    assert len(verdicts) > 12
    return {verdict.rule.name: verdict.detail for verdict in verdicts if not verdict.kept}


def test_a_dense_index(start: Start, assemble: ServiceFactory) -> None:
    client = start(assemble)
    assert broken(client) == {}
    health = client.get("/health").json()
    assert (health["engine"], health["backend"], health["rows"]) == ("dense", "flat", 5)


def test_a_bm25_index(start: Start, assemble: ServiceFactory, bm25_index: Path) -> None:
    client = start(assemble, index=bm25_index)
    assert broken(client) == {}
    health = client.get("/health").json()
    assert (health["engine"], health["backend"], health["rows"]) == ("bm25", "bm25", 5)


def test_two_indexes_are_fused(
    start: Start, assemble: ServiceFactory, index_folder: Path, bm25_index: Path
) -> None:
    client = start(assemble, index=(index_folder, bm25_index))
    assert broken(client) == {}
    health = client.get("/health").json()
    assert (health["engine"], health["rows"], health["fusion"]["k"]) == ("hybrid", 5, 60)
    assert [part["engine"] for part in health["parts"]] == ["dense", "bm25"]
    body = {"queries": ["Ada program", "a city in Moravia"], "topk": 5, "return_scores": True}
    first, second = client.post("/retrieve", json=body).json()["result"]
    assert [found[0]["document"]["id"] for found in (first, second)] == ["a", "b"]
    assert first[0]["score"] == pytest.approx(2 / 61)  # first in both


def test_a_setting_goes_to_the_indexes_that_have_it(
    assemble: ServiceFactory, index_folder: Path, bm25_index: Path, graph_index: Path
) -> None:
    values = {"index": (bm25_index, graph_index), "ef_search": 300, "encoder": "hashing"}
    service = assemble(Settings.model_validate(values), lambda *_: None)
    parts = service.info()["parts"]
    assert [part["search"]["ef_search"] for part in parts] == [None, 300]
    service.close()


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ({"nprobe": 4}, "--nprobe: this type of index has no such choice"),
        ({"encoder": "another"}, "'another' is asked for"),
    ],
)
def test_a_setting_that_fits_no_index_is_refused(
    assemble: ServiceFactory,
    bm25_index: Path,
    graph_index: Path,
    setting: dict[str, object],
    reason: str,
) -> None:
    values = {"index": (bm25_index, graph_index)} | setting
    with pytest.raises(ValueError, match=reason):
        assemble(Settings.model_validate(values), lambda *_: None)


def test_a_graph_keeps_as_many_candidates_as_the_fusion_asks_for(
    assemble: ServiceFactory, bm25_index: Path, graph_index: Path
) -> None:
    values = {"index": (bm25_index, graph_index), "hybrid_depth": 500}
    service = assemble(Settings.model_validate(values), lambda *_: None)
    assert service.info()["parts"][1]["search"]["ef_search"] == 500
    service.close()


def test_an_index_is_reranked(
    start: Start, assemble: ServiceFactory, encoded: list[list[str]]
) -> None:
    client = start(assemble, rerank="a-cross-encoder", rerank_depth=4)
    assert broken(client) == {}
    health = client.get("/health").json()
    assert (health["engine"], health["model"], health["depth"]) == ("rerank", "a-cross-encoder", 4)
    assert health["parts"][0]["encoder"]["model"] == "hashing"
    body = {"queries": ["Ada wrote"], "topk": 9, "return_scores": True}
    (found,) = client.post("/retrieve", json=body).json()["result"]
    assert len(found) == 4
    assert found[0]["document"]["id"] == "a"
    assert found[0]["score"] == pytest.approx(2 / 7)  # Ada and wrote, of seven words


@pytest.mark.parametrize("name", ["serper", "serpapi", "google", "brave", "tavily"])
def test_a_web_search_engine(
    start: Start, assemble: ServiceFactory, web: Any, keys: Any, name: str
) -> None:
    client = start(assemble, index=(), online=name, online_url=web.url)
    assert broken(client) == {}
    health = client.get("/health").json()
    assert health == {
        "status": "ready",
        "workers": {"ready": 1, "of": 1, "restarts": 0},
        "engine": "online",
        "provider": name,
        "depth": 10,
        "rows": None,
    }
    asked = f'retriever_online_attempts_total{{outcome="200",provider="{name}"}}'
    assert asked in client.get("/metrics").text


def test_everything_at_once(
    start: Start,
    assemble: ServiceFactory,
    web: Any,
    keys: Any,
    index_folder: Path,
    bm25_index: Path,
) -> None:
    client = start(
        assemble,
        index=f"{index_folder},{bm25_index}",
        online="brave",
        online_url=web.url,
        rerank="a-cross-encoder",
    )
    assert broken(client) == {}
    health = client.get("/health").json()
    (hybrid,) = health["parts"]
    assert [part["engine"] for part in hybrid["parts"]] == ["dense", "bm25", "online"]
    body = {"queries": ["Brno town"], "topk": 20, "return_scores": False}
    (found,) = client.post("/retrieve", json=body).json()["result"]
    assert {"b", "https://example.org/5"} <= {document["id"] for document in found}


def test_stages_name_the_index_when_there_are_several(
    assemble: ServiceFactory, index_folder: Path, bm25_index: Path
) -> None:
    stages: list[str] = []
    settings = Settings(index=(index_folder, bm25_index), rerank="model")
    assemble(settings, lambda stage, _reads=0: stages.append(stage)).close()
    assert stages[:2] == ["index: manifest", "index: corpus"]
    assert stages[5:] == ["bm25: manifest", "bm25: corpus", "bm25: index", "re-ranker"]


def test_a_refused_key_fails_the_load_and_not_the_first_query(
    start: Start, assemble: ServiceFactory, web: Any, keys: Any, monkeypatch: Any, until: Any
) -> None:
    monkeypatch.setenv("SERPER_API_KEY", "expired-key")
    settings = {"online": "serper", "online_url": web.url, "failed_seconds": 30}
    client = start(assemble, wait=False, index=(), **settings)
    until(lambda: client.get("/health").json()["status"] == "failed")
    reason = client.get("/health").json()["reason"]
    assert "serper answered 403" in reason
    assert "SERPER_API_KEY" in reason
    assert "expired-key" not in reason
