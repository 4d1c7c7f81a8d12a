"""A hashing encoder behind the real app, the real FAISS index and a real HTTP server."""

import json
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import httpx
import numpy as np
import pytest
import uvicorn

from data_prep.index import build_index
from retrieval_server.app import create_app
from retrieval_server.encoder import Encoder, EncoderSettings, FloatArray
from retrieval_server.engines.assemble import load_service
from retrieval_server.lifecycle import ServiceFactory
from retrieval_server.service import Report, Service
from retrieval_server.settings import Settings

DIMENSION = 64
ROWS = [
    {"id": "a", "contents": '"Ada Lovelace"\nAda wrote the first program.'},
    {"id": "b", "title": "Brno", "text": "Brno is a city\u2028in Moravia."},
    {"id": "c", "contents": "A passage without a title."},
    {"id": 4, "contents": '"Döner "Kebab""\nGrilled meat, 🥙 in bread.'},
    {"id": "e", "title": "", "text": "Only text."},
]


class HashingEncoder:
    """Words hashed into a vector; batches of queries are noted, and wait at the gate."""

    dimension = DIMENSION

    def __init__(self, gate: threading.Event, encoded: list[list[str]]) -> None:
        self.gate = gate
        self.encoded = encoded

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        self.encoded.append(list(queries))
        assert self.gate.wait(20)
        return self.encode_passages(queries)

    def encode_passages(self, passages: Sequence[str]) -> FloatArray:
        vectors = np.zeros((len(passages), DIMENSION), dtype=np.float32)
        for vector, passage in zip(vectors, passages, strict=True):
            for word in passage.lower().split():
                vector[zlib.crc32(word.strip('".,?').encode()) % DIMENSION] += 1
            vector /= max(float(np.linalg.norm(vector)), 1e-9)
        return vectors


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Open; while it is clear, the encoder waits."""
    event = threading.Event()
    event.set()
    yield event
    event.set()


@pytest.fixture
def encoded() -> list[list[str]]:
    """The batches of queries that the encoder was given."""
    return []


@pytest.fixture
def encoder(gate: threading.Event, encoded: list[list[str]]) -> Encoder:
    return HashingEncoder(gate, encoded)


@pytest.fixture
def encoder_settings() -> EncoderSettings:
    return EncoderSettings(model="hashing", query_prefix="", passage_prefix="", pooling="mean")


@pytest.fixture
def index_folder(tmp_path: Path, encoder: Encoder, encoder_settings: EncoderSettings) -> Path:
    corpus = tmp_path / "corpus.jsonl"
    lines = [json.dumps(row, ensure_ascii=False) for row in ROWS]
    corpus.write_text("\n".join(lines), encoding="utf-8")
    build_index(corpus, tmp_path / "index", encoder_settings, load=lambda _: encoder)
    return tmp_path / "index"


@pytest.fixture
def load(encoder: Encoder) -> ServiceFactory:
    """Loads the real service over the hashing encoder."""

    def factory(settings: Settings, report: Report) -> Service:
        return load_service(settings, report, load=lambda _: encoder)

    return factory


class LiveServer:
    """The app in a thread, on a real socket."""

    def __init__(self, settings: Settings, factory: ServiceFactory) -> None:
        config = uvicorn.Config(create_app(settings, factory), port=0, log_config=None)
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.005)
        port = self.server.servers[0].sockets[0].getsockname()[1]
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=20)

    def stop(self) -> None:
        self.server.should_exit = True


@pytest.fixture
def servers() -> Iterator[list[LiveServer]]:
    running: list[LiveServer] = []
    yield running
    for server in running:
        server.stop()
        server.client.close()
        server.thread.join(20)
        assert not server.thread.is_alive()


@pytest.fixture
def start(
    index_folder: Path, load: ServiceFactory, servers: list[LiveServer]
) -> Callable[..., httpx.Client]:
    """Start a server with some settings and give a client of it, by default once it is ready."""

    def run(
        factory: ServiceFactory = load, *, wait: bool = True, **settings: object
    ) -> httpx.Client:
        values = {"index": index_folder, "failed_seconds": 0, "lanes": 1} | settings
        servers.append(LiveServer(Settings.model_validate(values), factory))
        client = servers[-1].client
        while wait and client.get("/health").status_code != 200:
            time.sleep(0.005)
        return client

    return run


@pytest.fixture
def stop(servers: list[LiveServer]) -> Callable[[], None]:
    """Ask the servers to end, as SIGTERM does."""
    return lambda: [server.stop() for server in servers] and None


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], None]:
    """Wait until something is true."""

    def wait(condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 10
        while not condition():
            assert time.monotonic() < deadline, "never became true"
            time.sleep(0.005)

    return wait
