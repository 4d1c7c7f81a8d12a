"""A CPU as a verl platform, so that the very same trainer, engine and agent loop run without a GPU.

verl finds the platform through two environment variables of its own and vLLM through the entry
point ``search_r1_cpu`` of the group ``vllm.general_plugins``; `cpu_environment` names them all and
`search_r1.train` hands them to every Ray worker. What no registry covers is patched in
`search_r1.platform.verl_patches` and `search_r1.platform.vllm_cpu`, one small function each.
"""

import os
from typing import Final

PLATFORM_NAME: Final = "cpu"
ENGINE_DEVICE: Final = "cuda"
"""verl registers its FSDP engines for cuda and npu only; they run on a CPU unchanged."""

_MALLOC: Final = ("arena_max=1", "mmap_max=0", f"trim_threshold={1 << 40}")


def cpu_environment(kv_cache_gib: int) -> dict[str, str]:
    """The environment variables that select the CPU platform in every process of a run.

    Args:
        kv_cache_gib: Memory for vLLM's key-value cache, in GiB.
    """
    return {
        "VERL_PLATFORM": PLATFORM_NAME,
        # verl raises what goes wrong in these modules, unlike in its entry-point plugins.
        "VERL_USE_EXTERNAL_MODULES": "search_r1.platform.cpu",
        "VERL_ENGINE_DEVICE": ENGINE_DEVICE,
        "VLLM_CPU_KVCACHE_SPACE": str(kv_cache_gib),
        # Ray would give each actor one thread; the trainer and the engine take turns on all cores.
        "OMP_NUM_THREADS": str(len(os.sched_getaffinity(0))),
        # Their idle threads must sleep meanwhile, not spin.
        "OMP_WAIT_POLICY": "PASSIVE",
        # Freed memory is kept: to map it anew for each tensor took a quarter of an update.
        "GLIBC_TUNABLES": ":".join(f"glibc.malloc.{name}" for name in _MALLOC),
        # vLLM would bind its threads to cores that the trainer needs between rollouts.
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    }


def subprocess_environment(gpu: bool) -> dict[str, str]:
    """The environment of a short-lived process that imports verl, on a GPU or on the CPU."""
    return dict(os.environ) if gpu else os.environ | cpu_environment(kv_cache_gib=1)


def is_selected() -> bool:
    """Whether this process belongs to a run on the CPU platform."""
    return os.environ.get("VERL_PLATFORM") == PLATFORM_NAME
