"""vLLM's own asynchronous engine as `search_r1.evaluation.method.Engine`: ids in, ids out.

Where there is no GPU it needs what vLLM's CPU build needs, and nothing of verl.
"""

import os
import zlib
from array import array
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self
from uuid import uuid4

from search_r1.evaluation.config import EvalConfig
from search_r1.merge import has_gpu
from search_r1.platform import cpu_environment
from search_r1.platform.precision import cpu_dtype
from search_r1.rollout import Generate, Generation


class VllmEngine:
    """Serves any number of questions at once, each turn with a seed of its own.

    Args:
        engine: vLLM's `AsyncLLM`.
        temperature: 0 is greedy decoding.
        seed: With a turn's ids it decides what is sampled, so a resumed run samples the same.
    """

    def __init__(self, engine: Any, temperature: float, seed: int) -> None:  # noqa: ANN401 - not typed
        self._engine = engine
        self._temperature = temperature
        self._seed = seed

    def with_seed(self, seed: int) -> Self:
        """The same engine, sampling with another seed."""
        return type(self)(self._engine, self._temperature, seed)

    def until(self, stop: Sequence[str]) -> Generate:
        """The engine, stopping behind the first of `stop`, which it keeps."""
        stops = list(stop)

        async def generate(ids: list[int], max_tokens: int) -> Generation:
            return await self._generate(ids, max_tokens, stops)

        return generate

    async def _generate(self, ids: list[int], max_tokens: int, stop: list[str]) -> Generation:
        from vllm.sampling_params import RequestOutputKind, SamplingParams

        sampling = SamplingParams(
            max_tokens=max_tokens,
            temperature=self._temperature,
            seed=zlib.crc32(array("q", ids).tobytes(), self._seed),
            stop=stop,
            include_stop_str_in_output=bool(stop),
            # A tag that the tokenizer counts as special must stop a turn too.
            skip_special_tokens=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        stream = self._engine.generate({"prompt_token_ids": ids}, sampling, uuid4().hex)
        [output] = [request.outputs[0] async for request in stream]
        return Generation(list(output.token_ids), finish=output.finish_reason)


@asynccontextmanager
async def start_vllm(config: EvalConfig) -> AsyncIterator[VllmEngine]:
    """Load the model, and end the engine's processes behind the block.

    Raises:
        ValueError: vLLM refuses the model or the lengths.
    """
    _set_environment(config)
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.v1.engine.async_llm import AsyncLLM

    engine = AsyncLLM.from_engine_args(
        AsyncEngineArgs(
            model=str(config.model),
            dtype="auto" if has_gpu() else cpu_dtype(),
            max_model_len=config.search.sequence_tokens,
            max_num_seqs=config.concurrency,
            tensor_parallel_size=config.tensor_parallel,
            seed=config.seed,
            enable_prefix_caching=True,
            # A compiled model is not worth the wait on a CPU.
            enforce_eager=not has_gpu(),
            # Where a prompt is read in parts, vLLM 0.24 takes back what a seeded request has drawn
            # after each, with a method of CUDA's generators that torch's CPU generator lacks.
            enable_chunked_prefill=has_gpu(),
            disable_log_stats=True,
        )
    )
    try:
        yield VllmEngine(engine, config.temperature, config.seed)
    finally:
        engine.shutdown()


def _set_environment(config: EvalConfig) -> None:
    """Set what vLLM reads when it is first imported, and what its processes inherit."""
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "WARNING")
    os.environ.setdefault("VLLM_LOGGING_STREAM", "ext://sys.stderr")
    if not has_gpu():
        for name, value in cpu_environment(config.kv_cache_gib).items():
            # Those of verl would make each process of vLLM import it.
            if not name.startswith("VERL_"):
                os.environ.setdefault(name, value)
