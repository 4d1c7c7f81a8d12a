"""The CPU platform in a process of its own, entered as a worker of a run enters it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from search_r1.checks.run import LOGGERS
from search_r1.checks.sizes import CRITIC_MAX_TOKENS
from search_r1.platform import cpu_environment

Answers = dict[str, dict[str, Any]]

PROGRAM = Path(__file__).with_name("platform_program.py")


@pytest.fixture(scope="module")
def answers() -> Answers:
    """What each question of the program is answered under the platform's environment."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", PROGRAM],
        env=os.environ | cpu_environment(kv_cache_gib=1),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    found: Answers = json.loads(done.stdout.splitlines()[-1])
    return found


def test_the_environment_is_complete() -> None:
    variables = cpu_environment(kv_cache_gib=2)
    assert variables["VERL_PLATFORM"] == "cpu"
    assert variables["VLLM_CPU_KVCACHE_SPACE"] == "2"
    assert int(variables["OMP_NUM_THREADS"]) >= 1


@pytest.mark.slow
def test_verl_finds_the_platform_and_an_engine_for_each_model(answers: Answers) -> None:
    answer = answers["device"]
    assert answer["device"] == answer["id"] == "cpu"
    assert answer["collectives"] == "gloo"
    assert answer["engines"] == ["TrainedTokensEngine", "FSDPEngineWithValueHead"]
    assert isinstance(answer["memory"], int)
    assert answer["memory"] > 0
    assert answer["count"] == 1


@pytest.mark.slow
def test_a_process_group_starts_with_verls_own_function(answers: Answers) -> None:
    assert answers["process_group"] == {"total": 1.0}


@pytest.mark.slow
def test_vllm_knows_its_cpu_build_under_the_name_that_verl_asks_for(answers: Answers) -> None:
    assert str(answers["vllm"]["version"]).endswith("+cpu")
    assert answers["vllm"]["cpu"] is True


@pytest.mark.slow
@pytest.mark.parametrize(("dtype", "near"), [("float32", 1e-3), ("bfloat16", 0.2)])
def test_a_packed_linear_layer_keeps_its_weight_and_follows_an_update(
    answers: Answers, dtype: str, near: float
) -> None:
    answer = answers["packed_linear"][dtype]
    assert answer["shape"] == [32, 64]
    assert answer["before"] < near
    assert answer["after"] < near


@pytest.mark.slow
def test_what_was_copied_from_verl_is_still_verls(answers: Answers) -> None:
    assert answers["copied"] == {"loggers": list(LOGGERS), "critic_tokens": CRITIC_MAX_TOKENS}
