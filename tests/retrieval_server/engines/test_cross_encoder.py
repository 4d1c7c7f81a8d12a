"""The real cross-encoder code, on a tiny BERT with random weights: no model is downloaded.

What it finds says nothing about quality; that it computes what the model computes does.
"""

from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np
import pytest

from retrieval_server.encoder import Encoder
from retrieval_server.engines.assemble import load_service
from retrieval_server.engines.cross_encoder import RerankerSettings, load_cross_encoder
from search_r1.contract.examine import examine_server

pytestmark = pytest.mark.slow

PAIRS = [
    ("what is the danube", "danube is a river in europe"),
    ("what is brno", "brno is a town in moravia " * 20),
    ("river", "a film"),
]
WORDS = sorted({word for pair in PAIRS for text in pair for word in text.split()})


def write_model(folder: Path, labels: int = 1) -> Path:
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS]))
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(WORDS) + 4,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        num_labels=labels,
        initializer_range=1.0,
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    return folder


def settings(model: Path, **changes: object) -> RerankerSettings:
    usual = {"model": str(model), "batch_size": 2, "max_length": 32, "device": "cpu"}
    return RerankerSettings(**(usual | changes))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("models") / "tiny")


def test_scores_are_the_models_logits_in_the_order_of_the_pairs(model: Path) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    reference = AutoModelForSequenceClassification.from_pretrained(model).eval()
    expected = []
    for query, passage in PAIRS:
        tokens = tokenizer(query, passage, truncation=True, max_length=32, return_tensors="pt")
        with torch.no_grad():
            expected.append(float(reference(**tokens).logits[0, 0]))
    scores = load_cross_encoder(settings(model)).score(PAIRS)
    assert scores.dtype == np.float32
    assert scores.shape == (3,)
    assert np.allclose(scores, expected, atol=1e-4)
    assert max(abs(scores)) > 1  # no sigmoid


def test_a_server_that_reranks_with_it_keeps_every_rule(
    start: Callable[..., httpx.Client], encoder: Encoder, model: Path
) -> None:
    client = start(
        lambda settings, report: load_service(settings, report, lambda _: encoder),
        rerank=str(model),
        rerank_max_length=32,
        device="cpu",
    )
    verdicts = examine_server(str(client.base_url.join("/retrieve")))
    assert [(one.rule.name, one.detail) for one in verdicts if not one.kept] == []


def test_no_pairs(model: Path) -> None:
    assert load_cross_encoder(settings(model)).score([]).shape == (0,)


def test_half_precision_gives_nearly_the_same(model: Path) -> None:
    whole = load_cross_encoder(settings(model)).score(PAIRS)
    half = load_cross_encoder(settings(model, dtype="bfloat16")).score(PAIRS)
    assert half.dtype == np.float32
    assert np.allclose(whole, half, rtol=0.1, atol=0.1)
    assert not np.array_equal(whole, half)


def test_a_classifier_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="gives 3 scores a pair, not one"):
        load_cross_encoder(settings(write_model(tmp_path / "classes", labels=3)))


def test_a_length_that_the_model_does_not_have_is_refused(model: Path) -> None:
    with pytest.raises(ValueError, match="--rerank-max-length 65 is above the 64 positions"):
        load_cross_encoder(settings(model, max_length=65))
