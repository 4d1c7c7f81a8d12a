"""The real encoder: its settings take effect, and a real server answers with the right passage."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import numpy as np
import pytest

from data_prep.index import build_index
from retrieval_server.encoder import PRESETS, Encoder, EncoderSettings
from retrieval_server.sentence_encoder import load_encoder, model_location

pytestmark = pytest.mark.slow

SCRIPT = Path(__file__).parents[2] / "scripts" / "launch_retriever.sh"
PASSAGES = {
    "volcano": '"Mount Etna"\nMount Etna is an active stratovolcano on the east coast of Sicily.',
    "composer": '"Leoš Janáček"\nJanáček was a Czech composer, born in Hukvaldy in 1854.',
    "bridge": '"Forth Bridge"\nThe Forth Bridge is a cantilever railway bridge in Scotland.',
    "fish": '"Coelacanth"\nThe coelacanths are lobe-finned fish once thought to be extinct.',
}
QUESTIONS = {
    "volcano": "Which mountain in Italy erupts?",
    "composer": "Who wrote music and came from Moravia?",
    "bridge": "Over what do trains cross the river near Edinburgh?",
    "fish": "What sea animal was rediscovered after being believed dead for ages?",
}


@pytest.fixture(scope="module")
def minilm() -> Encoder:
    return load_encoder(PRESETS["minilm"])


def changed(**fields: object) -> EncoderSettings:
    return EncoderSettings.model_validate(PRESETS["minilm"].model_dump() | fields)


def test_vectors_are_those_of_the_model_card(minilm: Encoder) -> None:
    from sentence_transformers import SentenceTransformer

    reference = SentenceTransformer(model_location(PRESETS["minilm"].model))
    expected = reference.encode(list(PASSAGES.values()))
    vectors = minilm.encode_passages(list(PASSAGES.values()))
    assert vectors.dtype == np.float32
    assert vectors.shape == (4, minilm.dimension) == (4, 384)
    assert np.allclose(vectors, expected, atol=1e-5)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_lanes_encode_at_the_same_time_what_each_encodes_alone(minilm: Encoder) -> None:
    batches = [[f"{word} {n}" * (1 + n % 7) for n in range(16)] for word in "abcdefgh"]
    alone = [minilm.encode_queries(batch) for batch in batches]
    with ThreadPoolExecutor(4) as lanes:
        together = list(lanes.map(minilm.encode_queries, batches * 5))
    for number, vectors in enumerate(together):
        assert np.allclose(vectors, alone[number % len(batches)], atol=1e-5)


def test_order_does_not_depend_on_length_or_batch(minilm: Encoder) -> None:
    texts = ["word " * n for n in (50, 1, 200, 3)] * 20
    whole = minilm.encode_queries(texts)
    single = np.concatenate([minilm.encode_queries([text]) for text in texts[:4]])
    assert np.allclose(whole, np.tile(single, (20, 1)), atol=1e-5)


def test_prefixes_are_put_before_the_text(minilm: Encoder) -> None:
    prefixed = load_encoder(changed(query_prefix="query: ", passage_prefix="passage: "))
    plain = minilm.encode_passages(["query: Etna", "passage: Etna"])
    assert np.allclose(prefixed.encode_queries(["Etna"]), plain[:1], atol=1e-5)
    assert np.allclose(prefixed.encode_passages(["Etna"]), plain[1:], atol=1e-5)


def test_pooling_normalisation_and_length_are_set_on_the_model(minilm: Encoder) -> None:
    from transformers import AutoModel, AutoTokenizer

    folder = model_location(PRESETS["minilm"].model)
    tokens = AutoTokenizer.from_pretrained(folder)("Mount Etna erupts", return_tensors="pt")
    hidden = AutoModel.from_pretrained(folder)(**tokens).last_hidden_state[0].detach().numpy()
    first = load_encoder(changed(pooling="cls", normalize=False))
    mean = load_encoder(changed(normalize=False))
    text = ["Mount Etna erupts"]
    assert np.allclose(first.encode_queries(text)[0], hidden[0], atol=1e-4)
    assert np.allclose(mean.encode_queries(text)[0], hidden.mean(0), atol=1e-4)
    short = load_encoder(changed(max_length=5))
    expected = minilm.encode_queries(["the big mountain"])  # with [CLS] and [SEP]
    assert np.allclose(
        short.encode_queries(["the big mountain of the island"]), expected, atol=1e-4
    )


def test_half_precision_gives_nearly_the_same_float32_vectors(minilm: Encoder) -> None:
    half = load_encoder(changed(dtype="bfloat16")).encode_queries(["Mount Etna erupts"])
    assert half.dtype == np.float32
    assert float(half[0] @ minilm.encode_queries(["Mount Etna erupts"])[0]) > 0.99


def test_a_length_that_the_model_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="max_length 1024 is above the 512 positions"):
        load_encoder(changed(max_length=1024))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("real")
    rows = [json.dumps({"id": key, "contents": text}) for key, text in PASSAGES.items()]
    (root / "corpus.jsonl").write_text("\n".join(rows))
    build_index(root / "corpus.jsonl", root / "index", PRESETS["minilm"])
    return root / "index"


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        return int(holder.getsockname()[1])


@pytest.fixture
def server(folder: Path, port: int) -> Iterator["subprocess.Popen[bytes]"]:
    command = [sys.executable, "-m", "retrieval_server", "--index", str(folder)]
    process = subprocess.Popen([*command, "--port", str(port)])
    yield process
    process.kill()
    process.wait()


def retrieve(port: int) -> dict[str, str]:
    body = {"queries": list(QUESTIONS.values()), "topk": 1, "return_scores": True}
    answer = httpx.post(f"http://127.0.0.1:{port}/retrieve", json=body, timeout=60)
    return dict(
        zip(
            QUESTIONS,
            (items[0]["document"]["id"] for items in answer.json()["result"]),
            strict=True,
        )
    )


def test_a_real_server_loads_answers_and_ends_on_sigterm(
    server: "subprocess.Popen[bytes]", port: int
) -> None:
    statuses = set()
    deadline = time.monotonic() + 240
    while "ready" not in statuses:
        assert time.monotonic() < deadline
        assert server.poll() is None
        try:
            health = httpx.get(f"http://127.0.0.1:{port}/health", timeout=60)
            statuses.add(health.json()["status"])
        except httpx.TransportError:
            time.sleep(0.1)
    assert statuses == {"loading", "ready"}
    assert retrieve(port) == {key: key for key in QUESTIONS}
    server.send_signal(signal.SIGTERM)
    assert server.wait(60) == 0


def test_sigterm_while_loading_does_not_wait_for_the_encoder(
    server: "subprocess.Popen[bytes]", port: int
) -> None:
    deadline = time.monotonic() + 60
    while True:
        assert time.monotonic() < deadline
        try:
            if httpx.get(f"http://127.0.0.1:{port}/health").json()["stage"] == "encoder":
                break
        except httpx.TransportError:
            time.sleep(0.05)
    server.send_signal(signal.SIGTERM)
    assert server.wait(5) == 0


def test_the_script_leaves_a_ready_server_behind(folder: Path, port: int, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    done = subprocess.run(
        ["bash", str(SCRIPT), str(folder), str(port), "--wait", "240", "--detach", str(log)],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
        env=os.environ | {"PYTHON": sys.executable},
    )
    process = int((tmp_path / "server.log.pid").read_text())
    try:
        assert "4 passages" in done.stdout
        assert f"http://127.0.0.1:{port}/retrieve" in done.stdout
        assert retrieve(port) == {key: key for key in QUESTIONS}
    finally:
        os.kill(process, signal.SIGTERM)
