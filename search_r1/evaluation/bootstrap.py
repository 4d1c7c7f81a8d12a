"""Percentile bootstrap intervals of means (Efron 1979), vectorised and seeded."""

import zlib
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

RESAMPLES: Final = 2_000
LEVEL: Final = 0.95
_CELLS: Final = 4_000_000
"""Random indices held at a time: 32 MB."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean and its interval."""

    mean: float
    low: float
    high: float

    def __format__(self, sign: str) -> str:
        """The three numbers; `sign` is that of a format specification, "+" or nothing."""
        mean, low, high = (f"{value:{sign}.3f}" for value in (self.mean, self.low, self.high))
        return f"{mean} [{low}, {high}]"

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval lies on one side of 0."""
        return self.low > 0 or self.high < 0


def draw_means(values: Array, seed: int, name: str, resamples: int = RESAMPLES) -> Array:
    """Means of samples with replacement, all columns of a sample from the same rows.

    Args:
        values: Shape (rows, columns), at least one row.
        seed: With `name`, the same draws each time, whatever else is drawn.
        name: Of the set that the rows are from.
        resamples: How many samples, each of as many rows as there are.

    Returns:
        Shape (resamples, columns).
    """
    generator = np.random.default_rng((seed, zlib.crc32(name.encode())))
    size, step = len(values), max(1, _CELLS // len(values))
    means = np.empty((resamples, values.shape[1]))
    for start in range(0, resamples, step):
        rows = generator.integers(0, size, (min(step, resamples - start), size))
        for column in range(values.shape[1]):
            means[start : start + step, column] = values[:, column][rows].mean(axis=1)
    return means


def estimate(mean: float, draws: Array) -> Estimate:
    """The mean with the interval in which `LEVEL` of its draws lie; `draws` has one axis."""
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(float(mean), float(low), float(high))
