"""Each patch of the CPU platform is still needed: the upstream line that it answers is there.

A test that fails here after an upgrade says that its patch can go, or must follow upstream.
"""

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import pytest


def source(package: str, path: str) -> str:
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return (Path(spec.origin).parent / path).read_text()


@pytest.mark.parametrize(
    ("package", "path", "line"),
    [
        pytest.param(
            "verl",
            "utils/distributed.py",
            'backend = backend or f"cpu:gloo,{get_device_name()}:{get_nccl_backend()}"',
            id="verl_patches.use_gloo_once",
        ),
        pytest.param(
            "verl",
            "workers/engine/fsdp/transformer_impl.py",
            "offload_policy = CPUOffloadPolicy(pin_memory=True)",
            id="verl_patches.keep_memory_unpinned",
        ),
        pytest.param(
            "verl",
            "utils/model.py",
            'attn_implementation="flash_attention_2"',
            id="verl_patches.load_critics_as_configured",
        ),
        pytest.param(
            "verl",
            "workers/engine/fsdp/transformer_impl.py",
            'backend=["fsdp", "fsdp2"], device=["cuda", "npu"])',
            id="platform.ENGINE_DEVICE",
        ),
        pytest.param(
            "verl",
            "workers/rollout/vllm_rollout/bucketed_weight_transfer.py",
            "tensor = tensor.to(self.device)",
            id="vllm_cpu.copy_received_weights",
        ),
        pytest.param(
            "vllm",
            "model_executor/layers/linear.py",
            "dispatch_cpu_unquantized_gemm(layer, remove_weight=True)",
            id="vllm_cpu.keep_linear_weights",
        ),
    ],
)
def test_the_line_that_a_patch_answers_is_there(package: str, path: str, line: str) -> None:
    assert line in source(package, path)


def test_vllm_cpu_has_another_name_than_verl_asks_for() -> None:
    assert version("vllm-cpu")
    with pytest.raises(PackageNotFoundError):
        version("vllm")
    assert 'package_name = "vllm"' in source("verl", "third_party/vllm/__init__.py")
