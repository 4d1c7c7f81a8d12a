"""The types of index: what each stores, what it is built with, and what a search may choose."""

from enum import StrEnum
from typing import Final, Self

from pydantic import BaseModel, ConfigDict, Field

_LISTS_PER_ROOT: Final = 4
"""Inverted lists for each square root of the rows, as the FAISS wiki advises below 10^7 rows."""
_LEAST_ROWS_A_LIST: Final = 39
"""FAISS warns when k-means has fewer training rows for a centroid."""
_TRAIN_ROWS_A_LIST: Final = 48
_LEAST_TRAIN_ROWS: Final = 65_536
_PROBED_SHARE: Final = 1 / 8
"""Finds 0.95 of the best 3 for real questions on 13,153 passages in 256 lists; 1/32 finds 0.81."""
_LEAST_PROBED: Final = 64


class IndexType(StrEnum):
    """How the passages are found; the names are those of `search-r1 prepare index --type`."""

    FLAT = "flat"
    FLAT_FP16 = "flat-fp16"
    FLAT_SQ8 = "flat-sq8"
    IVF_FLAT = "ivf-flat"
    IVF_SQ8 = "ivf-sq8"
    IVF_PQ = "ivf-pq"
    IVF_RABITQ = "ivf-rabitq"
    HNSW = "hnsw"
    HNSW_SQ8 = "hnsw-sq8"
    BM25 = "bm25"

    @property
    def is_dense(self) -> bool:
        """Whether it searches the vectors of an encoder."""
        return self is not IndexType.BM25

    @property
    def has_lists(self) -> bool:
        """Whether rows lie in inverted lists, of which a search probes some."""
        return self.startswith("ivf-")

    @property
    def has_graph(self) -> bool:
        """Whether a search walks a graph of neighbours."""
        return self.startswith("hnsw")

    @property
    def re_ranks(self) -> bool:
        """Whether its scores are coarse, so that candidates are scored again exactly."""
        return self in (IndexType.IVF_PQ, IndexType.IVF_RABITQ)

    @property
    def keeps_vectors(self) -> bool:
        """Whether half-precision vectors lie beside it: to re-rank, or to build another type."""
        return self.has_lists

    @property
    def is_trained(self) -> bool:
        """Whether it learns from a sample of the vectors before any is added."""
        return self.has_lists or self.endswith("sq8")


class BuildParameters(BaseModel):
    """What an index was built with; None where the type has no such thing."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    lists: int | None = Field(default=None, ge=1)
    """Inverted lists (FAISS: nlist)."""
    code_bytes: int | None = Field(default=None, ge=1)
    """Bytes of a product quantiser's code (FAISS: M of 8 bits)."""
    links: int | None = Field(default=None, ge=2)
    """Neighbours of a row in the graph (FAISS: M); the lowest level has twice as many."""
    ef_construction: int | None = Field(default=None, ge=1)
    """Candidates looked at while a row is linked."""
    train_rows: int | None = Field(default=None, ge=1)
    """Vectors in the training sample."""
    seed: int | None = None
    """Of the sample, of k-means and of the graph's levels."""
    k1: float | None = Field(default=None, ge=0)
    """BM25: how soon a repeated word stops to count."""
    b: float | None = Field(default=None, ge=0, le=1)
    """BM25: how much the length of a passage counts."""


class SearchParameters(BaseModel):
    """What a search may choose; None where the type has no such choice."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    nprobe: int | None = Field(default=None, ge=1)
    """Inverted lists that a query looks through."""
    ef_search: int | None = Field(default=None, ge=1)
    """Candidates that a walk of the graph keeps."""
    candidates: int | None = Field(default=None, ge=1)
    """Rows of a query that are scored again by their exact vectors."""

    def override(self, nprobe: int | None, ef_search: int | None, candidates: int | None) -> Self:
        """Replace what is given.

        Raises:
            ValueError: Something is given that the type does not have.
        """
        given = {"nprobe": nprobe, "ef_search": ef_search, "candidates": candidates}
        given = {name: value for name, value in given.items() if value is not None}
        for name in given:
            if getattr(self, name) is None:
                flag = name.replace("_", "-")
                raise ValueError(f"--{flag}: this type of index has no such choice; leave it out")
        return self.model_copy(update=given)


def default_lists(rows: int) -> int:
    """4 * sqrt(rows) lists, rounded to a power of 2, but none of fewer rows than k-means needs."""
    wanted = _power_of_two(_LISTS_PER_ROOT * rows**0.5)
    while wanted > 1 and wanted * _LEAST_ROWS_A_LIST > rows:
        wanted //= 2
    return wanted


def default_train_rows(lists: int | None, rows: int) -> int:
    """Rows enough for k-means over the lists and for a quantiser's tables."""
    return min(rows, max(_LEAST_TRAIN_ROWS, _TRAIN_ROWS_A_LIST * (lists or 1)))


def default_code_bytes(dimension: int) -> int:
    """The largest divisor of the dimension that gives 8 or more values to a byte."""
    return next(size for size in range(max(1, dimension // 8), 0, -1) if dimension % size == 0)


def build_parameters(
    type_: IndexType, rows: int, dimension: int | None, given: BuildParameters
) -> BuildParameters:
    """Fill in what is not given, by the number of rows and their dimension.

    Raises:
        ValueError: A parameter is given that the type does not have, or one that cannot work.
    """
    filled = _defaults(type_, rows, dimension, given)
    chosen = given.model_dump(exclude_none=True)
    for name in chosen.keys() - filled.keys():
        raise ValueError(f"--{name.replace('_', '-')}: '{type_}' has no such parameter")
    made = BuildParameters.model_validate(filled | chosen)
    _check(made, rows, dimension)
    return made


def _defaults(
    type_: IndexType, rows: int, dimension: int | None, given: BuildParameters
) -> dict[str, object]:
    if type_ is IndexType.BM25:
        return {"k1": 0.9, "b": 0.4}  # Pyserini's defaults
    values: dict[str, object] = {}
    lists = (given.lists or default_lists(rows)) if type_.has_lists else None
    if lists is not None:
        values["lists"] = lists
    if type_ is IndexType.IVF_PQ:
        values["code_bytes"] = default_code_bytes(dimension or 1)
    if type_.has_graph:
        values |= {"links": 32, "ef_construction": 80}
    if type_.is_trained:
        values["train_rows"] = default_train_rows(lists, rows)
    if type_.is_trained or type_.has_graph:
        values["seed"] = 0
    return values


def _check(made: BuildParameters, rows: int, dimension: int | None) -> None:
    if made.code_bytes and dimension and dimension % made.code_bytes:
        raise ValueError(f"--code-bytes: {made.code_bytes} does not divide dimension {dimension}")
    if made.lists and made.lists > min(rows, made.train_rows or rows):
        raise ValueError(
            f"--lists: {made.lists} lists need at least as many training rows, of which there are "
            f"{min(rows, made.train_rows or rows)}; give fewer lists or more --train-rows"
        )


def search_parameters(type_: IndexType, made: BuildParameters) -> SearchParameters:
    """The search that a type gets when nothing else is asked for."""
    lists = made.lists
    return SearchParameters(
        nprobe=min(lists, max(_LEAST_PROBED, round(lists * _PROBED_SHARE))) if lists else None,
        ef_search=128 if type_.has_graph else None,
        candidates=100 if type_.re_ranks else None,
    )


def _power_of_two(value: float) -> int:
    power = 1
    while power * 2**0.5 < value:
        power *= 2
    return power
