"""The CPU platform of verl, imported at the end of ``import verl`` in each process of a CPU run."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, cast

import torch
from verl.plugin.platform import PlatformBase, PlatformRegistry

from search_r1.platform import PLATFORM_NAME, verl_patches, vllm_version
from search_r1.platform.device import CpuDevice


@PlatformRegistry.register(platform=PLATFORM_NAME)
class CpuPlatform(PlatformBase):  # type: ignore[misc] # verl is not typed
    """One CPU, counted as one device; collectives over gloo, weights through shared memory."""

    @property
    def device_name(self) -> str:
        return PLATFORM_NAME

    @property
    def vendor_name(self) -> str:
        return PLATFORM_NAME

    @property
    def device_module(self) -> ModuleType:
        return cast("ModuleType", CpuDevice)

    def is_available(self) -> bool:
        return True

    def current_device(self) -> str:
        # verl hands this to Tensor.to and torch.device, where an index would mean an accelerator.
        return PLATFORM_NAME

    def device_count(self) -> int:
        return 1

    def set_device(self, device_index: int) -> None:
        """Do nothing: there is one CPU."""

    def synchronize(self, device_index: int | None = None) -> None:
        """Do nothing: CPU work is complete when the call returns."""

    def manual_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        torch.manual_seed(seed)

    def set_allocator_settings(self, settings: str) -> None:
        """Do nothing: the CPU allocator has no such settings."""

    def empty_cache(self) -> None:
        """Do nothing: the CPU allocator keeps no cache."""

    def get_device_capability(self, device_index: int = 0) -> tuple[int | None, int | None]:
        return None, None

    def communication_backend_name(self) -> str:
        return "gloo"

    def visible_devices_envvar(self) -> str:
        return "CUDA_VISIBLE_DEVICES"

    @contextmanager
    def nvtx_range(self, msg: str) -> Iterator[None]:
        yield

    def profiler_start(self) -> None:
        """Do nothing: there is no device profiler."""

    def profiler_stop(self) -> None:
        """Do nothing: there is no device profiler."""

    def ray_resource_name(self) -> str:
        # Declared as a logical resource by ray_kwargs.ray_init.num_gpus.
        return "GPU"

    def ray_noset_envvars(self) -> list[str]:
        return ["RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"]

    def is_ipc_supported(self) -> bool:
        return False

    def cudart(self) -> Any:
        return None


vllm_version.register()
verl_patches.apply()
