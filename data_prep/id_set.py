"""A set of ids that stays small for tens of millions of them."""

from array import array
from hashlib import blake2b

_FIRST_SLOTS = 1 << 10


class IdSet:
    """Remembers ids by 8 bytes of their hash, in a table that is a third to two thirds full.

    12 to 24 bytes an id: 268 MB for wiki-18's 21 million, and half as much again while the table
    grows, where a set of texts would take 2 GB. Two different ids that share a hash would count
    as one; among 21 million, the chance that any two do is one in 80,000.
    """

    def __init__(self) -> None:
        self._slots = _table(_FIRST_SLOTS)
        self._used = 0

    def __len__(self) -> int:
        return self._used

    def add(self, id_: str) -> bool:
        """Remember an id; False when it was there already."""
        if 3 * self._used >= 2 * len(self._slots):
            self._grow()
        digest = blake2b(id_.encode(), digest_size=8).digest()
        # 0 marks a free slot.
        return self._put(int.from_bytes(digest) or 1)

    def _put(self, hash_: int) -> bool:
        slots, last = self._slots, len(self._slots) - 1
        place = hash_ & last
        while slots[place]:
            if slots[place] == hash_:
                return False
            place = (place + 1) & last
        slots[place] = hash_
        self._used += 1
        return True

    def _grow(self) -> None:
        old, self._slots, self._used = self._slots, _table(2 * len(self._slots)), 0
        for hash_ in old:
            if hash_:
                self._put(hash_)


def _table(slots: int) -> "array[int]":
    """Free slots; their number must be a power of two."""
    return array("Q", [0]) * slots
