import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_prep.world.draws import Draws, mix


def test_mix_gives_the_published_splitmix64_sequence() -> None:
    # The first outputs of the generator for the seed 1234567.
    gamma = 0x9E3779B97F4A7C15
    outputs = [mix((1_234_567 + i * gamma) % 2**64) for i in range(3)]
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert outputs == expected


@given(st.integers(0, 2**63 - 1), st.integers(1, 500))
def test_permuted_is_a_permutation(seed: int, size: int) -> None:
    draws = Draws(seed)
    assert sorted(draws.permuted(i, size, "x") for i in range(size)) == list(range(size))


def test_draws_depend_on_seed_stream_and_keys_in_order() -> None:
    draws = Draws(1)
    values = {
        draws.bits("a", 1, 2),
        draws.bits("a", 2, 1),
        draws.bits("b", 1, 2),
        draws.bits("a", 1),
        Draws(2).bits("a", 1, 2),
    }
    assert len(values) == 5
    assert draws.bits("a", 1, 2) == Draws(1).bits("a", 1, 2)


def test_draws_are_uniform() -> None:
    draws = Draws(3)
    counts = [0] * 10
    for i in range(10_000):
        counts[draws.below(10, "x", i)] += 1
    assert min(counts) > 900
    assert max(counts) < 1_100
    assert sum(draws.chance(0.2, "y", i) for i in range(10_000)) == pytest.approx(2_000, abs=150)


@given(st.lists(st.integers()), st.integers(0, 100))
def test_shuffled_keeps_the_items(items: list[int], key: int) -> None:
    assert sorted(Draws(5).shuffled(items, "x", key)) == sorted(items)
