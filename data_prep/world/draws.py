"""Seeded draws that are pure functions of their keys.

Nothing is kept between draws, so any fact of a world can be derived on its own, in any order, on
any platform: the memory a world needs does not grow with its size.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

T = TypeVar("T")

_MASK = (1 << 64) - 1
_ROUNDS = 4


def mix(value: int) -> int:
    """The output function of the splitmix64 generator: a bijection of 64-bit integers."""
    value = (value + 0x9E3779B97F4A7C15) & _MASK
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


@lru_cache(maxsize=1024)
def _stream_start(seed: int, stream: str) -> int:
    return mix(mix(seed) ^ zlib.crc32(stream.encode()))


@dataclass(frozen=True, slots=True)
class Draws:
    """All draws of one seed. A `stream` names what is drawn, `keys` for whom."""

    seed: int

    def bits(self, stream: str, *keys: int) -> int:
        """64 uniform bits for the given stream and keys."""
        state = _stream_start(self.seed, stream)
        for key in keys:
            state = mix(state ^ key)
        return state

    def below(self, bound: int, stream: str, *keys: int) -> int:
        """A number from 0 to `bound` - 1."""
        return self.bits(stream, *keys) % bound

    def chance(self, probability: float, stream: str, *keys: int) -> bool:
        """True with the given probability, to within one in a million."""
        return self.below(1_000_000, stream, *keys) < probability * 1_000_000

    def pick(self, options: Sequence[T], stream: str, *keys: int) -> T:
        """One of `options`."""
        return options[self.below(len(options), stream, *keys)]

    def shuffled(self, items: Sequence[T], stream: str, *keys: int) -> list[T]:
        """The items in a drawn order."""
        order = sorted(range(len(items)), key=lambda i: self.bits(stream, *keys, i))
        return [items[i] for i in order]

    def permuted(self, index: int, size: int, stream: str) -> int:
        """Where a drawn permutation of range(`size`) sends `index`.

        A balanced Feistel network over the next power of four; values that fall outside the range
        are sent through again, which keeps it a permutation.
        """
        half_bits = max(1, ((size - 1).bit_length() + 1) // 2)
        half_mask = (1 << half_bits) - 1
        start = _stream_start(self.seed, stream)
        while True:
            left, right = index >> half_bits, index & half_mask
            for round_number in range(_ROUNDS):
                left, right = right, left ^ (mix(start + round_number ^ right) & half_mask)
            index = left << half_bits | right
            if index < size:
                return index
