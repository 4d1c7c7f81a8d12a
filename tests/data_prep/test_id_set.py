from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from data_prep import id_set
from data_prep.id_set import IdSet


@given(st.lists(st.text(max_size=3)))
def test_it_knows_what_a_set_knows(ids: list[str]) -> None:
    seen, known = IdSet(), set[str]()
    for id_ in ids:
        assert seen.add(id_) == (id_ not in known)
        known.add(id_)
    assert len(seen) == len(known)


def test_it_grows_and_forgets_nothing() -> None:
    seen = IdSet()
    ids = [f"doc-{n}" for n in range(20_000)]
    assert all(seen.add(id_) for id_ in ids)
    assert not any(seen.add(id_) for id_ in ids)
    assert len(seen) == len(ids)


def test_it_takes_at_most_24_bytes_an_id() -> None:
    seen = IdSet()
    for n in range(10_000):
        seen.add(str(n))
        slots = seen._slots
        assert len(slots) == id_set._FIRST_SLOTS or len(slots) * slots.itemsize <= 24 * len(seen)


class _Zero:
    def digest(self) -> bytes:
        return bytes(8)


def test_a_hash_of_zero_is_no_free_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    def hash_to_zero(_: Iterable[int], digest_size: int) -> _Zero:
        return _Zero()

    monkeypatch.setattr(id_set, "blake2b", hash_to_zero)
    seen = IdSet()
    assert (seen.add("a"), seen.add("a")) == (True, False)
