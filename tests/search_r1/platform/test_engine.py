"""The CPU platform's engine computes what verl's computes, on the trained tokens and only there."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from search_r1.platform import cpu_environment


@pytest.mark.slow
def test_trained_tokens_have_verls_log_probabilities_and_all_others_zero() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", Path(__file__).with_name("engine_program.py")],
        env=os.environ | cpu_environment(kv_cache_gib=1),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["log_probs differs by"] < 1e-5
    assert answer["entropy differs by"] < 1e-5
    assert answer["gradient differs by"] < 1e-5
    assert answer["trained"] == answer["not 0"] == 4
    assert answer["lengths"] == [0, 0, 0]
