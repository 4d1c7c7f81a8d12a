"""Recall, memory, build time and speed of every type of index over the same made vectors.

    python benchmarks/index_recall.py run --folder FOLDER --rows 1000000 --output results.json

One run; recall@3 and speed are told against `flat` of that run; on a machine that does other
work too, processor time tells more than queries a second. Each type is built and then
searched in a process of its own, so that its memory is its own. A type that has been measured is
not measured again: a killed run goes on. FOLDER takes about 4 times the half-precision vectors.

`vector_sets.py` says how the vectors are made. `--index FOLDER --questions FILE` takes those of
real passages instead.
"""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import faiss
import numpy as np
import typer
from rich.console import Console
from vector_sets import MadeSet, RealSet, VectorSet, prepare

from data_prep.index_faiss import write_faiss
from data_prep.index_sizes import index_size
from retrieval_server.encoder import FloatArray
from retrieval_server.index import FaissIndex, RowArray, VectorIndex
from retrieval_server.index_rerank import ReRankedIndex, open_vectors
from retrieval_server.index_types import (
    BuildParameters,
    IndexType,
    SearchParameters,
    build_parameters,
    search_parameters,
)
from search_r1.files import atomic_path

BATCH = 64
"""Queries searched together, as the server's batcher does under load."""
TOP = 3
# Slow to build last: what there is can be read while a graph is made.
ORDER = [
    IndexType.FLAT,
    IndexType.IVF_RABITQ,
    IndexType.IVF_PQ,
    IndexType.IVF_SQ8,
    IndexType.IVF_FLAT,
    IndexType.FLAT_FP16,
    IndexType.FLAT_SQ8,
    IndexType.HNSW_SQ8,
    IndexType.HNSW,
]
PROBES = (32, 64, 128, 256, 512, 1024)
CANDIDATES = (30, 100, 200)
EF_SEARCH = (32, 64, 128, 256)

app = typer.Typer(add_completion=False, rich_markup_mode="markdown", help=__doc__)
say = Console(stderr=True).print


def filled(folder: Path, type_: IndexType) -> BuildParameters:
    """The parameters of a type: the defaults by rows."""
    rows, dimension = open_vectors(folder / "vectors.npy").shape
    return build_parameters(type_, rows, dimension, BuildParameters())


def searches(type_: IndexType, parameters: BuildParameters) -> Iterator[SearchParameters]:
    """The default first, then others around it."""
    default = search_parameters(type_, parameters)
    yield default
    probes = [n for n in PROBES if n <= (parameters.lists or 0)] or [None]
    candidates = CANDIDATES if type_.re_ranks else (None,)
    efs = EF_SEARCH if type_.has_graph else (None,)
    for nprobe, ef_search, count in product(probes, efs, candidates):
        choice = SearchParameters(nprobe=nprobe, ef_search=ef_search, candidates=count)
        if choice != default:
            yield choice


def with_search(index: FaissIndex, folder: Path, search: SearchParameters) -> VectorIndex:
    """The loaded index with another choice of search."""
    chosen = FaissIndex(index.faiss_index, search)
    if search.candidates is None:
        return chosen
    return ReRankedIndex(chosen, open_vectors(folder / "vectors.npy"), search.candidates)


def memory() -> dict[str, int]:
    """Bytes of this process in memory: its own, and of mapped files."""
    status = Path("/proc/self/status").read_text().splitlines()
    fields = dict(line.split(":", 1) for line in status)
    return {name: int(fields[name].split()[0]) << 10 for name in ("RssAnon", "RssFile")}


def search_all(index: VectorIndex, queries: FloatArray) -> tuple[RowArray, dict[str, float]]:
    """Rows of the best 3 of all queries, and what that took."""
    index.search(queries[:BATCH], TOP)  # warm up
    begin, cpu = time.perf_counter(), time.process_time()
    found = [index.search(queries[n : n + BATCH], TOP)[1] for n in range(0, len(queries), BATCH)]
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    speed = {
        "queries_per_second": len(queries) / seconds,
        "cpu_ms_per_query": 1000 * cpu / len(queries),
    }
    return np.concatenate(found), speed


