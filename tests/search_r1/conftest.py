"""Fakes with the real interfaces: a tokenizer, an engine, a search engine and a local server."""

import asyncio
import json
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from search_r1.passages import Passage

ALIAS = 1_000_000


class FakeTokenizer:
    """One id a piece of text (a tag, a word, a white-space character, a sign).

    Every piece also has an alias id, which `encode` never returns: ids that were sampled as
    aliases do not survive decode and encode.
    """

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.ids: dict[str, int] = {}

    def encode(self, text: str) -> list[int]:
        return [self.id_of(piece) for piece in re.findall(r"</?\w+>|\w+|\s|[^\w\s]", text)]

    def decode(self, token_ids: list[int]) -> str:
        return "".join(self.pieces[token_id % ALIAS] for token_id in token_ids)

    def id_of(self, piece: str) -> int:
        if piece not in self.ids:
            self.ids[piece] = len(self.pieces)
            self.pieces.append(piece)
        return self.ids[piece]

    def sampled(self, text: str) -> list[int]:
        """Ids that decode to `text`, as an engine may sample them: none is what encode returns."""
        return [token_id + ALIAS for token_id in self.encode(text)]


@dataclass
class Engine:
    """Answers each call with the next scripted turn (ids), cut to what was asked for."""

    turns: list[list[int]]
    seen: list[list[int]] = field(default_factory=list)
    max_tokens: list[int] = field(default_factory=list)
    returned: list[list[int]] = field(default_factory=list)

    def next_ids(self, ids: list[int], max_tokens: int) -> list[int]:
        self.seen.append(list(ids))
        self.max_tokens.append(max_tokens)
        self.returned.append(self.turns[len(self.returned)][:max_tokens])
        return self.returned[-1]


@dataclass
class Library:
    """A search engine in memory; `error` is raised in place of an answer."""

    passages: list[Passage]
    error: Exception | None = None
    queries: list[str] = field(default_factory=list)

    async def search(self, queries: Sequence[str], top_k: int) -> list[list[Passage]]:
        await asyncio.sleep(0)
        self.queries.extend(queries)
        if self.error:
            raise self.error
        return [self.passages[:top_k] for _ in queries]


@dataclass
class Reply:
    """What the local server does with one request."""

    body: Any = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay_s: float = 0.0

    @property
    def raw(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


class QuietHTTPServer(ThreadingHTTPServer):
    """Does not report clients that leave before their reply: some tests leave."""

    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing."""


class LocalServer:
    """A real HTTP server on this machine that answers as scripted; the last reply repeats."""

    def __init__(self, replies: list[Reply], port: int = 0) -> None:
        self.replies = replies
        self.requests: list[tuple[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.connections: set[tuple[str, int]] = set()
        self.lock = threading.Lock()
        self._http = QuietHTTPServer(("127.0.0.1", port), self._handler())
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/retrieve"

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with server.lock:
                    server.connections.add(self.client_address)
                    server.requests.append((self.path, body))
                    server.headers.append(dict(self.headers))
                    reply = server.replies[min(len(server.requests), len(server.replies)) - 1]
                time.sleep(reply.delay_s)
                self.send_response(reply.status)
                for name, value in {**reply.headers, "Content-Length": len(reply.raw)}.items():
                    self.send_header(name, str(value))
                self.end_headers()
                self.wfile.write(reply.raw)

            def log_message(self, *args: object) -> None:
                """Keep the test output quiet."""

        return Handler


@pytest.fixture(scope="session")
def make_tokenizer() -> type[FakeTokenizer]:
    return FakeTokenizer


@pytest.fixture(scope="session")
def make_engine() -> type[Engine]:
    return Engine


@pytest.fixture(scope="session")
def make_library() -> type[Library]:
    return Library


@pytest.fixture
def tokenizer() -> FakeTokenizer:
    return FakeTokenizer()


@pytest.fixture
def serve() -> Iterator[Callable[..., LocalServer]]:
    """Starts local servers, each with the fields of its replies, and closes them all."""
    servers: list[LocalServer] = []

    def start(*replies: dict[str, Any], port: int = 0) -> LocalServer:
        servers.append(LocalServer([Reply(**fields) for fields in replies], port))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def make_checkpoint(run: Path, step: int, *, newest: bool = True) -> Path:
    """The shards of a run's checkpoint of a step, without weights."""
    actor = run / "checkpoints" / f"global_step_{step}" / "actor"
    (actor / "huggingface").mkdir(parents=True)
    (actor / "huggingface" / "config.json").write_text("{}")
    (actor / "fsdp_config.json").write_text('{"world_size": 1}')
    if newest:
        (run / "checkpoints" / "latest_checkpointed_iteration.txt").write_text(str(step))
    return actor


@pytest.fixture(scope="session")
def checkpoint() -> Callable[..., Path]:
    return make_checkpoint


@pytest.fixture
def merger(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Takes the place of verl's merger: notes its commands and writes a config."""
    commands: list[list[str]] = []

    def run(command: Sequence[str], *, check: bool, **_: Any) -> None:
        commands.append(list(command))
        target = Path(command[command.index("--target_dir") + 1])
        target.mkdir()
        (target / "config.json").write_text("{}")
        if "broken" in str(target):
            raise subprocess.CalledProcessError(1, command)

    monkeypatch.setattr(subprocess, "run", run)
    return commands
