"""The wire contract, over real HTTP."""

import json
from collections.abc import Callable

import httpx
import numpy as np
import pytest

from retrieval_server.encoder import Encoder

Start = Callable[..., httpx.Client]


def retrieve(client: httpx.Client, **body: object) -> httpx.Response:
    return client.post("/retrieve", json=body)


def test_peers_request_gets_scored_documents_in_the_order_of_the_queries(start: Start) -> None:
    queries = ["Brno city in Moravia", "Ada program", "passage without a title"]
    answer = retrieve(start(), queries=queries, topk=2, return_scores=True)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    result = answer.json()["result"]
    assert [items[0]["document"]["id"] for items in result] == ["b", "a", "c"]
    assert all(len(items) == 2 for items in result)
    assert all(items[0]["score"] >= items[1]["score"] for items in result)
    assert all(set(item) == {"document", "score"} for items in result for item in items)


def test_documents_carry_contents_and_what_is_known_of_title_and_text(start: Start) -> None:
    result = retrieve(start(), queries=["x"], topk=5).json()["result"][0]
    documents = {document["id"]: document for document in result}
    assert documents == {
        "a": {
            "id": "a",
            "contents": '"Ada Lovelace"\nAda wrote the first program.',
            "title": "Ada Lovelace",
            "text": "Ada wrote the first program.",
        },
        "b": {
            "id": "b",
            "contents": '"Brno"\nBrno is a city\u2028in Moravia.',
            "title": "Brno",
            "text": "Brno is a city\u2028in Moravia.",
        },
        "c": {"id": "c", "contents": "A passage without a title."},
        "4": {
            "id": "4",
            "contents": '"Döner "Kebab""\nGrilled meat, 🥙 in bread.',
            "title": 'Döner "Kebab"',
            "text": "Grilled meat, 🥙 in bread.",
        },
        "e": {"id": "e", "contents": "Only text.", "text": "Only text."},
    }


def test_scores_are_the_inner_products(start: Start, encoder: Encoder) -> None:
    query = "a city in bread"
    result = retrieve(start(), queries=[query], topk=5, return_scores=True).json()["result"][0]
    passages = encoder.encode_passages([item["document"]["contents"] for item in result])
    expected = passages @ encoder.encode_passages([query])[0]
    assert np.allclose([item["score"] for item in result], expected, atol=1e-6)
    assert sorted(expected, reverse=True) == pytest.approx(list(expected))


def test_without_scores_the_items_are_the_documents(start: Start) -> None:
    client = start()
    scored = retrieve(client, queries=["Ada"], topk=3, return_scores=True).json()["result"][0]
    plain = retrieve(client, queries=["Ada"], topk=3, return_scores=False).json()["result"][0]
    assert plain == [item["document"] for item in scored]


def test_topk_defaults_to_the_setting_and_ends_at_the_corpus(start: Start) -> None:
    client = start(topk=2)
    assert len(retrieve(client, queries=["Ada"]).json()["result"][0]) == 2
    assert len(retrieve(client, queries=["Ada"], topk=None).json()["result"][0]) == 2
    assert len(retrieve(client, queries=["Ada"], topk=1.0).json()["result"][0]) == 1
    assert len(retrieve(client, queries=["Ada"], topk=99).json()["result"][0]) == 5


def test_no_queries_no_results(start: Start) -> None:
    assert retrieve(start(), queries=[]).json() == {"result": []}


@pytest.mark.parametrize("query", ["", " ", "Ünïcødé 🥙\u2028\x00", "x" * 8192])
def test_any_text_is_a_query(start: Start, query: str) -> None:
    answer = retrieve(start(), queries=[query, query], topk=1)
    assert answer.status_code == 200
    first, second = answer.json()["result"]
    assert first == second
    assert len(first) == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ("{}", ["body", "queries"]),
        ('{"queries": "Ada"}', ["body", "queries"]),
        ('{"queries": [1]}', ["body", "queries", 0]),
        ('{"queries": ["a", null]}', ["body", "queries", 1]),
        ('{"queries": ["a"], "topk": 0}', ["body", "topk"]),
        ('{"queries": ["a"], "topk": "3"}', ["body", "topk"]),
        ('{"queries": ["a"], "topk": 1.5}', ["body", "topk"]),
        ('{"queries": ["a"], "topk": 1e999}', ["body", "topk"]),
        ('{"queries": ["a"], "topk": true}', ["body", "topk"]),
        ('{"queries": ["a"], "topk": 101}', ["body", "topk"]),
        ('{"queries": ["a"], "return_scores": "yes"}', ["body", "return_scores"]),
        ('{"queries": ["a", "b", "c", "d"]}', ["body", "queries"]),
        (json.dumps({"queries": ["a", "b" * 8193]}), ["body", "queries", 1]),
        ('{"queries": ["\\ud800"]}', ["body", "queries", 0]),
        ('{"queries": ["a"]', ["body", 17]),
        ("", ["body"]),
    ],
)
def test_what_is_over_a_limit_or_of_a_wrong_type_is_named(
    start: Start, body: str, field: list[object]
) -> None:
    answer = start(max_queries=3).post(
        "/retrieve", content=body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 422
    (problem,) = answer.json()["detail"]
    assert problem["loc"] == field
    assert problem["msg"]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", None])
def test_a_body_that_is_said_to_be_no_json_is_refused(start: Start, kind: str | None) -> None:
    headers = {"Content-Type": kind} if kind else {}
    answer = start().post("/retrieve", content='{"queries": ["a"]}', headers=headers)
    assert answer.status_code == 415
    assert "Content-Type: application/json" in answer.json()["detail"]


@pytest.mark.parametrize("kind", ["application/json; charset=utf-8", "Application/LD+JSON"])
def test_json_may_be_called_by_any_of_its_names(start: Start, kind: str) -> None:
    headers = {"Content-Type": kind}
    answer = start().post("/retrieve", content='{"queries": ["a"]}', headers=headers)
    assert answer.status_code == 200


def test_bytes_that_are_no_text_are_refused(start: Start) -> None:
    headers = {"Content-Type": "application/json"}
    assert (
        start().post("/retrieve", content=b'{"queries": ["\xff"]}', headers=headers).status_code
        == 400
    )


def test_other_paths_and_methods_are_refused(start: Start) -> None:
    client = start()
    assert client.get("/retrieve").status_code == 405
    assert client.get("/nothing").status_code == 404


def test_metrics_count_answers_batches_and_their_sizes(start: Start) -> None:
    client = start()
    retrieve(client, queries=["Ada", "Brno", "Ada"])
    retrieve(client, queries=["Ada"])
    retrieve(client)
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    lines = answer.text.splitlines()
    assert 'retriever_requests_total{status="200"} 2.0' in lines
    assert 'retriever_requests_total{status="422"} 1.0' in lines
    assert "retriever_batch_queries_count 1.0" in lines
    assert "retriever_batch_queries_sum 2.0" in lines
    assert "retriever_cache_hits_total 1.0" in lines
    assert "retriever_cache_misses_total 2.0" in lines
    assert "retriever_workers_ready 1.0" in lines
    assert "retriever_worker_restarts_total 0.0" in lines
    assert "retriever_shared_queries_total 1.0" in lines
    assert "retriever_queue_queries 0.0" in lines
    assert "retriever_request_seconds_count 3.0" in lines


def test_the_schema_documents_the_refusals(start: Start) -> None:
    operation = start().get("/openapi.json").json()["paths"]["/retrieve"]["post"]
    refusals = {"400", "401", "413", "415", "422", "429", "500", "503", "504"}
    assert set(operation["responses"]) == {"200"} | refusals
