"""Asks the real engine with and without a stop string; prints what it said, as JSON.

A program of its own, run by test_vllm_engine.py: vllm_program.py SCRATCH_FOLDER.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from data_prep.model import write_smollm2
from search_r1.evaluation.config import EvalConfig
from search_r1.evaluation.vllm_engine import VllmEngine, start_vllm
from search_r1.model_tokenizer import load_tokenizer
from search_r1.rollout import Generation
from search_r1.settings import SearchSettings
from search_r1.tokens import PlainTokenizer

LONG = 230
"""Tokens of a long prompt, of which `CROWD` at once do not fit into one step of the engine."""
CROWD = 12


async def ask(config: EvalConfig) -> dict[str, Any]:
    tokenizer = PlainTokenizer(load_tokenizer(config.model))
    prompt = tokenizer.encode("Monday, Tuesday, Wednesday, Thursday,")
    async with start_vllm(config) as engine:
        whole = (await engine.until([])(prompt, 16)).token_ids
        stop = tokenizer.decode(whole[4:6])
        stopped, *again = await asyncio.gather(
            engine.until([stop])(prompt, 16), *(engine.until([])(prompt, 16) for _ in range(3))
        )
        sampled = await sample_together(VllmEngine(engine._engine, 1.0, 0))
    return {
        "sampled": [one.token_ids for one in sampled],
        "stop": stop,
        "whole": whole,
        "stopped": stopped.token_ids,
        "text": tokenizer.decode(stopped.token_ids),
        "finish": stopped.finish,
        "again": [one.token_ids for one in again],
    }


async def sample_together(engine: VllmEngine) -> list[Generation]:
    """Seeded answers to prompts that begin differently, so that none is read from the cache."""
    prompts = [[1_000 + number] * LONG for number in range(CROWD)]
    return await asyncio.gather(*(engine.until([])(ids, 4) for ids in prompts))


def main() -> None:
    scratch = Path(sys.argv[1])
    config = EvalConfig(
        model=write_smollm2(scratch / "smollm2"),
        data=(),
        output=scratch,
        search=SearchSettings(
            turn_tokens=64, observation_tokens=64, sequence_tokens=256, max_response_length=256
        ),
        concurrency=16,
        kv_cache_gib=1,
    )
    sys.stdout.write(json.dumps(asyncio.run(ask(config))) + "\n")


# vLLM's processes import this file again.
if __name__ == "__main__":
    main()
