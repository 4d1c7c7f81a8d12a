"""What batching across requests brings: queries a second and latency, against real processes.

    python benchmarks/retrieval_load.py --output FOLDER
    python benchmarks/retrieval_load.py --output FOLDER --soak 1800 --workers 2

Single-query clients ask a real server over loopback HTTP. MiniLM really encodes their questions;
the index holds random unit vectors, whose exact search costs what that of any vectors does. There
are two baselines with the same encoder and index: `threads`, where each request is encoded in a
thread of its own (per_request_server.py), and `queue`, this server with --max-batch 1, which
answers requests one after another. The result cache is off and no question comes twice.
"""

import asyncio
import json
import os
import statistics
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import psutil
import typer
from http_load import Load, questions
from rich.console import Console
from rich.table import Table
from serving import Server, serving

from retrieval_server.encoder import PRESETS, EncoderSettings, FloatArray
from retrieval_server.openmp import share_cores
from search_r1.files import write_lines

WARM_UP_SECONDS = 3.0
BATCHES = (16, 32, 64, 128, 256)
TOPK = 3
BATCHED = "batched"
_SPAWN = get_context("spawn")


@dataclass(frozen=True)
class Point:
    """One server under one load."""

    server: str
    clients: int
    queries_s: float
    p50_ms: float
    p99_ms: float
    errors: int
    server_ms: float
    """Processor time of the server a request: says more than queries/s beside other jobs."""
    client_ms: float
    """Processor time of the load generator a request."""


