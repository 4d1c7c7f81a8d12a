"""What verl 0.9.1 fixes in its code that a CPU needs otherwise: one function for each place.

Each patch names the upstream line it answers; tests/search_r1/platform tells when upstream no
longer needs it. They touch ``verl.utils`` only, which every worker imports before its engine.
"""

import functools
import os
from typing import Any

import torch


def apply() -> None:
    """Apply every patch, once per process and before verl's workers are imported."""
    use_gloo_once()
    keep_memory_unpinned()
    load_critics_as_configured()


def use_gloo_once() -> None:
    """verl/utils/distributed.py asks for ``cpu:gloo,cpu:gloo``; torch refuses a device twice."""
    from verl.utils import distributed

    distributed.initialize_global_process_group_ray = functools.partial(
        distributed.initialize_global_process_group_ray, backend="gloo"
    )
    distributed.initialize_global_process_group = _join_torchrun


def _join_torchrun(timeout_second: int = 36_000) -> tuple[int, ...]:
    """As verl's SFT trainer joins the processes of torchrun: (local rank, rank, world size)."""
    from verl.utils import distributed

    distributed.initialize_global_process_group_ray(timeout_second)
    return tuple(int(os.environ[name]) for name in ("LOCAL_RANK", "RANK", "WORLD_SIZE"))


def keep_memory_unpinned() -> None:
    """verl/workers/engine/fsdp pins the memory of the reference model; pinning needs a driver."""
    from verl.utils import fsdp_utils

    offload_policy = fsdp_utils.CPUOffloadPolicy
    fsdp_utils.CPUOffloadPolicy = lambda **_: offload_policy(pin_memory=False)


def load_critics_as_configured() -> None:
    """verl/utils/model.py loads critics with flash-attention, whatever the config says."""
    from verl.utils import model

    model.load_valuehead_model = _load_critic


def _load_critic(
    local_path: str, torch_dtype: torch.dtype, model_config: Any, trust_remote_code: bool
) -> torch.nn.Module:
    from transformers import AutoModelForTokenClassification

    critic: torch.nn.Module = AutoModelForTokenClassification.from_pretrained(
        local_path,
        dtype=torch_dtype,
        config=model_config,
        attn_implementation=model_config._attn_implementation,
        trust_remote_code=trust_remote_code,
    )
    return critic
