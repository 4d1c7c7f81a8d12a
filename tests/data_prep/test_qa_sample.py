from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_prep.qa_sample import stratified
from data_prep.questions import Question

SETS = st.lists(st.integers(1, 30), min_size=1, max_size=7)


def made(sizes: list[int]) -> list[list[Question]]:
    return [
        [Question(f"s{place}/{n}", "who?", ("A",), f"s{place}") for n in range(size)]
        for place, size in enumerate(sizes)
    ]


@pytest.mark.parametrize(
    ("sizes", "total", "shares"),
    [
        ([100, 100, 100], 30, [10, 10, 10]),
        ([100, 5, 100], 45, [20, 5, 20]),
        ([9, 9, 9], 11, [3, 4, 4]),
        ([3, 1, 2], 6, [3, 1, 2]),
    ],
)
def test_sets_give_the_same_number_where_they_have_it(
    sizes: list[int], total: int, shares: list[int]
) -> None:
    assert [len(some) for some in stratified(made(sizes), total, seed=1)] == shares


@given(SETS, st.data(), st.integers(0, 99), st.randoms())
def test_a_sample_depends_on_seed_and_ids_only(
    sizes: list[int], data: st.DataObject, seed: int, random: Random
) -> None:
    total = data.draw(st.integers(len(sizes), sum(sizes)))
    sets = made(sizes)
    sample = stratified(sets, total, seed)
    assert sum(map(len, sample)) == total
    for questions in sets:
        random.shuffle(questions)
    assert stratified(sets, total, seed) == sample


@given(SETS, st.data())
def test_a_larger_sample_begins_with_the_smaller(sizes: list[int], data: st.DataObject) -> None:
    total = data.draw(st.integers(len(sizes), sum(sizes)))
    smaller = data.draw(st.integers(len(sizes), total))
    pairs = zip(stratified(made(sizes), smaller, 3), stratified(made(sizes), total, 3), strict=True)
    assert all(few == many[: len(few)] for few, many in pairs)


def test_another_seed_takes_others() -> None:
    assert stratified(made([50]), 10, 1) != stratified(made([50]), 10, 2)
