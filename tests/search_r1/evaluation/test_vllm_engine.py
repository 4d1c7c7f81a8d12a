import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from search_r1.evaluation import vllm_engine
from search_r1.evaluation.config import EvalConfig
from search_r1.evaluation.vllm_engine import VllmEngine
from search_r1.platform import cpu_environment
from search_r1.rollout import Generation


class AsyncLLM:
    """Notes what it is asked and says 7, 8."""

    def __init__(self) -> None:
        self.asked: list[tuple[Any, Any]] = []

    async def generate(self, prompt: Any, sampling: Any, request_id: str) -> AsyncIterator[Any]:
        self.asked.append((prompt, sampling))
        completion = SimpleNamespace(token_ids=(7, 8), finish_reason="stop")
        yield SimpleNamespace(outputs=[completion])


@pytest.fixture
def llm(monkeypatch: pytest.MonkeyPatch) -> AsyncLLM:
    """Stands for the engine, and for what of vLLM's parameters is named."""
    kinds = SimpleNamespace(FINAL_ONLY="final only")
    module: Any = SimpleNamespace(SamplingParams=SimpleNamespace, RequestOutputKind=kinds)
    monkeypatch.setitem(sys.modules, "vllm.sampling_params", module)
    return AsyncLLM()


def ask(llm: AsyncLLM, ids: list[int], seed: int = 0, stop: tuple[str, ...] = ("</a>",)) -> Any:
    engine = VllmEngine(llm, temperature=1.0, seed=seed)
    asyncio.run(engine.until(stop)(ids, 50))  # type: ignore[arg-type] # a coroutine
    return llm.asked[-1][1]


def test_ids_go_in_and_out(llm: AsyncLLM) -> None:
    generate = VllmEngine(llm, 0.0, 0).until(["</search>"])
    said = asyncio.run(generate([1, 2], 9))  # type: ignore[arg-type] # a coroutine
    assert said == Generation([7, 8], finish="stop")
    [(prompt, sampling)] = llm.asked
    assert prompt == {"prompt_token_ids": [1, 2]}
    assert (sampling.max_tokens, sampling.temperature) == (9, 0.0)
    assert (sampling.stop, sampling.include_stop_str_in_output) == (["</search>"], True)
    assert sampling.output_kind == "final only"


def test_without_stop_strings_only_the_models_own_end_stops(llm: AsyncLLM) -> None:
    assert (ask(llm, [1], stop=()).stop, llm.asked[-1][1].include_stop_str_in_output) == ([], False)


def test_a_turn_has_the_same_seed_each_time_and_no_other_turn_has_it(llm: AsyncLLM) -> None:
    assert ask(llm, [1, 2]).seed == ask(llm, [1, 2]).seed
    assert VllmEngine(llm, 1.0, 0).with_seed(5)._seed == 5
    seeds = {ask(llm, ids, seed).seed for ids in ([1, 2], [2, 1], [1]) for seed in (0, 1)}
    assert len(seeds) == 6


@pytest.mark.parametrize("gpu", [True, False])
def test_the_cpu_environment_is_for_machines_without_a_gpu(
    config: Callable[..., EvalConfig], monkeypatch: pytest.MonkeyPatch, gpu: bool
) -> None:
    monkeypatch.setattr(vllm_engine, "has_gpu", lambda: gpu)
    environment: dict[str, str] = {"OMP_NUM_THREADS": "1"}
    monkeypatch.setattr(os, "environ", environment)
    vllm_engine._set_environment(config(kv_cache_gib=3))
    assert environment["VLLM_LOGGING_STREAM"] == "ext://sys.stderr"
    assert environment["OMP_NUM_THREADS"] == "1"
    assert environment.get("VLLM_CPU_KVCACHE_SPACE") == (None if gpu else "3")
    assert not set(environment) & {name for name in cpu_environment(1) if name[:5] == "VERL_"}


@pytest.mark.slow
def test_the_real_engine_stops_behind_a_stop_string_and_keeps_it(tmp_path: Path) -> None:
    program = Path(__file__).with_name("vllm_program.py")
    done = subprocess.run(
        [sys.executable, program, tmp_path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["stop"] in said["text"]
    assert said["finish"] == "stop"
    assert len(said["stopped"]) <= 6
    assert said["whole"][: len(said["stopped"])] == said["stopped"]
    # Asked together, rounding may choose other words than alone, but each gets its own answer.
    assert [len(ids) for ids in said["again"]] == [16] * 3
    # More prompts than one step of the engine holds, each with a seed: read in parts, they end it.
    assert [1 <= len(ids) <= 4 for ids in said["sampled"]] == [True] * 12
