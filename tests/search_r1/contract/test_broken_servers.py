"""A sound small server keeps every rule; one that is broken in one way breaks exactly one."""

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from search_r1.contract.examine import RULES, Verdict, examine_server

Json = dict[str, Any]
KINDS = {
    "Moon": "place to walk on",
    "Paris": "capital city of a country",
    "Alien": "film and its director",
    "Danube": "river",
    "Pelé": "football player",
    "Brno": "town",
    "Ada": "person",
}
PASSAGES = {name: f"{name} is a {kind} and more is told" for name, kind in KINDS.items()}


class SmallServer:
    """Ranks seven passages by the words they share with a query; each method is one duty."""

    def reply(self, body: Json) -> tuple[int, Any]:
        problem = self.problem(body)
        if problem:
            return 422, {"detail": problem}
        lists = [self.search(query, body["topk"]) for query in body["queries"]]
        if not body["return_scores"]:
            lists = [[item["document"] for item in items] for items in lists]
        return 200, {"result": lists}

    def problem(self, body: Json) -> str:
        queries, topk = body.get("queries"), body.get("topk", 3)
        if not isinstance(queries, list) or not all(isinstance(one, str) for one in queries):
            return "queries is not a list of texts"
        return "" if isinstance(topk, int) and topk > 0 else "topk is not a number above 0"

    def search(self, query: str, topk: int) -> list[Json]:
        return [self.item(name, score) for score, name in self.rank(query)[:topk]]

    def rank(self, query: str) -> list[tuple[float, str]]:
        words = set(query.split())
        shared = [
            (len(words & set(text.split())) + place / 100, name)
            for place, (name, text) in enumerate(PASSAGES.items())
        ]
        return sorted(shared, reverse=True)

    def item(self, name: str, score: Any) -> Json:
        return {"document": self.document(name), "score": score}

    def document(self, name: str) -> Json:
        text = PASSAGES[name]
        return {"id": name, "contents": f'"{name}"\n{text}', "title": name, "text": text}

    content_type = "application/json"


class Named(SmallServer):
    content_type = "text/html; charset=utf-8"


class WithoutIds(SmallServer):
    def document(self, name: str) -> Json:
        return super().document(name) | {"id": None}


class WithoutContents(SmallServer):
    def document(self, name: str) -> Json:
        return {"id": name, "contents": ""}


class OtherTitle(SmallServer):
    def document(self, name: str) -> Json:
        return super().document(name) | {"title": "Wikipedia"}


class Twice(SmallServer):
    def rank(self, query: str) -> list[tuple[float, str]]:
        best, *others = super().rank(query)
        return [best, best, *others]


class TextScores(SmallServer):
    def item(self, name: str, score: Any) -> Json:
        return super().item(name, str(score))


class NanScores(SmallServer):
    def item(self, name: str, score: Any) -> Json:
        return super().item(name, float("nan"))


class Distances(SmallServer):
    def item(self, name: str, score: Any) -> Json:
        return super().item(name, -score)


class AlwaysScored(SmallServer):
    def reply(self, body: Json) -> tuple[int, Any]:
        return super().reply(body | {"return_scores": True})


class AlwaysThree(SmallServer):
    def search(self, query: str, topk: int) -> list[Json]:
        return super().search(query, max(topk, 3))


class AtMostThree(SmallServer):
    def search(self, query: str, topk: int) -> list[Json]:
        return super().search(query, min(topk, 3))


class Backwards(SmallServer):
    def reply(self, body: Json) -> tuple[int, Any]:
        status, reply = super().reply(body)
        return status, {"result": reply["result"][::-1]} if status == 200 else reply


class FirstQueryOnly(SmallServer):
    def reply(self, body: Json) -> tuple[int, Any]:
        queries = body.get("queries")
        return super().reply(body | {"queries": queries[:1]} if queries and body["topk"] else body)


class AsciiOnly(SmallServer):
    def problem(self, body: Json) -> str:
        problem = super().problem(body)
        return problem or ("" if "🥙" not in str(body["queries"]) else "queries: not ASCII")


class ShortQueries(SmallServer):
    def problem(self, body: Json) -> str:
        problem = super().problem(body)
        return problem or (
            "queries: too long" if any(len(q) > 999 for q in body["queries"]) else ""
        )


