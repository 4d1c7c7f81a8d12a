"""The re-ranker of sentence-transformers: a cross-encoder with one score a pair."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from retrieval_server.encoder import Dtype, FloatArray
from retrieval_server.model_hub import check_reachable
from retrieval_server.sentence_encoder import model_location

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder


@dataclass(frozen=True, kw_only=True)
class RerankerSettings:
    """Which cross-encoder, and how it computes."""

    model: str
    """Name, folder, or `package:MODULE` whose `get_model_path()` gives the folder."""
    batch_size: int
    """Pairs in one pass."""
    max_length: int
    """Tokens of query and passage together; the rest of the longer one is cut."""
    device: str | None = None
    """None: the best device found."""
    dtype: Dtype | None = None
    """None: float32."""


class CrossEncoderScorer:
    """Scores pairs with a cross-encoder; the scores are its logits."""

    def __init__(self, model: "CrossEncoder", settings: RerankerSettings) -> None:
        from torch.nn import Identity

        self.model = settings.model
        self._model = model
        self._batch_size = settings.batch_size
        # The default for one score is a sigmoid, at whose ends different logits become equal.
        self._activation = Identity()

    def score(self, pairs: Sequence[tuple[str, str]]) -> FloatArray:
        """Score (query, passage) pairs, `[len(pairs)]`."""
        # The library sorts by length itself, which keeps the padding small.
        scores = self._model.predict(
            list(pairs),
            batch_size=self._batch_size,
            activation_fn=self._activation,
            show_progress_bar=False,
        )
        return np.asarray(scores, dtype=np.float32)


def load_cross_encoder(settings: RerankerSettings) -> CrossEncoderScorer:
    """Load the model, and let it score one pair.

    Raises:
        ValueError: The model cannot be had, has not one score a pair, or is shorter than
            `max_length`.
    """
    from sentence_transformers import CrossEncoder

    from retrieval_server.packed_linear import prepare_to_infer

    location = model_location(settings.model)
    check_reachable(location)
    model = CrossEncoder(location, device=settings.device, max_length=settings.max_length)
    _check(model, settings)
    prepare_to_infer(model, settings.dtype or "float32")
    scorer = CrossEncoderScorer(model, settings)
    scorer.score([("query", "passage")])
    return scorer


def _check(model: "CrossEncoder", settings: RerankerSettings) -> None:
    if model.num_labels != 1:
        raise ValueError(
            f"--rerank '{settings.model}' gives {model.num_labels} scores a pair, not one: it "
            "classifies; give a cross-encoder that was trained to rank"
        )
    limit = getattr(model.config, "max_position_embeddings", settings.max_length)
    if settings.max_length > limit:
        raise ValueError(
            f"--rerank-max-length {settings.max_length} is above the {limit} positions of "
            f"'{settings.model}': lower it"
        )
