"""Asks verl and vLLM what they make of the CPU platform, in one process that imports them once.

A program of its own, run by test_platform.py under the platform's environment as a worker of a run
has it. Prints one JSON object: an answer a question, or the error it ended with.
"""

import json
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
import verl  # noqa: F401 - first, as in a worker: it loads the platform


def device() -> dict[str, Any]:
    from verl.utils import device
    from verl.workers.engine import EngineRegistry

    import search_r1.platform.engine  # noqa: F401 - registers the engines

    kinds = ("language_model", "value_model")
    torch_device = device.get_torch_device()
    return {
        "device": device.get_device_name(),
        "id": device.get_device_id(),
        "collectives": device.get_nccl_backend(),
        "engines": [EngineRegistry.get_engine_cls(kind, "fsdp2").__name__ for kind in kinds],
        "memory": torch_device.memory_allocated(),
        "count": torch_device.device_count(),
    }


def process_group() -> dict[str, Any]:
    from verl.utils.distributed import initialize_global_process_group_ray

    with tempfile.TemporaryDirectory() as folder:
        os.environ["DIST_INIT_METHOD"] = f"file://{Path(folder) / 'store'}"
        initialize_global_process_group_ray()
        total = torch.ones(1)
        torch.distributed.all_reduce(total)
        torch.distributed.destroy_process_group()
    return {"total": total.item()}


def vllm() -> dict[str, Any]:
    from vllm.platforms import current_platform

    return {"version": version("vllm"), "cpu": current_platform.is_cpu()}


def packed_linear() -> dict[str, Any]:
    """How far vLLM's layer is from torch's, by dtype: at first, and packed again with a weight."""
    from search_r1.platform import vllm_cpu

    vllm_cpu.register()
    return {name: packed_linear_of(getattr(torch, name)) for name in ("float32", "bfloat16")}


def packed_linear_of(dtype: torch.dtype) -> dict[str, Any]:
    from vllm.model_executor.layers import utils

    layer = torch.nn.Linear(64, 32, bias=False, dtype=dtype)
    layer.weight.requires_grad_(False)
    x = torch.ones(4, 64, dtype=dtype)

    def error() -> float:
        utils.dispatch_cpu_unquantized_gemm(layer, remove_weight=True)
        got = layer.cpu_linear(x, layer.weight, None)
        return (got - torch.nn.functional.linear(x, layer.weight)).abs().max().item()

    before = error()
    layer.weight.copy_(torch.randn(32, 64))
    return {"before": before, "after": error(), "shape": list(layer.weight.shape)}


def copied() -> dict[str, Any]:
    """What our checks have copied, as verl has it."""
    from verl.utils.tracking import Tracking
    from verl.workers.config import CriticConfig

    tokens = CriticConfig.ppo_infer_max_token_len_per_gpu
    return {"loggers": Tracking.supported_backend, "critic_tokens": tokens}


def main() -> None:
    questions = (device, process_group, vllm, packed_linear, copied)
    answers = {question.__name__: answer(question) for question in questions}
    sys.stdout.write(json.dumps(answers) + "\n")


def answer(question: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    # An answer that fails does not hide the others.
    try:
        return question()
    except Exception:
        return {"error": traceback.format_exc()}


if __name__ == "__main__":
    main()
