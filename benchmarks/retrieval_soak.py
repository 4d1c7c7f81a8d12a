"""Full load for long: is memory flat, is anything lost but what a killed worker was answering?

Part of ``retrieval_load.py --soak SECONDS``.
"""

import asyncio
import json
import random
import time
from dataclasses import asdict, dataclass
from typing import Any

import httpx
import psutil
from http_load import Load
from scipy.stats import linregress

CLIENTS = 64
SAMPLE_SECONDS = 5.0
SETTLE_SECONDS = 60.0
"""Of a process's life before its memory is judged."""
_MIB = 2**20


@dataclass(frozen=True)
class Sample:
    """The memory of one process."""

    second: float
    pid: int
    age_s: float
    rss_mib: float
    own_mib: float
    """Without the pages of files, which the workers share."""


@dataclass(frozen=True)
class Kill:
    """One worker killed with SIGKILL."""

    second: float
    in_flight: int
    """Requests on the connections that it had taken."""
    lost: int
    """Of those sent before the kill."""
    lost_after: int
    """Sent later: into a new connection that the dying process still took, or to another worker."""
    whole_again_s: float


def sample(parent: int, second: float) -> list[Sample]:
    """The memory of the server's processes."""
    root = psutil.Process(parent)
    samples = []
    for process in (root, *root.children(recursive=True)):
        try:
            memory = process.memory_info()
            age = time.time() - process.create_time()
        except psutil.NoSuchProcess:
            continue
        own = memory.rss - memory.shared
        samples.append(Sample(second, process.pid, age, memory.rss / _MIB, own / _MIB))
    return samples


def workers_of(parent: int) -> list[psutil.Process]:
    """The processes that serve."""
    children = psutil.Process(parent).children()
    return [child for child in children if "spawn_main" in " ".join(child.cmdline())]


async def kill_one(load: Load, port: int, parent: int, workers: int, second: float) -> Kill:
    """Kill a worker; wait until all are ready again, and count what was lost."""
    victim = random.choice(workers_of(parent))
    ports = {link.raddr.port for link in victim.net_connections() if link.raddr}
    before = len(load.tally.lost)
    in_flight = sum(client.port in ports and client.sent_at > 0 for client in load.clients)
    begin = time.perf_counter()
    victim.kill()
    await asyncio.sleep(0.5)
    async with httpx.AsyncClient(timeout=60) as client:
        while True:
            try:
                health = (await client.get(f"http://127.0.0.1:{port}/health")).json()
            except httpx.TransportError:
                health = {}
            if health.get("workers", {}).get("ready") == workers:
                break
            await asyncio.sleep(0.25)
    sent = load.tally.lost[before:]
    after = sum(at > begin for at in sent)
    whole = time.perf_counter() - begin
    return Kill(second, in_flight, len(sent) - after, after, whole)


async def run_soak(
    port: int, parent: int, workers: int, seconds: float, kill_every: float
) -> dict[str, Any]:
    """Load the server, sample its memory, kill workers now and then."""
    load = Load(port, seed=0)
    await load.start(CLIENTS)
    begin = time.perf_counter()
    samples: list[Sample] = []
    kills: list[Kill] = []
    next_kill = kill_every or seconds
    while (second := time.perf_counter() - begin) < seconds:
        samples += sample(parent, second)
        if second >= next_kill and seconds - second > kill_every / 2:
            kills.append(await kill_one(load, port, parent, workers, second))
            next_kill = time.perf_counter() - begin + kill_every
        await asyncio.sleep(SAMPLE_SECONDS)
    await load.stop()
    return {
        "answered": len(load.tally.seconds),
        "queries_s": len(load.tally.seconds) / seconds,
        "errors": load.tally.errors,
        "lost": len(load.tally.lost),
        "kills": [asdict(kill) for kill in kills],
        "growth": [growth(samples, pid) for pid in sorted({s.pid for s in samples})],
        "samples": [asdict(one) for one in samples],
    }


def growth(samples: list[Sample], pid: int) -> dict[str, float]:
    """How one process's own memory grew, by a straight line through its settled samples."""
    settled = [s for s in samples if s.pid == pid and s.age_s > SETTLE_SECONDS]
    row = {"pid": pid, "samples": len(settled)}
    if len(settled) < 3:
        return row
    line = linregress([s.second for s in settled], [s.own_mib for s in settled])
    return row | {
        "first_mib": settled[0].own_mib,
        "last_mib": settled[-1].own_mib,
        "peak_rss_mib": max(s.rss_mib for s in settled),
        "mib_per_hour": 3600 * float(line.slope),
        "mib_per_hour_error": 3600 * float(line.stderr),
    }


def soak_markdown(settings: dict[str, Any], result: dict[str, Any]) -> list[str]:
    """The numbers as tables."""
    by_kills = sum(kill["lost"] + kill["lost_after"] for kill in result["kills"])
    counts = f"{result['answered']} answered, {result['queries_s']:.0f} queries/s"
    losses = f"lost {result['lost']}, of them by kills {by_kills}"
    lines = [f"Settings: {json.dumps(settings)}", ""]
    lines += [f"{counts}; errors {result['errors']}; {losses}", ""]
    for rows in (result["kills"], result["growth"]):
        columns = list(max(rows, key=len)) if rows else []
        lines += ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
        for row in rows:
            cells = [row.get(name, "-") for name in columns]
            shown = [f"{cell:.1f}" if isinstance(cell, float) else str(cell) for cell in cells]
            lines.append("| " + " | ".join(shown) + " |")
        lines.append("")
    return lines
