"""Rules about what a request may ask: number, order, length, speed, and what is refused."""

import time
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle, islice
from typing import Final

import httpx

from search_r1.contract.rule import Rule, expect, rule
from search_r1.contract.server import Server, same

RULES: Final[list[Rule]] = []

_AT_ONCE: Final = 16
_TEXTS: Final = {
    "other scripts": "Ünïcødé 東京 שלום e\u0301",
    "an emoji": "🥙 in bread",
    "quotes and breaks": "a \"quoted\" \\ 'text'\nof two\tlines",
    "2,000 characters": "what is said of it " * 105,
}
_REFUSED: Final = (
    ("queries", {"topk": 3}),
    ("queries", {"queries": "text", "topk": 3}),
    ("queries", {"queries": [1], "topk": 3}),
    ("topk", {"queries": ["text"], "topk": 0}),
    ("topk", {"queries": ["text"], "topk": "three"}),
)


@rule(RULES, "topk", fix="return at most topk passages for each query: the best ones")
def topk(server: Server) -> str:
    """The number of passages is the one asked for."""
    counts = [(asked, len(server.ask_one(server.probes[0], topk=asked))) for asked in (1, 3, 10)]
    for asked, got in counts:
        expect(0 < got <= asked, f"topk {asked} gave {got} passages")
    return f"1, 3 and 10 gave {', '.join(str(got) for _, got in counts)}"


@rule(
    RULES,
    "larger topk",
    fix="let topk go above the server's default, and a larger one only lengthen the list",
    needed=False,
)
def larger_topk(server: Server) -> str:
    """Ten passages are the three and seven more, where there are so many."""
    query = " ".join(server.probes)  # finds several even where only shared words count
    short, long = server.ask_one(query, topk=3), server.ask_one(query, topk=10)
    expect(same(short, long[: len(short)]), "the first of topk 10 are not those of topk 3")
    more = len(long) > len(short) or len(server.known) <= len(short)
    expect(more, f"topk 10 gave {len(long)}, though {len(server.known)} passages are known")
    return f"topk 10 begins with those of topk {len(short)}"


@rule(
    RULES,
    "several queries",
    fix='make "result" one list for each query, in the order of "queries"',
)
def several_queries(server: Server) -> str:
    """Each query of a request finds what it finds alone."""
    asked = [*server.probes, server.probes[0]]
    answers = server.ask(asked)
    expect(len(answers) == len(asked), f"{len(asked)} queries gave {len(answers)} lists")
    for query, ranking in zip(asked, answers, strict=True):
        expect(same(ranking, server.alone[query]), f"{query!r} finds something else alone")
    return f"{len(asked)} queries found what each finds alone"


@rule(RULES, "any text", fix="take any Unicode text as a query; cut a long one yourself")
def any_text(server: Server) -> str:
    """What a policy writes is not always a question."""
    for text in _TEXTS.values():
        server.ask_one(text)
    return ", ".join(_TEXTS)


@rule(
    RULES,
    "repeatable",
    fix="search without chance, or a run cannot be repeated (a web engine may not be able to)",
    needed=False,
)
def repeatable(server: Server) -> str:
    """The same query finds the same."""
    query = server.probes[0]
    expect(same(server.ask_one(query), server.alone[query]), f"{query!r} found something else")
    return "twice the same"


@rule(
    RULES,
    "many at once",
    fix="share no state between requests: every rollout worker asks at the same time",
)
def many_at_once(server: Server) -> str:
    """Requests that meet get their own answers."""
    asked = list(islice(cycle(server.alone), _AT_ONCE))
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        answers = list(threads.map(server.ask_one, asked))
    for query, ranking in zip(asked, answers, strict=True):
        expect(same(ranking, server.alone[query]), f"{query!r} got another answer in a crowd")
    return f"{_AT_ONCE} requests got their own answers"


@rule(
    RULES,
    "in time",
    fix="make it faster (batch the queries, use a GPU), or raise search.attempt_timeout_seconds",
)
def in_time(server: Server) -> str:
    """Sixteen queries in one request take less than the client waits."""
    asked = list(islice(cycle(server.probes), _AT_ONCE))
    begin = time.perf_counter()
    server.ask(asked)
    seconds = time.perf_counter() - begin
    told = f"{_AT_ONCE} queries took {seconds * 1000:.0f} ms"
    expect(seconds < server.limit_s, f"{told}; a client waits {server.limit_s:g} s")
    return told


@rule(
    RULES,
    "unknown fields",
    fix="ignore the fields of a request that you do not know: peers' clients send more",
    needed=False,
)
def unknown_fields(server: Server) -> str:
    """A request with another field is answered as without."""
    query = server.probes[0]
    found = server.ask_one(query, user="somebody", rerank=None)
    expect(same(found, server.alone[query]), "another field changes the answer")
    return "ignored"


@rule(
    RULES,
    "empty list",
    fix='answer "queries": [] with {"result": []}, or refuse it with a 4xx status',
    needed=False,
)
def empty_list(server: Server) -> str:
    """No queries is no reason to fail."""
    response = server.post({"queries": [], "topk": 3, "return_scores": True})
    told = response.status_code == httpx.codes.OK and response.json() == {"result": []}
    expect(told or response.is_client_error, f"it was answered {response.status_code}")
    return "no lists" if told else f"{response.status_code}"


@rule(
    RULES,
    "bad requests",
    fix="refuse them with a 4xx status and the name of the field: a client retries a 5xx",
    needed=False,
)
def bad_requests(server: Server) -> str:
    """What is wrong with a request is told, by field."""
    for field, body in _REFUSED:
        response = server.post(body)
        told = f"{body} was answered {response.status_code}"
        expect(response.is_client_error, told)
        expect(field in response.text, f"{told}, which does not name {field}")
    return f"{len(_REFUSED)} refused by field"
