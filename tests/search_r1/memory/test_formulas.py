"""The formulae against numbers computed by hand for Qwen2.5-7B."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from search_r1.memory import formulas
from search_r1.memory.shape import KNOWN

SEVEN = KNOWN["Qwen2.5-7B"]
LAYER = 233_057_792
EMBEDDING = 152_064 * 3_584


def test_weights_over_eight_gpus() -> None:
    assert formulas.sharded_weights(SEVEN.parameters, 4, 8) == 3_807_808_256


def test_gathered_weights_are_two_layers_and_the_embeddings() -> None:
    assert formulas.gathered_weights(SEVEN, with_output=True) == 2 * (2 * LAYER + 2 * EMBEDDING)
    assert formulas.gathered_weights(SEVEN, with_output=False) == 2 * (2 * LAYER + EMBEDDING)


def test_a_tied_output_layer_is_gathered_once() -> None:
    three = KNOWN["Qwen2.5-3B"]
    with_output = formulas.gathered_weights(three, with_output=True)
    assert with_output == formulas.gathered_weights(three, with_output=False)


def test_activations_of_one_token() -> None:
    halves = 4 * 3_584 + 2 * 3_584 + 2 * 512 + 4 * 18_944
    one_layer = 2 * halves + 8 * 3_584
    assert formulas.layer_activations(SEVEN, 1) == one_layer
    assert formulas.stored_activations(SEVEN, 1, checkpointing=False) == 28 * one_layer
    stored = formulas.stored_activations(SEVEN, 1, checkpointing=True)
    assert stored == 28 * 2 * 3_584 + one_layer


@pytest.mark.parametrize(
    ("backward", "compiled", "value_bytes"),
    [(False, True, 2), (True, True, 6), (False, False, 14), (True, False, 18)],
)
def test_logits_of_one_token(backward: bool, compiled: bool, value_bytes: int) -> None:
    found = formulas.logits(SEVEN, 1, backward=backward, compiled=compiled)
    assert found == 152_064 * value_bytes


def test_a_gibibyte_of_cache() -> None:
    # 28 layers x 4 heads x 128 x (key and value) x 2 bytes = 57,344 bytes a token.
    assert formulas.cache_tokens(SEVEN, 2**30, tensor_parallel=1) == 2**30 // 57_344
    assert formulas.cache_tokens(SEVEN, 2**30, tensor_parallel=2) == 2**31 // 57_344
    assert formulas.cache_tokens(SEVEN, -1.0, tensor_parallel=1) == 0


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_more_tokens_never_take_less(one: int, more: int) -> None:
    for checkpointing in (True, False):
        few = formulas.stored_activations(SEVEN, one, checkpointing=checkpointing)
        many = formulas.stored_activations(SEVEN, one + more, checkpointing=checkpointing)
        assert few < many
