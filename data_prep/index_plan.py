"""`search-r1 prepare index --plan`: what each type of index costs, before any work."""

import json
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from data_prep.console import say
from data_prep.index_corpus import corpus_lines
from data_prep.index_sizes import IndexSize, corpus_bytes, index_size
from retrieval_server.encoder import encoder_dimension
from retrieval_server.index_types import BuildParameters, IndexType, build_parameters

MEASURED: Final = "index_measured.json"
_GIB: Final = 1 << 30


def print_plan(
    corpus: Path | None,
    rows: int | None,
    dimension: int | None,
    encoder: str,
    given: BuildParameters,
) -> None:
    """Print the plan of every type.

    Raises:
        ValueError: Rows or dimension are neither given nor can be found.
    """
    if rows is None:
        rows = _count(corpus)
    if dimension is None:
        dimension = encoder_dimension(encoder)
    measured = json.loads((files("data_prep") / MEASURED).read_text())
    Console().print(plan_table(rows, dimension, given, measured))
    say(
        f"The passages take {_gib(corpus_bytes(rows))} GiB more on disk (100 words each). In "
        "memory: what searches touch; mapped files share it over processes. Recall@3 against "
        f"flat at {measured['rows']:,} made vectors of dimension {measured['dimension']}, "
        f"{measured['date']}: {measured['command']}"
    )


def plan_table(
    rows: int, dimension: int, given: BuildParameters, measured: dict[str, Any]
) -> Table:
    """A line for each type: GiB of disk, memory and GPU memory, parameters, measured recall."""
    table = Table(title=f"{rows:,} passages, dimension {dimension}; GiB")
    table.add_column("type")
    for name in ("disk", "in memory", "read on demand", "to build", "GPUs", "recall@3"):
        table.add_column(name, justify="right")
    table.add_column("parameters", overflow="fold")
    for type_ in IndexType:
        parameters = build_parameters(type_, rows, dimension, _own(given, type_, rows, dimension))
        size = index_size(type_, rows, dimension, parameters)
        recall = measured["types"].get(type_, {}).get("recall_at_3")
        table.add_row(
            str(type_),
            *_sizes(size),
            "-" if recall is None else f"{recall:.3f}",
            _words(parameters),
        )
    return table


def _own(given: BuildParameters, type_: IndexType, rows: int, dimension: int) -> BuildParameters:
    """What is given, as far as the type has it."""
    has = build_parameters(type_, rows, dimension, BuildParameters()).model_dump(exclude_none=True)
    return BuildParameters(
        **{k: v for k, v in given.model_dump(exclude_none=True).items() if k in has}
    )


def _sizes(size: IndexSize) -> Iterator[str]:
    parts = (size.disk, size.resident, size.on_demand, size.build, size.gpu)
    return (_gib(part) if part else "-" for part in parts)


def _gib(size: int) -> str:
    return f"{size / _GIB:,.1f}"


def _words(parameters: BuildParameters) -> str:
    given = parameters.model_dump(exclude_none=True)
    return ", ".join(f"{name.replace('_', '-')} {value:,}" for name, value in given.items())


def _count(corpus: Path | None) -> int:
    if corpus is None:
        raise ValueError("--plan: give --rows, or --corpus to count them")
    return sum(bool(line.strip()) for line in corpus_lines(corpus, lambda _: None))
