"""The type of number that a CPU multiplies matrices of in hardware, told without PyTorch."""

from functools import cache
from pathlib import Path
from typing import Final, Literal

Dtype = Literal["float32", "bfloat16"]

_PROCESSOR: Final = Path("/proc/cpuinfo")
_FLAG: Final = "avx512_bf16"


@cache
def cpu_dtype(processor: Path = _PROCESSOR) -> Dtype:
    """bfloat16 where the processor multiplies it; emulated, it is many times slower.

    Args:
        processor: Linux's description; where there is none, float32 is safe.
    """
    if not processor.is_file():
        return "float32"
    return "bfloat16" if _FLAG in processor.read_text().split() else "float32"
