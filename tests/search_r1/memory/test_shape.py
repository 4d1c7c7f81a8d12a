import json
from pathlib import Path
from typing import Any

import pytest

from search_r1.memory.shape import KNOWN, ModelShape, find_shape

SMOLLM2 = {
    "model_type": "llama",
    "attention_bias": False,
    "head_dim": 64,
    "hidden_size": 576,
    "intermediate_size": 1536,
    "max_position_embeddings": 8192,
    "num_attention_heads": 9,
    "num_hidden_layers": 30,
    "num_key_value_heads": 3,
    "tie_word_embeddings": True,
    "vocab_size": 49152,
}


def shape_of(**changes: Any) -> ModelShape:
    shape = ModelShape.from_config(SMOLLM2 | changes)
    assert shape is not None
    return shape


# What the models' own cards count.
@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("Qwen2.5-3B", 3_085_938_688),
        ("Qwen2.5-7B", 7_615_616_512),
        ("Qwen2.5-14B", 14_770_033_664),
    ],
)
def test_the_known_models_have_their_parameters(name: str, parameters: int) -> None:
    assert KNOWN[name].parameters == parameters


def test_a_llama_has_its_parameters() -> None:
    assert shape_of().parameters == 134_515_008


def test_one_layer_of_the_7b_by_hand() -> None:
    attention = 3584 * (3584 + 512 + 512 + 3584) + (3584 + 512 + 512)
    mlp, norms = 3 * 3584 * 18944, 2 * 3584
    assert KNOWN["Qwen2.5-7B"].layer_parameters == attention + mlp + norms


def test_a_critic_has_a_scalar_head_in_place_of_the_output_layer() -> None:
    shape = KNOWN["Qwen2.5-7B"]
    assert shape.critic_parameters == shape.parameters - 152064 * 3584 + 3584 + 1
    assert shape_of().critic_parameters == shape_of().parameters + 576 + 1


def test_what_a_config_leaves_out() -> None:
    without = {k: v for k, v in SMOLLM2.items() if k not in ("head_dim", "num_key_value_heads")}
    shape = ModelShape.from_config(without)
    assert shape is not None
    assert (shape.head_dim, shape.kv_heads) == (64, 9)


def test_qwen2_has_a_bias_that_its_config_does_not_name() -> None:
    config = {k: v for k, v in SMOLLM2.items() if k != "attention_bias"}
    qwen = ModelShape.from_config(config | {"model_type": "qwen2"})
    assert qwen is not None
    assert qwen.layer_parameters - shape_of().layer_parameters == (9 + 2 * 3) * 64


@pytest.mark.parametrize("other", [{"num_experts": 8}, {"n_routed_experts": 8}])
def test_a_mixture_of_experts_is_not_estimated(other: dict[str, int]) -> None:
    assert ModelShape.from_config(SMOLLM2 | other) is None
    assert ModelShape.from_config({"text_config": SMOLLM2}) is None


def test_a_folder_is_read_and_a_name_is_looked_up(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(SMOLLM2))
    assert find_shape(str(tmp_path)) == shape_of()
    assert find_shape("Qwen/Qwen2.5-7B-Instruct") == KNOWN["Qwen2.5-7B"]
    assert find_shape("someone/unheard-of") is None


@pytest.mark.parametrize("content", ["{", json.dumps({"intermediate_size": 8})])
def test_an_error_names_the_file(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(ValueError, match=r"config\.json"):
        find_shape(str(tmp_path))
