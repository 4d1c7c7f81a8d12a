"""What an evaluation is: the words of `search-r1 eval`, checked when made."""

from dataclasses import dataclass, field, fields
from math import inf
from pathlib import Path
from typing import Any, Final

from search_r1.evaluation.budget_check import check_range, check_search
from search_r1.evaluation.json_files import read_object
from search_r1.evaluation.methods import DEFAULT_METHOD, find_method, searches
from search_r1.evaluation.model_source import ModelSource
from search_r1.retriever import RetrieverSettings
from search_r1.settings import SearchSettings
from search_r1.trajectory import Budgets

_MODEL_FIX: Final = "download the model again, or give another folder"
_RANGES: Final = {
    "concurrency": (1, inf),
    "tensor_parallel": (1, inf),
    "kv_cache_gib": (1, inf),
    "temperature": (0, 10),
    "seed": (0, 2**32 - 1),
}


@dataclass(frozen=True, kw_only=True)
class EvalConfig:
    """An evaluation.

    Raises:
        ValueError: a setting is out of range; the message names the field and the fix.
    """

    model: Path
    """A Hugging Face folder, a run or a checkpoint, see `search_r1.evaluation.model_source`."""
    data: tuple[Path, ...]
    """Question files, see `search_r1.evaluation.question_sets`."""
    output: Path
    """The folder of the results; one that exists is resumed."""
    searchable: bool = True
    """Whether `search.urls` name a server; without one, a method that searches fails."""
    method: str = DEFAULT_METHOD
    sample: int | None = None
    """Questions to draw, the same number from each set; None takes all."""
    seed: int = 0
    """Of the sample, of sampled tokens and of the intervals."""
    temperature: float = 0.0
    """0 is greedy decoding."""
    search: SearchSettings = field(default_factory=SearchSettings)
    concurrency: int = 64
    """Questions at a time."""
    tensor_parallel: int = 1
    """GPUs that share the model."""
    kv_cache_gib: int = 2
    """On a CPU: memory for vLLM's key-value cache."""

    def __post_init__(self) -> None:
        find_method(self.method)
        for name, (least, most) in _RANGES.items():
            check_range(name, getattr(self, name), least, most)
        check_search(self.search, searches=searches(self.method, self.search.max_searches))
        self._check_model()

    def _check_model(self) -> None:
        positions = _positions(ModelSource.find(self.model).folder)
        if positions and self.search.sequence_tokens > positions:
            raise ValueError(
                f"search.sequence_tokens: {self.search.sequence_tokens}, but {self.model} has "
                f"{positions} positions; give at most so many"
            )

    def settings(self) -> dict[str, Any]:
        """What decides the answers, besides files and versions, as JSON data."""
        budgets = {name: getattr(self.search, name) for name in _decisive()}
        sampling = {"temperature": self.temperature, "top_p": 1.0, "seed": self.seed}
        return {
            "method": self.method,
            "sample": self.sample,
            "sampling": sampling,
            "search": budgets,
        }

    def resources(self) -> dict[str, Any]:
        """What decides only how fast the answers come, as JSON data."""
        client = {name: getattr(self.search, name) for name in _client()}
        names = ("concurrency", "tensor_parallel", "kv_cache_gib")
        return {name: getattr(self, name) for name in names} | {"client": client}


def _positions(model: Path) -> int | None:
    path = model / "config.json"
    positions = read_object(path, _MODEL_FIX).get("max_position_embeddings")
    if positions is not None and not isinstance(positions, int):
        wrong = f"max_position_embeddings must be a whole number, not {positions!r}"
        raise ValueError(f"{path}: {wrong}; {_MODEL_FIX}")
    return positions


def _client() -> list[str]:
    return [field.name for field in fields(RetrieverSettings)]


def _decisive() -> list[str]:
    return [*(budget.name for budget in fields(Budgets)), "top_k"]
