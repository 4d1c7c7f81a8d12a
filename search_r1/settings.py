"""The `search:` section of a config: every setting of the rollout, flat, checked when made."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from search_r1.retriever import RetrieverSettings
from search_r1.trajectory import Budgets

_MAY_BE_ZERO = {"max_searches", "answer_reserve_tokens", "backoff_seconds", "max_failure_rate"}


@dataclass(frozen=True, kw_only=True)
class SearchSettings(Budgets, RetrieverSettings):
    """Budgets of a trajectory, how to reach the retrieval server, and what to ask of it."""

    top_k: int = 3
    """Passages a search."""
    mask_retrieved: bool = True
    """Whether information blocks are masked out of every loss (paper, sections 3.1 and 5.4).

    False trains on them as if the model had written them, which the paper does for comparison.
    Messages of the system, such as that an action was invalid, were not retrieved: always masked.
    """

    @classmethod
    def from_mapping(cls, section: Mapping[str, Any]) -> Self:
        """Settings from a plain mapping; what it leaves out keeps its default.

        Raises:
            ValueError: a key is unknown, or a value is out of its range.
            TypeError: a value is of the wrong type.
        """
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(section) - known):
            raise ValueError(
                f"unknown settings search.{', search.'.join(unknown)}; "
                f"known are {', '.join(sorted(known))}"
            )
        values = dict(section)
        if isinstance(values.get("urls"), list):
            values["urls"] = tuple(values["urls"])
        return cls(**values)

    def __post_init__(self) -> None:
        for field in fields(self):
            self._check(field.name, getattr(self, field.name), field.default)
        if not all(url.startswith(("http://", "https://")) for url in self.urls):
            raise ValueError(f"search.urls must begin with http:// or https://, not {self.urls}")
        if self.max_failure_rate > 1:
            raise ValueError(f"search.max_failure_rate is a share, not {self.max_failure_rate}")
        if self.failure_min_calls > self.failure_window:
            raise ValueError("search.failure_min_calls must not be above search.failure_window")

    def _check(self, name: str, value: object, default: object) -> None:
        if isinstance(default, tuple):
            if not (isinstance(value, tuple) and value and all(isinstance(v, str) for v in value)):
                raise TypeError(f"search.{name} must be a list of strings, not {value!r}")
            return
        if isinstance(default, bool):
            if not isinstance(value, bool):
                raise TypeError(f"search.{name} must be true or false, not {value!r}")
            return
        wanted = int if isinstance(default, int) else int | float
        if isinstance(value, bool) or not isinstance(value, wanted):
            kind = "a whole number" if wanted is int else "a number"
            raise TypeError(f"search.{name} must be {kind}, not {value!r}")
        if value < 0 or (value == 0 and name not in _MAY_BE_ZERO):
            bound = "at least 0" if name in _MAY_BE_ZERO else "above 0"
            raise ValueError(f"search.{name} must be {bound}, not {value}")
