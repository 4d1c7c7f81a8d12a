from dataclasses import FrozenInstanceError

import pytest

from search_r1.baselines import METHODS
from search_r1.baselines.published import PUBLISHED, published


@pytest.mark.parametrize(
    ("method", "model", "average_em"),
    [
        ("search_r1_ppo", "Qwen2.5-7B", 0.431),
        ("search_r1_ppo", "Qwen2.5-7B-Instruct", 0.385),
        ("search_r1_grpo", "Qwen2.5-7B", 0.350),
        ("search_r1_grpo", "Qwen2.5-7B-Instruct", 0.396),
        ("rag", "Qwen2.5-7B", 0.304),
        ("ircot", "Qwen2.5-7B", 0.239),
        ("search_o1", "Qwen2.5-7B", 0.206),
        ("direct", "Qwen2.5-7B", 0.181),
        ("cot", "Qwen2.5-7B", 0.106),
        ("search_r1_ppo", "Qwen2.5-3B", 0.303),
        ("search_r1_ppo", "Qwen2.5-14B", 0.479),
    ],
)
def test_the_numbers_are_those_of_the_paper(method: str, model: str, average_em: float) -> None:
    found = published(method, model)
    assert found is not None
    assert found.average_em == average_em
    assert "2503.09516" in found.source


def test_a_number_that_was_not_published_is_none() -> None:
    assert published("react", "Qwen2.5-7B") is None


def test_every_baseline_but_react_is_published() -> None:
    assert {p.method for p in PUBLISHED} & set(METHODS) == set(METHODS) - {"react"}


def test_no_number_is_there_twice() -> None:
    assert len({(p.method, p.model) for p in PUBLISHED}) == len(PUBLISHED) == 20


def test_the_numbers_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        PUBLISHED[0].average_em = 1.0  # type: ignore[misc]
