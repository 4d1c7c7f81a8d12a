"""A web search engine behind the plumbing that all share: retries, limits, keys and money."""

import logging
import time
import traceback
from collections.abc import Callable
from typing import Any, get_args

import pytest

from retrieval_server.engines.online.client import OnlineError, TransientOnlineError
from retrieval_server.engines.online.counts import REGISTRY
from retrieval_server.engines.online.provider import Hit, ProviderName
from retrieval_server.engines.online.service import OnlineService, passages_of

Connect = Callable[..., Any]
NAMES = get_args(ProviderName)


def count(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(name, labels) or 0.0


@pytest.fixture
def service(connect: Connect) -> Any:
    made = OnlineService(connect("serper"), results=10, concurrency=4)
    yield made
    made.close()


def ids(answers: list[Any]) -> list[list[str]]:
    return [[passage.document.id.rpartition("/")[2] for passage in one] for one in answers]


def test_results_become_passages(service: OnlineService) -> None:
    ((first, second),) = service.search(["a river"], 2)
    assert first.model_dump() == {
        "document": {
            "id": "https://example.org/3",
            "contents": '"Page 3"\nabout a river',
            "title": "Page 3",
            "text": "about a river",
            "url": "https://example.org/3",
        },
        "score": 1.0,
    }
    assert second.score == 1 / 2


def test_scores_of_the_engine_are_kept_and_decide_the_order() -> None:
    scored = passages_of([Hit("a", "A", "", 0.2), Hit("b", "", "text", 0.7)])
    assert [(p.document.id, p.score) for p in scored] == [("b", 0.7), ("a", 0.2)]
    assert scored[0].document.contents == "text"
    assert scored[0].document.title is None
    mixed = passages_of([Hit("a", "A", "", 0.2), Hit("b", "", "text")])
    assert [(p.document.id, p.score) for p in mixed] == [("a", 1.0), ("b", 0.5)]


def test_many_queries_are_asked_at_once_but_no_more_than_allowed(
    web: Any, script: Any, service: OnlineService
) -> None:
    web.scripted = [script(body={"organic": []}, delay_s=0.05) for _ in range(12)]
    service.search([f"query {number}" for number in range(12)], 3)
    assert web.most_at_once == 4


def test_as_many_results_are_asked_for_whatever_the_length_of_the_answer(
    web: Any, service: OnlineService
) -> None:
    assert ids(service.search(["a river"], 3)) == [["3", "0", "1"]]
    assert ids(service.search(["a river"], 5)) == [["3", "0", "1", "2", "4"]]
    assert len(service.search(["a river"], 12)[0]) == 10
    assert [sent.json["num"] for sent in web.sent] == [10]  # paid for once


def test_a_blank_query_is_not_sent(web: Any, service: OnlineService) -> None:
    assert ids(service.search(["", " ", "town"], 1)) == [[], [], ["5"]]
    assert len(web.sent) == 1


def test_results_without_address_or_text_are_dropped_and_counted(
    web: Any, script: Any, connect: Connect
) -> None:
    before = count("retriever_online_dropped_results_total", provider="serper")
    items = [
        {"link": "u"},
        {"title": "T"},
        {"link": "u", "title": "T"},
        {"link": "u", "title": "U"},
    ]
    web.scripted = [script(body={"organic": items})]
    assert connect("serper").fetch("q", 10) == [Hit("u", "T", "")]
    after = count("retriever_online_dropped_results_total", provider="serper")
    assert after - before == 2


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_may_pass_is_tried_again(web: Any, script: Any, connect: Connect, status: int) -> None:
    labels = {"provider": "brave", "outcome": str(status)}
    before = count("retriever_online_attempts_total", **labels)
    web.scripted = [script(status, {"message": "later"})] * 2
    assert len(connect("brave").fetch("a river", 3)) == 3
    assert len(web.sent) == 3
    assert count("retriever_online_attempts_total", **labels) - before == 2


def test_what_does_not_pass_ends_with_what_the_engine_said(
    web: Any, script: Any, connect: Connect
) -> None:
    web.scripted = [script(429, {"error": "Your account has run out of searches."})] * 9
    with pytest.raises(TransientOnlineError, match=r"serpapi answered 429: .*run out of searches"):
        connect("serpapi").fetch("q", 3)
    assert len(web.sent) == 4


def test_a_wait_that_the_engine_asks_for_is_waited_unless_it_is_too_long(
    web: Any, script: Any, connect: Connect
) -> None:
    client = connect("serper", timeout_seconds=4)
    web.scripted = [script(429, {}, {"Retry-After": "1"})]
    begin = time.monotonic()
    client.fetch("q", 3)
    assert time.monotonic() - begin >= 1
    web.scripted = [script(429, {}, {"Retry-After": "60"})]
    with pytest.raises(TransientOnlineError, match="429"):
        client.fetch("q", 3)
    assert time.monotonic() - begin < 10


def test_no_answer_in_time(web: Any, script: Any, connect: Connect) -> None:
    web.scripted = [script(body={}, delay_s=0.6)] * 4
    begin = time.monotonic()
    with pytest.raises(OnlineError, match="serper: ReadTimeout"):
        connect("serper", timeout_seconds=0.4).fetch("q", 3)
    assert time.monotonic() - begin < 5
    assert len(web.sent) == 2


def test_no_connection(connect: Connect) -> None:
    with pytest.raises(OnlineError, match="tavily: ConnectError"):
        connect("tavily", base_url="http://127.0.0.1:9").fetch("q", 3)


@pytest.mark.parametrize("body", [b"<html>", b"[" * 100_000, [], {"organic": "none"}])
def test_a_malformed_reply_is_not_tried_again(
    web: Any, script: Any, connect: Connect, body: Any
) -> None:
    web.scripted = [script(body=body)]
    with pytest.raises(OnlineError, match="serper: malformed reply"):
        connect("serper").fetch("q", 3)
    assert len(web.sent) == 1


@pytest.mark.parametrize("status", [301, 400, 401, 403, 422])
def test_a_refusal_is_not_tried_again_and_names_the_variables(
    web: Any, script: Any, connect: Connect, status: int
) -> None:
    web.scripted = [script(status, {"message": "API key not valid."})]
    with pytest.raises(OnlineError, match=f"answered {status}.*GOOGLE_API_KEY, GOOGLE_CSE_ID"):
        connect("google").fetch("q", 3)
    assert len(web.sent) == 1


@pytest.mark.parametrize("name", NAMES)
def test_a_key_is_in_no_log_and_no_error(
    web: Any, script: Any, connect: Connect, keys: Any, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    caplog.set_level(logging.INFO)
    client = connect(name)
    client.fetch("a river", 3)
    secrets = [keys[variable] for variable in client.provider.variables]
    told = [caplog.text]
    for status in (401, 500):
        echo = f"{'x' * 270} bad key {' '.join(secrets)} in {web.sent[0].params}"
        web.scripted = [script(status, {"error": echo})] * 4
        with pytest.raises(OnlineError) as raised:
            client.fetch("q", 3)
        told += ["".join(traceback.format_exception(raised.value)), repr(raised.value)]
    assert f"<{client.provider.variables[0]}>"[:4] in told[1]
    with pytest.raises(OnlineError) as raised:
        connect(name, base_url="http://127.0.0.1:9").fetch("q", 3)
    told.append("".join(traceback.format_exception(raised.value)))
    for secret in secrets:
        assert not any(secret in text or secret[:8] in text for text in told)


def test_the_rest_of_a_lost_batch_is_not_asked_and_what_was_found_is_not_paid_for_twice(
    web: Any, script: Any, connect: Connect
) -> None:
    service = OnlineService(connect("serper"), results=10, concurrency=1)
    none = {"organic": []}
    web.scripted = [script(body=none), script(400, {"message": "bad query"})]
    web.scripted.append(script(body=none, delay_s=0.3))
    queries = [f"query {number}" for number in range(20)]
    with pytest.raises(OnlineError, match="bad query"):
        service.search(queries, 3)
    assert len(web.sent) < 5
    asked = len(web.sent)
    assert service.search(queries[:1], 3) == [[]]
    assert len(web.sent) == asked
    service.close()


def test_health_tells_the_provider(service: OnlineService) -> None:
    told = {"engine": "online", "provider": "serper", "depth": 10, "rows": None}
    assert service.info() == told
