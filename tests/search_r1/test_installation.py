import importlib.metadata
import json
import subprocess
from collections.abc import Mapping

import pytest

from search_r1 import installation
from search_r1.installation import check_packages, probe

FIX = "bash scripts/setup.sh cpu"


def answers(platform: str, *, ok: bool = True) -> str:
    lines = [
        {"name": "verl platform", "ok": True, "detail": platform},
        {"name": "agent loop", "ok": ok, "detail": "search_r1.agent_loop.SearchAgentLoop"},
    ]
    return "\n".join(map(json.dumps, lines))


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "has_gpu", lambda: False)


def test_a_probe_runs_in_the_environment_of_a_run() -> None:
    seen: list[Mapping[str, str]] = []

    def run(environment: Mapping[str, str]) -> str:
        seen.append(environment)
        return answers("cpu")

    assert all(found.ok for found in probe(FIX, run))
    assert seen[0]["VERL_PLATFORM"] == "cpu"


def test_the_wrong_platform_and_a_failed_answer_have_a_fix() -> None:
    platform, agent_loop = probe(FIX, lambda _: answers("cuda", ok=False))
    assert "cpu was expected" in platform.fix
    assert FIX in agent_loop.fix


@pytest.mark.parametrize(
    "error", [ValueError("no module verl"), subprocess.TimeoutExpired("probe", 300), OSError("x")]
)
def test_a_probe_that_cannot_run_is_one_failure(error: Exception) -> None:
    def run(_: Mapping[str, str]) -> str:
        raise error

    [found] = probe(FIX, run)
    assert not found.ok
    assert str(error) in found.detail


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What is installed, as name: version; two requirements, one of them of the GPU extra."""
    found = {"search-r1": "0.1.0", "verl": "0.9.1", "vllm": "0.24.0", "torch": "2.11.0+cpu"}
    wanted = ["torch==2.11.0", "verl==0.9.1", 'vllm==0.24.0; extra == "gpu"']

    def version(name: str) -> str:
        if name not in found:
            raise importlib.metadata.PackageNotFoundError(name)
        return found[name]

    def requires(name: str) -> list[str]:
        version(name)
        return wanted

    monkeypatch.setattr(installation, "version", version)
    monkeypatch.setattr(installation, "requires", requires)
    return found


def test_packages_as_asked_for(installed: dict[str, str]) -> None:
    [summary] = check_packages("gpu", FIX)
    assert summary.ok
    assert summary.detail == "3 looked at: verl 0.9.1, vllm 0.24.0, torch 2.11.0+cpu"


def test_a_missing_and_a_wrong_package_are_named(installed: dict[str, str]) -> None:
    installed.pop("vllm")
    installed["verl"] = "0.8.0"
    wrong = {found.name: found.detail for found in check_packages("gpu", FIX) if not found.ok}
    assert wrong["verl"] == "0.8.0 is installed, not verl==0.9.1"
    assert wrong["vllm"].startswith("none is installed")


def test_another_extra_asks_for_less(installed: dict[str, str]) -> None:
    installed.pop("vllm")
    assert all(found.ok for found in check_packages("cpu", FIX))


def test_a_checkout_that_was_not_installed(installed: dict[str, str]) -> None:
    installed.pop("search-r1")
    [found] = check_packages("cpu", FIX)
    assert found.fix == FIX


@pytest.mark.slow
def test_verl_and_vllm_see_a_cpu() -> None:
    found = {one.name: one for one in installation.check_installation(FIX)}
    assert [one for one in found.values() if not one.ok] == []
    assert found["verl platform"].detail == "cpu"
    assert found["agent loop"].detail == "search_r1.agent_loop.SearchAgentLoop"
    assert found["vllm platform"].detail == "cpu"