class Moody(SmallServer):
    """The third answer to a query is shorter; it was asked alone, and for the rule on topk."""

    def __init__(self) -> None:
        self.asked: dict[str, int] = {}
        self.done = False

    def reply(self, body: Json) -> tuple[int, Any]:
        status, reply = super().reply(body)
        alone = isinstance(body.get("queries"), list) and len(body["queries"]) == 1
        if status == 200 and alone and body["topk"] == 3 and body["return_scores"]:
            key = body["queries"][0]
            self.asked[key] = self.asked.get(key, 0) + 1
            if self.asked[key] == 3 and not self.done:
                self.done = True
                reply["result"][0] = reply["result"][0][:1]
        return status, reply


PLAIN = {"queries", "topk", "return_scores"}


class SharedState(SmallServer):
    """Answers the newest query of all who ask."""

    def search(self, query: str, topk: int) -> list[Json]:
        self.query = query
        time.sleep(0.01)
        return super().search(self.query, topk)


class Slow(SmallServer):
    def reply(self, body: Json) -> tuple[int, Any]:
        if len(body.get("queries", [])) > 8:
            time.sleep(0.5)
        return super().reply(body)


class Strict(SmallServer):
    def problem(self, body: Json) -> str:
        return super().problem(body) or ("unknown field" if set(body) - PLAIN else "")


class NoEmptyList(SmallServer):
    def reply(self, body: Json) -> tuple[int, Any]:
        return (500, {}) if body.get("queries") == [] else super().reply(body)


class Crashes(SmallServer):
    def reply(self, body: Json) -> tuple[int, Any]:
        return (500, "Internal Server Error") if self.problem(body) else super().reply(body)


class Silent(SmallServer):
    def reply(self, body: Json) -> tuple[int, Any]:
        return (400, "bad request") if self.problem(body) else super().reply(body)


@pytest.fixture
def examine() -> Iterator[Callable[..., dict[str, Verdict]]]:
    running: list[ThreadingHTTPServer] = []

    def start(server: SmallServer) -> dict[str, Verdict]:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # Head and body in one packet, or the kernel waits between them.

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                status, reply = server.reply(body)
                raw = json.dumps(reply).encode()
                self.send_response(status)
                self.send_header("Content-Type", server.content_type)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *args: object) -> None:
                """Keep the test output quiet."""

        http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        running.append(http)
        threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{http.server_port}/retrieve"
        return {verdict.rule.name: verdict for verdict in examine_server(url, limit_s=0.4)}

    yield start
    for http in running:
        http.shutdown()
        http.server_close()


def test_a_sound_server_keeps_every_rule(examine: Callable[..., Any]) -> None:
    verdicts = examine(SmallServer())
    assert [name for name, verdict in verdicts.items() if not verdict.kept] == []
    assert len(verdicts) == len(RULES)
    assert verdicts["topk"].detail == "1, 3 and 10 gave 1, 3, 7"


BROKEN = {
    Named: "content type",
    WithoutIds: "documents",
    WithoutContents: "documents",
    OtherTitle: "title and text",
    Twice: "no repeats",
    TextScores: "scores",
    NanScores: "scores",
    Distances: "best first",
    AlwaysScored: "without scores",
    AlwaysThree: "topk",
    AtMostThree: "larger topk",
    Backwards: "several queries",
    FirstQueryOnly: "several queries",
    AsciiOnly: "any text",
    ShortQueries: "any text",
    Moody: "repeatable",
    SharedState: "many at once",
    Slow: "in time",
    Strict: "unknown fields",
    NoEmptyList: "empty list",
    Crashes: "bad requests",
    Silent: "bad requests",
}


@pytest.mark.parametrize(("broken", "name"), BROKEN.items())
def test_a_broken_server_breaks_exactly_its_rule(
    examine: Callable[..., Any], broken: type[SmallServer], name: str
) -> None:
    verdicts = examine(broken())
    assert [name for name, verdict in verdicts.items() if not verdict.kept] == [name]
    assert verdicts[name].detail


def test_every_rule_is_broken_by_some_server_and_has_a_fix() -> None:
    assert {rule.name for rule in RULES} == set(BROKEN.values())
    assert all(rule.fix for rule in RULES)


def test_no_two_rules_share_a_name() -> None:
    names = [rule.name for rule in RULES]
    assert all(one != other for one, other in itertools.combinations(names, 2))