class RandomVectors:
    """Unit vectors at random for passages; for the first passage, MiniLM's, which is checked."""

    def __init__(self, first: FloatArray) -> None:
        self._first: FloatArray | None = first
        self._random = np.random.default_rng(0)
        self.dimension = len(first)

    def encode_passages(self, passages: Sequence[str]) -> FloatArray:
        """Vectors `[len(passages), dimension]`."""
        shape = (len(passages), self.dimension)
        vectors = self._random.standard_normal(shape, dtype=np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        if self._first is not None:
            vectors[0], self._first = self._first, None
        return vectors

    encode_queries = encode_passages


def passage(number: int) -> str:
    """About 100 words, as in the Wikipedia dump."""
    words = " ".join(islice(questions(number), 9))
    return f'"Article {number}"\n{words}.'


def make_index(folder: Path, rows: int) -> None:
    """Write an index folder of so many passages, unless it is there."""
    from data_prep.index import build_index
    from retrieval_server.sentence_encoder import load_encoder

    if (folder / "manifest.json").is_file():
        return
    corpus = folder.with_suffix(".jsonl")
    rows_json = (json.dumps({"id": str(n), "contents": passage(n)}) for n in range(rows))
    write_lines(corpus, rows_json)

    def load(settings: EncoderSettings) -> RandomVectors:
        return RandomVectors(load_encoder(settings).encode_passages([passage(0)])[0])

    build_index(corpus, folder, PRESETS["minilm"], load=load)
    corpus.unlink()


def engine_best(index: Path, seconds: float, dtype: str) -> dict[int, float]:
    """Queries a second of encode, search and fetch without a server, by batch size."""
    from retrieval_server.engines.assemble import load_service
    from retrieval_server.settings import Settings

    settings = Settings.model_validate({"index": index, "dtype": dtype})
    service = load_service(settings, lambda *_: None)
    asked = questions(seed=-1)
    rates = {}
    for size in BATCHES:
        service.search(list(islice(asked, size)), TOPK)
        begin, done = time.perf_counter(), 0
        while time.perf_counter() - begin < seconds:
            service.search(list(islice(asked, size)), TOPK)
            done += size
        rates[size] = done / (time.perf_counter() - begin)
    return rates


def in_own_process(function: Any, *arguments: object) -> Any:  # noqa: ANN401 - its own result
    """Call the function in a new process, whose libraries read the environment anew."""
    with _SPAWN.Pool(1) as pool:
        return pool.apply(function, arguments)


def our_server(threads: int, *flags: object) -> list[str]:
    """The words that start the real server, but for index, port and dtype."""
    words = ["-m", "retrieval_server", "--cache-size", 0, "--threads", threads, *flags]
    return [str(word) for word in words]


def server_on(index: Path, dtype: str, words: Sequence[str]) -> AbstractContextManager[Server]:
    """A server that these words of Python start, ready; it ends with the block."""
    return serving([*words, "--index", index, "--dtype", dtype])


def processor_seconds(parent: int) -> float:
    """What a process and those it started have computed so far."""
    root = psutil.Process(parent)
    times = [one.cpu_times() for one in (root, *root.children(recursive=True))]
    return sum(time.user + time.system for time in times)


async def measure(name: str, port: int, pid: int, clients: int, seconds: float) -> Point:
    """Load a server and time its answers after a warm-up."""
    load = Load(port, seed=clients)
    await load.start(clients)
    await asyncio.sleep(WARM_UP_SECONDS)
    load.tally.seconds.clear()
    begin, cpu, server = time.perf_counter(), time.process_time(), processor_seconds(pid)
    await asyncio.sleep(seconds)
    answered = sorted(load.tally.seconds)
    elapsed, cpu = time.perf_counter() - begin, time.process_time() - cpu
    server = processor_seconds(pid) - server
    await load.stop()
    return Point(
        server=name,
        clients=clients,
        queries_s=len(answered) / elapsed,
        p50_ms=1000 * statistics.median(answered),
        p99_ms=1000 * answered[int(0.99 * len(answered))],
        errors=sum(load.tally.errors.values()) + len(load.tally.lost),
        server_ms=1000 * server / len(answered),
        client_ms=1000 * cpu / len(answered),
    )


def compare(
    index: Path, clients: Sequence[int], seconds: float, threads: int, dtype: str
) -> dict[str, Any]:
    """Measure the baselines and the server, and the engine alone before and after them."""
    console = Console(stderr=True)
    engine = [in_own_process(engine_best, index, seconds / len(BATCHES), dtype)]
    console.print(f"engine alone: {max(engine[0].values()):.0f} queries/s")
    points: list[Point] = []
    servers = {
        "threads": [str(Path(__file__).with_name("per_request_server.py"))],
        "queue": our_server(threads, "--max-batch", 1),
        BATCHED: our_server(threads),
    }
    for name, words in servers.items():
        with server_on(index, dtype, words) as server:
            place = server.port, server.process.pid
            for count in clients:
                points.append(asyncio.run(measure(name, *place, count, seconds)))
                console.print(str(points[-1]))
    engine.append(in_own_process(engine_best, index, seconds / len(BATCHES), dtype))
    return {"engine": engine, "points": [asdict(point) for point in points]}


def verdict(result: dict[str, Any]) -> dict[str, float]:
    """The ratios that matter, each of numbers of this run."""
    at = {(point["server"], point["clients"]): point for point in result["points"]}
    best = statistics.fmean(max(rates.values()) for rates in result["engine"])
    ratios = {}
    for (name, count), alone in at.items():
        batched = at[BATCHED, count]
        if name == BATCHED:
            ratio = batched["queries_s"] / best
            ratios[f"queries/s, {BATCHED} / engine's best, {count} clients"] = ratio
            continue
        pair = f"{BATCHED} / {name}, {count} clients"
        ratios[f"queries/s, {pair}"] = batched["queries_s"] / alone["queries_s"]
        ratios[f"processor time, {pair}"] = batched["server_ms"] / alone["server_ms"]
        ratios[f"median latency, {pair}"] = batched["p50_ms"] / alone["p50_ms"]
    return ratios


def markdown(settings: dict[str, Any], result: dict[str, Any]) -> list[str]:
    """The numbers as tables."""
    lines = [f"Settings: {json.dumps(settings)}", ""]
    columns = list(Point.__dataclass_fields__)
    lines += ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for point in result["points"]:
        cells = [f"{v:.2f}" if isinstance(v, float) else str(v) for v in point.values()]
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", "| engine alone, batch | " + " | ".join(map(str, BATCHES)) + " |"]
    lines.append("|" + "---|" * (len(BATCHES) + 1))
    for rates in result["engine"]:
        lines.append("| queries/s | " + " | ".join(f"{rates[s]:.0f}" for s in BATCHES) + " |")
    lines += ["", "| ratio | value |", "|---|---|"]
    return lines + [f"| {name} | {value:.2f} |" for name, value in verdict(result).items()]


def main(
    output: Annotated[Path, typer.Option(help="Folder for the index, JSON and markdown.")],
    passages: Annotated[int, typer.Option(help="Rows of the index.")] = 100_000,
    clients: Annotated[str, typer.Option(help="Concurrent clients.")] = "1,16,64,256",
    seconds: Annotated[float, typer.Option(help="Of each measurement.")] = 30.0,
    threads: Annotated[int, typer.Option(help="Of encoder and index; 0: all cores.")] = 0,
    dtype: Annotated[str, typer.Option(help="Of the encoder's weights.")] = "float32",
    soak: Annotated[float, typer.Option(help="Instead, full load for so many seconds.")] = 0.0,
    workers: Annotated[int, typer.Option(help="Of the soaked server.")] = 2,
    kill_every: Annotated[float, typer.Option(help="Seconds between kills of a worker.")] = 300.0,
) -> None:
    """Measure and print; with --soak, watch memory and kill workers under full load."""
    share_cores(threads)
    output.mkdir(parents=True, exist_ok=True)
    index = output / f"index-{passages}"
    in_own_process(make_index, index, passages)
    settings = {"passages": passages, "threads": threads or len(os.sched_getaffinity(0))}
    settings |= {"cores": os.cpu_count() or 0, "date": time.strftime("%Y-%m-%d"), "dtype": dtype}
    if soak:
        from retrieval_soak import CLIENTS, run_soak, soak_markdown

        settings |= {"seconds": soak, "workers": workers, "kill_every": kill_every}
        settings |= {"clients": CLIENTS}
        threads = threads or max(1, settings["threads"] // workers)
        words = our_server(threads, "--workers", workers)
        with server_on(index, dtype, words) as server:
            place = server.port, server.process.pid
            result = asyncio.run(run_soak(*place, workers, soak, kill_every))
        name, lines = "soak", soak_markdown(settings, result)
    else:
        counts = [int(count) for count in clients.split(",")]
        settings |= {"seconds": seconds}
        result = compare(index, counts, seconds, threads, dtype)
        result["ratios"] = verdict(result)
        name, lines = "load", markdown(settings, result)
        table = Table("ratio", "value", title="of one run")
        for ratio, value in result["ratios"].items():
            table.add_row(ratio, f"{value:.2f}")
        Console().print(table)
    write_lines(output / f"{name}.json", [json.dumps({"settings": settings} | result, indent=1)])
    write_lines(output / f"{name}.md", lines)
    Console().print("\n".join(lines), markup=False)


if __name__ == "__main__":
    typer.run(main)
