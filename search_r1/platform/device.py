"""What verl asks of ``torch.cuda``, answered for a CPU."""

import contextlib
import resource
from collections.abc import Iterator

import psutil
import torch


class CpuDevice:
    """Stands where verl expects the module ``torch.cuda``; memory is this process's own."""

    get_rng_state = staticmethod(torch.get_rng_state)
    set_rng_state = staticmethod(torch.set_rng_state)
    manual_seed = staticmethod(torch.manual_seed)

    @staticmethod
    def is_available() -> bool:
        return True

    @staticmethod
    def device_count() -> int:
        return 1

    @staticmethod
    def current_device() -> str:
        return "cpu"

    @staticmethod
    def get_device_name(_device: object = None) -> str:
        return "CPU"

    @staticmethod
    def set_device(_device: object) -> None:
        """Do nothing: there is one CPU."""

    @staticmethod
    def synchronize(_device: object = None) -> None:
        """Do nothing: CPU work is complete when the call returns."""

    @staticmethod
    def empty_cache() -> None:
        """Do nothing: the CPU allocator keeps no cache."""

    @staticmethod
    def ipc_collect() -> None:
        """Do nothing: weights travel through shared memory."""

    @staticmethod
    def set_per_process_memory_fraction(_fraction: float) -> None:
        """Do nothing: the operating system owns the memory."""

    @staticmethod
    def current_stream() -> None:
        """Answer no stream: CPU work has none."""

    @staticmethod
    @contextlib.contextmanager
    def stream(_stream: object) -> Iterator[None]:
        yield

    @staticmethod
    def mem_get_info(_device: object = None) -> tuple[int, int]:
        memory = psutil.virtual_memory()
        return memory.available, memory.total

    @staticmethod
    def memory_allocated(_device: object = None) -> int:
        return int(psutil.Process().memory_info().rss)

    memory_reserved = memory_allocated

    @staticmethod
    def max_memory_allocated(_device: object = None) -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    max_memory_reserved = max_memory_allocated
