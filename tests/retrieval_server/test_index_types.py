"""Defaults by the number of rows, and what a search may choose."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrieval_server.index_types import (
    BuildParameters,
    IndexType,
    SearchParameters,
    build_parameters,
    default_code_bytes,
    default_lists,
    search_parameters,
)

WIKIPEDIA = 21_015_324


@pytest.mark.parametrize(
    ("rows", "lists"),
    # 4 * sqrt(rows) is 18,337, 4,000, 400 and 126; 39 rows for each list bind below.
    [(WIKIPEDIA, 16_384), (1_000_000, 4_096), (10_000, 256), (1_000, 16), (39, 1), (1, 1)],
)
def test_lists_by_rows(rows: int, lists: int) -> None:
    assert default_lists(rows) == lists


@given(st.integers(1, 10**8))
def test_every_list_has_rows_enough_to_be_learned(rows: int) -> None:
    lists = default_lists(rows)
    assert lists == 1 or 39 * lists <= rows
    assert lists & (lists - 1) == 0


@pytest.mark.parametrize(("dimension", "size"), [(768, 96), (384, 48), (100, 10), (7, 1)])
def test_a_code_has_eight_values_to_a_byte_or_more(dimension: int, size: int) -> None:
    assert default_code_bytes(dimension) == size
    assert dimension % size == 0


def test_what_is_given_replaces_the_default_and_what_depends_on_it() -> None:
    made = build_parameters(IndexType.IVF_FLAT, WIKIPEDIA, 768, BuildParameters(lists=4))
    assert made == BuildParameters(lists=4, train_rows=65_536, seed=0)
    assert search_parameters(IndexType.IVF_FLAT, made) == SearchParameters(nprobe=4)


def test_a_search_chooses_only_what_its_type_has() -> None:
    made = build_parameters(IndexType.IVF_RABITQ, WIKIPEDIA, 768, BuildParameters())
    search = search_parameters(IndexType.IVF_RABITQ, made)
    assert search.override(nprobe=9, ef_search=None, candidates=None).nprobe == 9
    with pytest.raises(ValueError, match="--ef-search: this type of index has no such choice"):
        search.override(nprobe=None, ef_search=9, candidates=None)
