"""Who may ask, how much, and for how long: over real HTTP."""

import json
import logging
import socket
import threading
from collections.abc import Callable, Iterator

import httpx
import pytest

from retrieval_server.patience import preferred_wait

Start = Callable[..., httpx.Client]
Until = Callable[[Callable[[], bool]], None]


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("wait=10", 10),
        ('respond-async, wait = "7"; x=1', 7),
        ("WAIT=3,return=minimal", 3),
        ("wait=0", 0),
        ("wait=1.5", None),
        ("wait=-1", None),
        ("await=3", None),
        ("wait=9999999", None),
    ],
)
def test_the_wait_preference_is_read_as_rfc_7240_writes_it(
    header: str | None, seconds: int | None
) -> None:
    assert preferred_wait(header) == seconds


def test_a_request_whose_deadline_passes_is_answered_504(
    start: Start, until: Until, gate: threading.Event, encoded: list[list[str]]
) -> None:
    client = start()
    gate.clear()
    busy = threading.Thread(target=client.post, args=["/retrieve"], kwargs={"json": body("first")})
    busy.start()
    until(lambda: encoded == [["first"]])
    late = client.post("/retrieve", json=body("late"), headers={"Prefer": "wait=1"})
    assert late.status_code == 504
    assert late.json() == {"detail": "the deadline passed before the queries were answered (1 s)"}
    gate.set()
    busy.join()
    shown = client.get("/metrics").text
    assert 'retriever_dropped_queries_total{reason="deadline"} 1.0' in shown
    assert 'retriever_requests_total{status="504"} 1.0' in shown
    assert encoded == [["first"]]


def test_without_time_only_what_is_remembered_is_answered(start: Start) -> None:
    client = start()
    now = {"Prefer": "wait=0"}
    assert client.post("/retrieve", json=body("Ada"), headers=now).status_code == 504
    assert client.post("/retrieve", json=body("Ada")).status_code == 200
    assert client.post("/retrieve", json=body("Ada"), headers=now).status_code == 200


def test_the_server_has_a_deadline_of_its_own(start: Start, gate: threading.Event) -> None:
    client = start(deadline_seconds=0.05)
    gate.clear()
    assert client.post("/retrieve", json=body("late")).status_code == 504
    gate.set()


def test_queries_of_a_client_that_left_are_not_searched(
    start: Start, until: Until, gate: threading.Event, encoded: list[list[str]]
) -> None:
    client = start()
    gate.clear()
    busy = threading.Thread(target=client.post, args=["/retrieve"], kwargs={"json": body("first")})
    busy.start()
    until(lambda: encoded == [["first"]])
    content = json.dumps(body("left")).encode()
    head = f"POST /retrieve HTTP/1.1\r\nHost: x\r\nContent-Length: {len(content)}\r\n"
    head += "Content-Type: application/json\r\n\r\n"
    leaver = socket.create_connection((client.base_url.host, client.base_url.port))
    leaver.sendall(head.encode() + content)
    until(lambda: "retriever_queue_queries 1.0" in client.get("/metrics").text)
    leaver.close()
    left = 'retriever_dropped_queries_total{reason="cancelled"} 1.0'
    until(lambda: left in client.get("/metrics").text)
    gate.set()
    busy.join()
    assert 'retriever_requests_total{status="499"} 1.0' in client.get("/metrics").text
    assert encoded == [["first"]]


def test_a_body_above_its_limit_is_refused_however_it_is_sent(start: Start) -> None:
    client = start(max_body_mib=0.001)
    whole = client.post("/retrieve", json=body("x" * 2000))
    pieces = client.post(
        "/retrieve",
        content=iter([b'{"queries": ["', b"x" * 2000, b'"]}']),
        headers={"Content-Type": "application/json"},
    )
    for answer in (whole, pieces):
        assert answer.status_code == 413
        (problem,) = answer.json()["detail"]
        assert (problem["loc"], problem["msg"]) == (["body"], "the body has more than 1048 bytes")
    assert client.post("/retrieve", json=body("x" * 900)).status_code == 200


@pytest.mark.parametrize("header", [None, "Bearer wrong", "Bearer sesame2", "sesame", "Bearer é"])
def test_without_the_token_only_health_answers(start: Start, header: str | None) -> None:
    client = start(token="sesame")
    headers = {"Authorization": header.encode()} if header else {}
    refused = client.post("/retrieve", json=body("Ada"), headers=headers)
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"] == "Bearer"
    assert "Authorization: Bearer TOKEN" in refused.json()["detail"]
    assert client.get("/metrics", headers=headers).status_code == 401
    assert client.get("/health", headers=headers).status_code == 200


def test_the_token_opens_everything(start: Start) -> None:
    client = start(token="sesame")
    client.headers["Authorization"] = "Bearer sesame"
    assert client.post("/retrieve", json=body("Ada")).status_code == 200
    assert client.get("/metrics").status_code == 200
    assert "security" in client.get("/openapi.json").json()["paths"]["/retrieve"]["post"]


@pytest.fixture
def access() -> Iterator[list[logging.LogRecord]]:
    """The records of the access log."""
    records: list[logging.LogRecord] = []
    handler = logging.Handler()
    handler.emit = records.append  # type: ignore[method-assign]
    logger = logging.getLogger("retrieval_server.access")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield records
    logger.removeHandler(handler)


def test_requests_are_logged_only_when_asked_for(
    start: Start, access: list[logging.LogRecord]
) -> None:
    start().post("/retrieve", json=body("Ada"))
    assert access == []
    start(access_log=True).post("/retrieve", json=body("Ada"))
    (record,) = access
    assert record.getMessage() == "POST /retrieve 200"
    assert record.__dict__["client"] == "127.0.0.1"
    assert record.__dict__["seconds"] > 0


def body(query: str) -> dict[str, object]:
    return {"queries": [query], "topk": 1}
