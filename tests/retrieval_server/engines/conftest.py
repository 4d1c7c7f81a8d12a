"""A local server that answers as the web search engines do, and engines with known rankings."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from retrieval_server.engines.online.client import OnlineClient, OnlineSettings
from retrieval_server.engines.online.providers import PROVIDERS
from retrieval_server.schemas import Document, ScoredDocument

KEYS = {
    "SERPER_API_KEY": "serper/secret+1",
    "SERPAPI_API_KEY": "serpapi/secret+2",
    "GOOGLE_API_KEY": "google/secret+3",
    "GOOGLE_CSE_ID": "017:engine",
    "BRAVE_API_KEY": "brave/secret+4",
    "TAVILY_API_KEY": "tvly-secret+5",
}
KINDS = ["place to walk on the Moon", "capital city of a country", "film and its director"]
KINDS += ["river", "football player", "town", "person", "ship", "star", "song", "war", "law"]
PAGES = [
    (f"https://example.org/{place}", f"Page {place}", f"about a {kind}")
    for place, kind in enumerate(KINDS)
]


@dataclass
class Sent:
    """A request as it arrived."""

    method: str
    path: str
    params: dict[str, str]
    headers: Mapping[str, str]
    json: dict[str, Any] | None


@dataclass
class Scripted:
    """An answer in place of the engine's own."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0


def shape_hit(name: str, url: str, title: str, text: str, score: float) -> dict[str, Any]:
    if name == "tavily":
        return {"url": url, "title": title, "content": text, "score": score, "raw_content": None}
    if name == "brave":
        return {"url": url, "title": title, "description": text, "type": "search_result"}
    return {"link": url, "title": title, "snippet": text, "position": 1, "displayLink": "x"}


def shape_reply(name: str, query: str, hits: list[dict[str, Any]]) -> dict[str, Any]:
    """What the engine's documentation shows; without results each has a form of its own."""
    if name == "serper":
        return {"searchParameters": {"q": query}, "organic": hits, "credits": 1}
    if name == "serpapi":
        told = {"search_metadata": {"status": "Success"}, "search_parameters": {"q": query}}
        none = "Google hasn't returned any results for this query."
        return told | ({"organic_results": hits} if hits else {"error": none})
    if name == "google":
        told = {"kind": "customsearch#search", "searchInformation": {"totalResults": "0"}}
        return told | ({"items": hits} if hits else {})
    if name == "brave":
        told = {"type": "search", "query": {"original": query}}
        return told | ({"web": {"type": "search", "results": hits}} if hits else {})
    return {"query": query, "answer": None, "images": [], "results": hits, "response_time": 0.7}


def key_of(name: str, sent: Sent) -> tuple[str | None, ...]:
    return {
        "serper": (sent.headers.get("X-API-KEY"),),
        "serpapi": (sent.params.get("api_key"),),
        "google": (sent.params.get("key"), sent.params.get("cx")),
        "brave": (sent.headers.get("X-Subscription-Token"),),
        "tavily": (sent.headers.get("Authorization", "").removeprefix("Bearer "),),
    }[name]


class FakeWeb:
    """All five engines on one local address, told apart by the path and the method."""

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.scripted: list[Scripted] = []
        self.most_at_once = 0
        self._at_once = 0
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def answer(self, sent: Sent) -> Scripted:
        with self._lock:
            self.sent.append(sent)
            if self.scripted:
                return self.scripted.pop(0)
        name = self._name(sent)
        if key_of(name, sent) != tuple(KEYS[one] for one in PROVIDERS[name].variables):
            return Scripted(403 if name == "serper" else 401, {"message": "Unauthorized."})
        asked = sent.json or sent.params
        query = str(asked.get("q") or asked.get("query"))
        count = int(asked.get("num") or asked.get("count") or asked["max_results"])
        return Scripted(body=shape_reply(name, query, self._search(name, query, count)))

    def _name(self, sent: Sent) -> Any:
        if sent.path == "/search":
            return "serper" if "X-API-KEY" in sent.headers else "tavily"
        return next(name for name, one in PROVIDERS.items() if one.path == sent.path)

    def _search(self, name: str, query: str, count: int) -> list[dict[str, Any]]:
        words = set(query.split())
        ranked = sorted(PAGES, key=lambda page: -len(words & set(f"{page[1]} {page[2]}".split())))
        return [shape_hit(name, *page, 0.9 - rank / 50) for rank, page in enumerate(ranked[:count])]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        web = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1  # Head and body in one packet, or the kernel waits between them.

            def do_GET(self) -> None:
                self._reply(None)

            def do_POST(self) -> None:
                self._reply(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def _reply(self, body: Any) -> None:
                with web._lock:
                    web._at_once += 1
                    web.most_at_once = max(web.most_at_once, web._at_once)
                address = urlsplit(self.path)
                params = dict(parse_qsl(address.query))
                told = web.answer(Sent(self.command, address.path, params, self.headers, body))
                time.sleep(told.delay_s)
                raw = told.body if isinstance(told.body, bytes) else json.dumps(told.body).encode()
                with web._lock:
                    web._at_once -= 1
                self.send_response(told.status)
                for key, value in {**told.headers, "Content-Length": len(raw)}.items():
                    self.send_header(key, str(value))
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, *args: object) -> None:
                """Keep the test output quiet."""

        return Handler


@pytest.fixture
def web() -> Iterator[FakeWeb]:
    server = FakeWeb()
    yield server
    server.close()


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Every key, in the environment."""
    for name, key in KEYS.items():
        monkeypatch.setenv(name, key)
    return KEYS


@pytest.fixture
def script() -> type[Scripted]:
    return Scripted


@pytest.fixture
def connect(web: FakeWeb) -> Iterator[Callable[..., OnlineClient]]:
    """Clients of the local engines."""
    clients: list[OnlineClient] = []

    def run(name: Any, **settings: Any) -> OnlineClient:
        provider = PROVIDERS[name]
        usual = {"base_url": web.url, "backoff_seconds": 0.001}
        limits = OnlineSettings(**(usual | settings))
        clients.append(OnlineClient(provider, provider.read_keys(KEYS), limits))
        return clients[-1]

    yield run
    for client in clients:
        client.close()


class Ranked:
    """An engine whose answers are written down: the ids for each query, best first."""

    def __init__(self, answers: Mapping[str, str], corpus: str = "one") -> None:
        self.answers = answers
        self.corpus = corpus
        self.asked: list[tuple[tuple[str, ...], int]] = []
        self.closed = False

    def search(self, queries: Sequence[str], topk: int) -> list[list[ScoredDocument]]:
        self.asked.append((tuple(queries), topk))
        return [
            [
                ScoredDocument(document=Document(id=name, contents=f"text {name}"), score=-rank)
                for rank, name in enumerate(self.answers[query][:topk])
            ]
            for query in queries
        ]

    def info(self) -> dict[str, object]:
        return {"engine": "ranked", "rows": 7, "corpus": {"sha256": self.corpus}}

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def ranked() -> type[Ranked]:
    return Ranked
