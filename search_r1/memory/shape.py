"""The sizes of a model, from its ``config.json`` or, for Qwen2.5 by name, from a small table."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """A dense decoder with gated MLPs and RMS norms: Llama, Qwen2 and their kin."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocabulary: int
    tied: bool
    """Whether the output layer is the input embedding."""
    attention_bias: bool
    """Whether the query, key and value projections have a bias."""
    positions: int
    """The longest sequence the model was made for, in tokens."""

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Self | None:
        """The shape that a Hugging Face ``config.json`` names; None if it is of another family."""
        if any("expert" in key for key in config) or "intermediate_size" not in config:
            return None
        heads, hidden = config["num_attention_heads"], config["hidden_size"]
        return cls(
            layers=config["num_hidden_layers"],
            hidden=hidden,
            heads=heads,
            kv_heads=config.get("num_key_value_heads") or heads,
            head_dim=config.get("head_dim") or hidden // heads,
            intermediate=config["intermediate_size"],
            vocabulary=config["vocab_size"],
            tied=config.get("tie_word_embeddings", False),
            attention_bias=config.get("attention_bias", config.get("model_type") == "qwen2"),
            positions=config["max_position_embeddings"],
        )

    @property
    def layer_parameters(self) -> int:
        """Weights of one layer: attention (with its biases), gated MLP and two norms."""
        query, key_value = self.heads * self.head_dim, 2 * self.kv_heads * self.head_dim
        attention = self.hidden * (2 * query + key_value)
        bias = query + key_value if self.attention_bias else 0
        return attention + bias + 3 * self.hidden * self.intermediate + 2 * self.hidden

    @property
    def embedding_parameters(self) -> int:
        """Weights of the input embedding, and as many again for an untied output layer."""
        return self.vocabulary * self.hidden

    @property
    def parameters(self) -> int:
        """All weights of the language model."""
        embeddings = self.embedding_parameters * (1 if self.tied else 2)
        return self.layers * self.layer_parameters + embeddings + self.hidden

    @property
    def critic_parameters(self) -> int:
        """All weights of a critic: a scalar head in place of an output layer."""
        layers = self.layers * self.layer_parameters
        return layers + self.embedding_parameters + 2 * self.hidden + 1

    @property
    def cache_values_per_token(self) -> int:
        """Keys and values of one token, over all layers."""
        return 2 * self.layers * self.kv_heads * self.head_dim


def _qwen(
    layers: int,
    hidden: int,
    heads: int,
    kv_heads: int,
    intermediate: int,
    **others: Any,  # noqa: ANN401
) -> ModelShape:
    # Base models were made for longer sequences than this; the instruct models were not.
    return ModelShape(
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        intermediate=intermediate,
        head_dim=128,
        attention_bias=True,
        positions=32768,
        **others,
    )


KNOWN = {
    "Qwen2.5-3B": _qwen(36, 2048, 16, 2, 11008, vocabulary=151936, tied=True),
    "Qwen2.5-7B": _qwen(28, 3584, 28, 4, 18944, vocabulary=152064, tied=False),
    "Qwen2.5-14B": _qwen(48, 5120, 40, 8, 13824, vocabulary=152064, tied=False),
}
"""Shapes of models that are named rather than given as a folder."""


def find_shape(path: str) -> ModelShape | None:
    """The shape of the model at `path`, a folder or a Hugging Face name; None if unknown.

    Raises:
        ValueError: the folder's ``config.json`` is not JSON, or lacks a size.
    """
    file = Path(path) / "config.json"
    if not file.is_file():
        return KNOWN.get(path.rpartition("/")[2].removesuffix("-Instruct"))
    try:
        return ModelShape.from_config(json.loads(file.read_text(encoding="utf-8")))
    except (KeyError, json.JSONDecodeError) as error:
        raise ValueError(f"{file}: {error!r}") from error