def recall(found: RowArray, truth: RowArray) -> float:
    """Share of the true best 3 among those that were found."""
    hits = (found[:, :, None] == truth[:, None, :]).any(axis=1)
    return float(hits.mean())


@app.command()
def build(
    type_: Annotated[IndexType, typer.Argument(metavar="TYPE")],
    folder: Annotated[Path, typer.Option()],
) -> None:
    """Build one type in this process (used by `run`)."""
    for unfinished in folder.glob("checkpoint-*.faiss"):
        unfinished.unlink()  # the time of a build is that of a whole one
    begin, cpu = time.perf_counter(), time.process_time()
    write_faiss(
        open_vectors(folder / "vectors.npy"),
        type_,
        filled(folder, type_),
        folder / f"{type_}.faiss",
        lambda *_: None,
    )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    seconds = {"build_seconds": time.perf_counter() - begin, "build_cpu": time.process_time() - cpu}
    write(folder / f"{type_}.build.json", seconds | {"build_peak": peak})


@app.command()
def search(
    type_: Annotated[IndexType, typer.Argument(metavar="TYPE")],
    folder: Annotated[Path, typer.Option()],
) -> None:
    """Search one built type in this process, whole in memory (used by `run`)."""
    queries = np.load(folder / "queries.npy")
    parameters = filled(folder, type_)
    before = memory()
    index = FaissIndex.load(folder / f"{type_}.faiss", type_)
    measured = []
    for choice in searches(type_, parameters):
        found, speed = search_all(with_search(index, folder, choice), queries)
        if type_ is IndexType.FLAT:
            np.save(folder / "truth.npy", found)
        measured.append(
            choice.model_dump(exclude_none=True)
            | {"recall_at_3": recall(found, np.load(folder / "truth.npy"))}
            | speed
        )
        if len(measured) == 1:
            after = memory()
    write(
        folder / f"{type_}.search.json",
        {
            "memory": after["RssAnon"] - before["RssAnon"],
            "mapped": after["RssFile"] - before["RssFile"],
            "file": (folder / f"{type_}.faiss").stat().st_size,
            "parameters": parameters.model_dump(exclude_none=True),
            "searches": measured,
        },
    )


@app.command()
def run(
    folder: Annotated[Path, typer.Option(help="Where vectors, indexes and results are kept.")],
    output: Annotated[Path, typer.Option(help="JSON to write; a .md table comes beside it.")],
    rows: Annotated[int, typer.Option(help="Vectors.")] = 1_000_000,
    dimension: Annotated[int, typer.Option(help="Of the vectors.")] = 768,
    queries: Annotated[int, typer.Option(help="Queries.")] = 1_000,
    seed: Annotated[int, typer.Option(help="Of the vectors.")] = 0,
    index: Annotated[Path | None, typer.Option(help="Take the vectors of this index.")] = None,
    questions: Annotated[
        list[Path] | None, typer.Option(help="JSON lines with `question`, for --index.")
    ] = None,
    types: Annotated[
        list[IndexType] | None, typer.Option("--type", help="Only these; flat always.")
    ] = None,
    keep: Annotated[bool, typer.Option(help="Keep the index files once measured.")] = False,
    measured: Annotated[
        Path | None, typer.Option(help="Also write what `prepare index --plan` shows.")
    ] = None,
) -> None:
    """Make the vectors, measure every type, write the results."""
    vectors: VectorSet = MadeSet(rows, dimension, queries, seed)
    if index is not None:
        vectors = RealSet(index, questions or [])
    begin = time.perf_counter()
    prepare(folder, vectors)
    say(f"vectors: {time.perf_counter() - begin:.0f} s")
    wanted = [t for t in ORDER if t is IndexType.FLAT or not types or t in types]
    for type_ in wanted:
        measure(type_, folder, keep=keep)
    results = gather(folder, vectors)
    write(output, results)
    output.with_suffix(".md").write_text(table(results))
    if measured is not None:
        write(measured, for_the_plan(results))
    Console(soft_wrap=True).print(table(results))


