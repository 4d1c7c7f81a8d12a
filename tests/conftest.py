"""Files that a training config names, made small: questions and a model without weights."""

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import settings
from omegaconf import DictConfig

# How long an example takes depends on the machine; no test may.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")

QWEN_7B = {
    "model_type": "qwen2",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "max_position_embeddings": 32768,
    "num_attention_heads": 28,
    "num_hidden_layers": 28,
    "num_key_value_heads": 4,
    "tie_word_embeddings": False,
    "vocab_size": 152064,
}


def write_questions(path: Path, rows: int, **columns: Any) -> Path:
    """A parquet file of `rows` equal rows with verl's columns; a column given as None is absent."""
    row = {
        "prompt": [{"role": "user", "content": "Who?"}],
        "data_source": "nq",
        "reward_model": {"style": "rule", "ground_truth": ["x"]},
        "extra_info": {"id": "1", "question": "Who?"},
    } | columns
    pq.write_table(pa.table({k: [v] * rows for k, v in row.items() if v is not None}), path)
    return path


def write_model(folder: Path, config: Mapping[str, Any] = QWEN_7B) -> Path:
    """A model folder in which weights and tokenizer are empty files."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").touch()
    (folder / "tokenizer.json").touch()
    return folder


@pytest.fixture(scope="session")
def run_overrides(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What every shipped config needs besides itself, as overrides."""
    folder = tmp_path_factory.mktemp("made")
    train = write_questions(folder / "train.parquet", 1024)
    model = write_model(folder / "model")
    return [
        f"data.train_files={train}",
        f"data.val_files={train}",
        f"actor_rollout_ref.model.path={model}",
        "trainer.experiment_name=made",
        f"output_dir={folder}/run",
    ]


@pytest.fixture(scope="session")
def composed(run_overrides: list[str]) -> Callable[..., DictConfig]:
    """Composes a config with `run_overrides` once for each set of further ones.

    Composing takes most of a check's time. A test that changes the config must copy it.
    """

    @cache
    def run(name: str, *overrides: str) -> DictConfig:
        from search_r1.config import compose

        return compose(name, [*run_overrides, *overrides])

    return run
