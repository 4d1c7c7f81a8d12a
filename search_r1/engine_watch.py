"""Ends verl's server of an engine whose process died; `search_r1.worker_watch` then ends the run.

The server, a Ray actor, outlives its engine, a process that vLLM started. verl 0.9.1 sends new
weights to the engine over a socket and waits for its reply without a limit
(workers/rollout/vllm_rollout/bucketed_weight_transfer.py), so the run would wait for ever.
"""

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Any, Final

import psutil

# Below verl's logger, which verl shields from what other libraries do to the root logger.
logger = logging.getLogger("verl.search_r1.engine_watch")

POLL_SECONDS: Final = 2.0

_TITLE: Final = "VLLM::"
"""How vLLM calls its processes."""


class EngineWatch:
    """A mixin for the trainers of verl's registry: each engine's server dies with its engine."""

    llm_server_manager: Any

    def fit(self, agent_loop_manager: Any) -> None:
        """As verl's, with the engines watched."""
        import ray

        replicas = self.llm_server_manager.get_replicas()
        servers = [server for replica in replicas for server in replica.servers]
        ray.get([server.__ray_call__.remote(die_with_engine) for server in servers])
        super().fit(agent_loop_manager)  # type: ignore[misc]


def die_with_engine(_server: Any) -> None:
    """In the process of a server: watch its engine until one of the two ends."""
    threading.Thread(target=watch, args=(_die,), name="engine-watch", daemon=True).start()


def watch(lost: Callable[[str], None], poll_s: float = POLL_SECONDS) -> None:
    """Wait until a process of vLLM that this one started is gone, and tell `lost` its name."""
    here, known = psutil.Process(), dict[int, str]()
    while True:
        alive = _engines(here)
        if gone := known.keys() - alive.keys():
            lost(", ".join(f"{known[pid]}, process {pid}" for pid in sorted(gone)))
            return
        known = alive
        time.sleep(poll_s)


def _engines(server: psutil.Process) -> dict[int, str]:
    titles = {child.pid: _title(child) for child in server.children()}
    return {pid: title for pid, title in titles.items() if title.startswith(_TITLE)}


def _title(process: psutil.Process) -> str:
    """Empty for one that has ended."""
    try:
        return " ".join(process.cmdline()).strip()
    except psutil.Error:
        return ""


def _die(name: str) -> None:
    logger.error("%s died; so does its server", name)
    os.kill(os.getpid(), signal.SIGKILL)
