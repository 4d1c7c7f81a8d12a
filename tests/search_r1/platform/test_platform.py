"""The CPU platform in a process of its own, entered as a worker of a run enters it."""

import json
import os
import subprocess
import sys

import pytest

from search_r1.platform import cpu_environment


def answers(program: str) -> dict[str, object]:
    """What `program`, which prints one JSON object last, says under the platform's environment."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        env=os.environ | cpu_environment(kv_cache_gib=1),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(answer, dict)
    return answer


def test_the_environment_is_complete() -> None:
    variables = cpu_environment(kv_cache_gib=2)
    assert variables["VERL_PLATFORM"] == "cpu"
    assert variables["VLLM_CPU_KVCACHE_SPACE"] == "2"
    assert int(variables["OMP_NUM_THREADS"]) >= 1


@pytest.mark.slow
def test_verl_finds_the_platform_and_an_engine_for_each_model() -> None:
    answer = answers(
        "import json, verl\n"
        "import search_r1.platform.engine\n"
        "from verl.utils import device\n"
        "from verl.workers.engine import EngineRegistry\n"
        "engines = [EngineRegistry.get_engine_cls(kind, 'fsdp2').__name__\n"
        "           for kind in ('language_model', 'value_model')]\n"
        "torch_device = device.get_torch_device()\n"
        "print(json.dumps({'device': device.get_device_name(), 'id': device.get_device_id(),\n"
        "    'collectives': device.get_nccl_backend(), 'engines': engines,\n"
        "    'memory': torch_device.memory_allocated(), 'count': torch_device.device_count()}))"
    )
    assert answer["device"] == answer["id"] == "cpu"
    assert answer["collectives"] == "gloo"
    assert answer["engines"] == ["TrainedTokensEngine", "FSDPEngineWithValueHead"]
    assert isinstance(answer["memory"], int)
    assert answer["memory"] > 0
    assert answer["count"] == 1


@pytest.mark.slow
def test_a_process_group_starts_with_verls_own_function() -> None:
    answer = answers(
        "import json, os, verl, torch\n"
        "os.environ |= {'DIST_INIT_METHOD': 'file:///tmp/search-r1-test-' + str(os.getpid())}\n"
        "from verl.utils.distributed import initialize_global_process_group_ray\n"
        "initialize_global_process_group_ray()\n"
        "total = torch.ones(1)\n"
        "torch.distributed.all_reduce(total)\n"
        "print(json.dumps({'total': total.item()}))"
    )
    assert answer == {"total": 1.0}


@pytest.mark.slow
def test_vllm_knows_its_cpu_build_under_the_name_that_verl_asks_for() -> None:
    answer = answers(
        "import json, verl\n"
        "from importlib.metadata import version\n"
        "from vllm.platforms import current_platform\n"
        "print(json.dumps({'version': version('vllm'), 'cpu': current_platform.is_cpu()}))"
    )
    assert str(answer["version"]).endswith("+cpu")
    assert answer["cpu"] is True


@pytest.mark.slow
def test_a_packed_linear_layer_keeps_its_weight_and_follows_an_update() -> None:
    answer = answers(
        "import json, torch, verl\n"
        "from search_r1.platform import vllm_cpu\n"
        "vllm_cpu.register()\n"
        "from vllm.model_executor.layers import utils\n"
        "layer = torch.nn.Linear(64, 32, bias=False, dtype=torch.bfloat16)\n"
        "layer.weight.requires_grad_(False)\n"
        "x = torch.ones(4, 64, dtype=torch.bfloat16)\n"
        "def error():\n"
        "    got = layer.cpu_linear(x, layer.weight, None)\n"
        "    return (got - torch.nn.functional.linear(x, layer.weight)).abs().max().item()\n"
        "utils.dispatch_cpu_unquantized_gemm(layer, remove_weight=True)\n"
        "before = error()\n"
        "layer.weight.copy_(torch.randn(32, 64))\n"
        "stale = error()\n"
        "utils.dispatch_cpu_unquantized_gemm(layer, remove_weight=True)\n"
        "print(json.dumps({'before': before, 'stale': stale, 'after': error(),\n"
        "                  'shape': list(layer.weight.shape)}))"
    )
    assert answer["shape"] == [32, 64]
    assert answer["before"] < 0.2  # type: ignore[operator]
    assert answer["stale"] > 1  # type: ignore[operator] # packed: it must be packed again
    assert answer["after"] < 0.2  # type: ignore[operator]
