from pathlib import Path

import pytest

from search_r1.platform.precision import cpu_dtype


@pytest.mark.parametrize(
    ("flags", "dtype"),
    [
        ("fpu avx2 avx512f avx512_bf16 amx_bf16", "bfloat16"),
        ("fpu avx avx2 fma", "float32"),
        ("fpu avx2 avx512f avx512_bf16x", "float32"),
    ],
)
def test_bfloat16_is_for_processors_that_multiply_it(
    flags: str, dtype: str, tmp_path: Path
) -> None:
    described = tmp_path / "cpuinfo"
    described.write_text(f"processor\t: 0\nmodel name\t: made\nflags\t\t: {flags}\n")
    assert cpu_dtype(described) == dtype


def test_without_a_description_float32_is_safe(tmp_path: Path) -> None:
    assert cpu_dtype(tmp_path / "cpuinfo") == "float32"


@pytest.mark.slow
def test_pytorch_is_of_the_same_opinion() -> None:
    import torch

    assert (cpu_dtype() == "bfloat16") == torch.cpu._is_avx512_bf16_supported()
