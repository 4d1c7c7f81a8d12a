from dataclasses import FrozenInstanceError

import pytest

from search_r1.baselines import METHODS
from search_r1.baselines.published import BASES, PUBLISHED, SETS, Published, published


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
        ("sft", "Qwen2.5-7B", 0.207),
        ("r1", "Qwen2.5-7B", 0.276),
        ("rejection_sampling", "Qwen2.5-7B", 0.348),
        ("search_r1_ppo_without_mask", "Qwen2.5-7B", 0.343),
        ("search_r1_ppo_without_mask", "Qwen2.5-3B", 0.262),
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
    assert len({(p.method, p.model) for p in PUBLISHED}) == len(PUBLISHED) == 33


def test_the_numbers_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        PUBLISHED[0].average_em = 1.0  # type: ignore[misc]


@pytest.mark.parametrize(
    "row", [p for p in PUBLISHED if p.set_em], ids=lambda row: f"{row.method}-{row.model}"
)
def test_the_mean_of_the_sets_is_the_printed_average(row: Published) -> None:
    assert row.set_em is not None
    assert len(row.set_em) == len(SETS) == 7
    assert abs(sum(row.set_em) / 7 - row.average_em) <= 0.0005 + 1e-9


@pytest.mark.parametrize("base", BASES)
def test_the_main_table_is_whole_but_for_what_does_not_agree(base: str) -> None:
    rows = {(p.method, p.model): p for p in PUBLISHED if p.model.startswith(base)}
    trained = ("r1", "search_r1_ppo", "search_r1_grpo")
    others = ("direct", "cot", "ircot", "search_o1", "rag", "sft", "rejection_sampling")
    table = [(m, base) for m in others + trained] + [(m, f"{base}-Instruct") for m in trained]
    unknown = {key for key in table if rows[key].set_em is None}
    assert unknown == ({("ircot", "Qwen2.5-7B")} if base == "Qwen2.5-7B" else set())


def test_a_number_of_a_set() -> None:
    found = published("search_r1_ppo", "Qwen2.5-7B")
    assert found is not None
    assert (found.em("nq"), found.em("bamboogle"), found.em("world")) == (0.480, 0.432, None)


def test_the_average_is_over_the_sets_that_are_asked_for() -> None:
    whole, no_sets = published("rag", "Qwen2.5-7B"), published("ircot", "Qwen2.5-7B")
    assert whole is not None
    assert no_sets is not None
    assert (whole.average(SETS), no_sets.average(SETS)) == (0.304, 0.239)
    assert whole.average(["nq", "popqa"]) == pytest.approx(0.3705)
    assert whole.average(["nq", "world"]) is whole.average([]) is None
    assert no_sets.average(["nq"]) is None
