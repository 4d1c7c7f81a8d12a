"""Many requests at once, over real HTTP: merging, sharing, overload, errors, shutdown."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import httpx
import pytest

from retrieval_server.lifecycle import ServiceFactory
from retrieval_server.schemas import ScoredDocument
from retrieval_server.service import Report
from retrieval_server.settings import Settings

Start = Callable[..., httpx.Client]
Until = Callable[[Callable[[], bool]], None]
Ask = Callable[[httpx.Client, list[str]], "Future[httpx.Response]"]


@pytest.fixture
def ask() -> Ask:
    """Send a request from a thread of its own."""
    pool = ThreadPoolExecutor(64)

    def send(client: httpx.Client, queries: list[str]) -> "Future[httpx.Response]":
        body = {"queries": queries, "topk": 1, "return_scores": True}
        return pool.submit(client.post, "/retrieve", json=body)

    return send


def metric(client: httpx.Client, name: str) -> float:
    lines = client.get("/metrics").text.splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith(name + " ")))


def test_queries_of_waiting_requests_are_encoded_together(
    start: Start, ask: Ask, until: Until, gate: threading.Event, encoded: list[list[str]]
) -> None:
    client = start()
    gate.clear()
    first = ask(client, ["Ada"])
    until(lambda: encoded == [["Ada"]])  # an idle server starts at once
    others = [ask(client, [f"query {number}"]) for number in range(20)]
    until(lambda: metric(client, "retriever_queue_queries") == 20)
    gate.set()
    assert [future.result(20).status_code for future in [first, *others]] == [200] * 21
    assert len(encoded) == 2
    assert sorted(encoded[1]) == sorted(f"query {number}" for number in range(20))


def test_identical_queries_in_flight_are_searched_once(
    start: Start, ask: Ask, until: Until, gate: threading.Event, encoded: list[list[str]]
) -> None:
    client = start()
    gate.clear()
    asked = [ask(client, ["Ada"]) for _ in range(3)]
    until(lambda: metric(client, "retriever_shared_queries_total") == 2)
    asked += [ask(client, ["Brno", "Ada", "Brno"]) for _ in range(3)]
    until(lambda: metric(client, "retriever_shared_queries_total") == 2 + 2 + 3 + 3)
    gate.set()
    answers = [future.result(20).json()["result"] for future in asked]
    assert encoded == [["Ada"], ["Brno"]]
    ids = [[items[0]["document"]["id"] for items in answer] for answer in answers]
    assert ids == [["a"]] * 3 + [["b", "a", "b"]] * 3


def test_a_full_queue_answers_429_and_later_serves_again(
    start: Start, ask: Ask, until: Until, gate: threading.Event, encoded: list[list[str]]
) -> None:
    client = start(max_queue=2, max_queries=2)
    gate.clear()
    accepted = [ask(client, ["Ada"])]
    until(lambda: len(encoded) == 1)
    accepted += [ask(client, ["Brno", "bread"])]
    until(lambda: metric(client, "retriever_queue_queries") == 2)
    refused = client.post("/retrieve", json={"queries": ["one more"]})
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) >= 1
    assert "queue is full" in refused.json()["detail"]
    assert metric(client, 'retriever_requests_total{status="429"}') == 1
    gate.set()
    assert [future.result(20).status_code for future in accepted] == [200, 200]
    assert client.post("/retrieve", json={"queries": ["one more"]}).status_code == 200


def test_shutdown_answers_what_it_accepted(
    start: Start,
    stop: Callable[[], None],
    ask: Ask,
    until: Until,
    gate: threading.Event,
    encoded: list[list[str]],
) -> None:
    client = start()
    gate.clear()
    running = ask(client, ["Ada"])
    until(lambda: len(encoded) == 1)
    waiting = ask(client, ["Brno"])
    until(lambda: metric(client, "retriever_queue_queries") == 1)
    stop()
    until(lambda: _refuses(client))
    assert not running.done()
    gate.set()
    results = [future.result(20).json()["result"][0] for future in (running, waiting)]
    assert [items[0]["document"]["id"] for items in results] == ["a", "b"]


def _refuses(client: httpx.Client) -> bool:
    try:
        httpx.get(client.base_url.join("/health"))
    except httpx.TransportError:
        return True
    return False


def test_an_error_of_the_engine_is_a_500_of_its_own_batch_only(start: Start) -> None:
    class Engine:
        def search(self, queries: Sequence[str], topk: int) -> list[list[ScoredDocument]]:
            if "bad" in queries:
                raise RuntimeError("the engine broke")
            return [[] for _ in queries]

        def info(self) -> dict[str, object]:
            return {"rows": 0, "encoder": "none"}

        def close(self) -> None:
            pass

    factory: ServiceFactory = lambda _settings, _report: Engine()  # noqa: E731 - typed this way
    client = start(factory)
    failure = client.post("/retrieve", json={"queries": ["bad"]})
    assert failure.status_code == 500
    assert failure.json()["detail"] == "RuntimeError: the engine broke"
    assert client.post("/retrieve", json={"queries": ["good"]}).json() == {"result": [[]]}
    assert metric(client, 'retriever_requests_total{status="500"}') == 1


def test_health_tells_the_stage_and_then_the_manifest(
    start: Start, load: ServiceFactory, until: Until
) -> None:
    go_on = threading.Event()

    def slow(settings: Settings, report: Report) -> object:
        report("reading the index")
        assert go_on.wait(20)
        return load(settings, report)

    client = start(slow, wait=False)
    until(lambda: client.get("/health").json().get("stage") == "reading the index")
    health = client.get("/health")
    assert health.status_code == 503
    assert health.json()["status"] == "loading"
    early = client.post("/retrieve", json={"queries": ["Ada"]})
    assert early.status_code == 503
    assert int(early.headers["retry-after"]) >= 1
    assert "loading" in early.json()["detail"]
    go_on.set()
    until(lambda: client.get("/health").status_code == 200)
    ready = client.get("/health").json()
    assert ready["status"] == "ready"
    assert (ready["rows"], ready["dimension"], ready["backend"]) == (5, 64, "flat")
    assert ready["encoder"]["model"] == "hashing"


def test_health_tells_why_loading_failed(start: Start, until: Until) -> None:
    def broken(_settings: Settings, _report: Report) -> object:
        raise ValueError("the index is of another corpus")

    client = start(broken, wait=False, failed_seconds=30)
    until(lambda: client.get("/health").json()["status"] == "failed")
    health = client.get("/health")
    assert health.status_code == 503
    assert "the index is of another corpus" in health.json()["reason"]
    assert client.post("/retrieve", json={"queries": ["Ada"]}).status_code == 503