def measure(type_: IndexType, folder: Path, *, keep: bool) -> None:
    """Build and search a type, each in a process of its own, as far as it is not done."""
    index = folder / f"{type_}.faiss"
    if not (folder / f"{type_}.search.json").exists():
        if not (index.exists() and (folder / f"{type_}.build.json").exists()):
            step(type_, folder, "build")
        step(type_, folder, "search")
    if not keep:
        index.unlink(missing_ok=True)


def step(type_: IndexType, folder: Path, command: str) -> None:
    """Run a command of this file for a type."""
    begin = time.perf_counter()
    line = [sys.executable, __file__, command, type_, "--folder", str(folder)]
    subprocess.run(line, check=True)  # noqa: S603 - this very file
    say(f"{type_}: {command} {time.perf_counter() - begin:.0f} s")


def gather(folder: Path, vectors: VectorSet) -> dict[str, Any]:
    """All results there are, with how they were made."""
    types: dict[str, Any] = {}
    for type_ in ORDER:
        if (folder / f"{type_}.search.json").exists():
            build_part = json.loads((folder / f"{type_}.build.json").read_text())
            types[type_] = build_part | json.loads((folder / f"{type_}.search.json").read_text())
    return {
        "command": f"python benchmarks/index_recall.py run {vectors.arguments()}",
        "date": datetime.now(UTC).date().isoformat(),
        "cores": os.cpu_count(),
        "faiss": faiss.__version__,
        "compiled_for": faiss.get_compile_options().strip(),
        **vectors.setting(),
        "types": types,
    }


def for_the_plan(results: dict[str, Any]) -> dict[str, Any]:
    """Recall of each type with its default search."""
    kept = ("rows", "dimension", "date", "command", "cores", "faiss")
    types = {
        name: found["searches"][0] | {"parameters": found["parameters"]}
        for name, found in results["types"].items()
    }
    return {name: results[name] for name in kept} | {"types": types}


_COLUMNS = (
    "type",
    "search",
    "recall@3",
    "queries/s",
    "CPU ms a query",
    "flat / it",
    "memory, GiB",
    "build, s",
    "in memory at 21 M, GiB",
)


def table(results: dict[str, Any]) -> str:
    """Markdown: a line for each type and choice of search; the first of a type is its default."""
    flat = results["types"][IndexType.FLAT]["searches"][0]["cpu_ms_per_query"]
    setting = (
        f"{results['rows']:,} vectors of dimension {results['dimension']}, {results['queries']:,} "
        f"queries in batches of {BATCH}, {results['cores']} cores, FAISS {results['faiss']} "
        f"({results['compiled_for']}), {results['date']}: `{results['command']}`"
    )
    lines = [
        setting,
        "",
        f"| {' | '.join(_COLUMNS)} |",
        f"|{'---|' * len(_COLUMNS)}",
    ]
    for name, found in results["types"].items():
        for number, one in enumerate(found["searches"]):
            lines.append(_line(name, found, one, flat, whole=number == 0))
    return "\n".join(lines) + "\n"


def _line(
    name: str, found: dict[str, Any], one: dict[str, Any], flat: float, *, whole: bool
) -> str:
    choice = ", ".join(f"{k} {v}" for k, v in one.items() if k in SearchParameters.model_fields)
    cpu = one["cpu_ms_per_query"]
    cells = [name, choice or "-", f"{one['recall_at_3']:.3f}"]
    cells += [f"{one['queries_per_second']:,.0f}", f"{cpu:.2f}", f"{flat / cpu:.1f}"]
    if whole:
        type_ = IndexType(name)
        at_21m = build_parameters(type_, 21_015_324, 768, BuildParameters())
        resident = index_size(type_, 21_015_324, 768, at_21m).resident
        cells += [f"{found['memory'] / 2**30:.2f}", f"{found['build_seconds']:.0f}"]
        cells.append(f"{resident / 2**30:.1f}")
    else:
        cells += ["", "", ""]
    return f"| {' | '.join(cells)} |"


def write(path: Path, content: dict[str, Any]) -> None:
    """Write JSON, whole or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    app()
