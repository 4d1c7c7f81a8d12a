"""The paper's table by the command, on real vLLM, the real server and verl's own merger."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

Command = Callable[..., Any]

PROMPTED = ("direct", "cot", "ircot", "search_o1", "rag", "react")
TRAINED = ("sft", "r1_base", "search_r1_grpo_base")


@pytest.fixture(scope="module")
def run(workshop: Path, tiny_model: Path) -> Path:
    """The tiny model as verl saves the policy of a run on one device."""
    import torch
    from transformers import AutoModelForCausalLM

    actor = workshop / "saved-run" / "checkpoints" / "global_step_3" / "actor"
    description = shutil.copytree(tiny_model, actor / "huggingface")
    (description / "model.safetensors").unlink()
    state = AutoModelForCausalLM.from_pretrained(tiny_model).state_dict()
    torch.save(state, actor / "model_world_size_1_rank_0.pt")
    (actor / "fsdp_config.json").write_text('{"FSDP_version": 2, "world_size": 1}')
    (actor.parents[1] / "latest_checkpointed_iteration.txt").write_text("3")
    return workshop / "saved-run"


@pytest.fixture(scope="module")
def words(workshop: Path, world: Path, server: Any, tiny_model: Path, run: Path) -> list[object]:
    """A suite of four questions; the policies are the tiny model, twice as it is."""
    budgets = {"turn": 48, "observation": 160, "sequence": 1024}
    return [
        *("eval", tiny_model, "--suite", "paper", "--data", world / "test.parquet", "--sample", 4),
        *("--policy", f"sft={tiny_model}", "--policy", f"r1_base={tiny_model}"),
        *("--policy", f"search_r1_grpo_base={run}", "--retriever", server.url),
        *("--output", workshop / "suite", "--kv-cache-gib", 1),
        *(word for name, tokens in budgets.items() for word in (f"--{name}-tokens", tokens)),
    ]


@pytest.fixture(scope="module")
def suite(workshop: Path, run: Path, words: list[object], run_command: Command) -> Path:
    """Its folder."""
    done = run_command(*words)
    assert done.returncode == 0, done.stderr[-5000:]
    assert done.stdout == (workshop / "suite" / "suite.md").read_text()
    assert done.stderr.count(f"merging {run}") == 1
    return workshop / "suite"


def answers(row: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (row / "trajectories.jsonl").read_text().splitlines()]


def test_each_row_with_a_model_is_whole_and_the_others_say_what_fills_them(suite: Path) -> None:
    rows = {row["name"]: row for row in json.loads((suite / "suite.json").read_text())["rows"]}
    assert {name for name, row in rows.items() if row["status"] == "done"} == {*PROMPTED, *TRAINED}
    assert {row["status"] for row in rows.values()} == {"done", "missing"}
    for name in (*PROMPTED, *TRAINED):
        assert len({row["id"] for row in answers(suite / name)}) == 4
    table = (suite / "suite.md").read_text()
    assert "| Search-R1 GRPO, base | 0." in table
    assert "(missing: give `--policy rejection_sampling=MODEL`)" in table


def test_the_rows_search_as_their_methods_say(suite: Path) -> None:
    searches = {
        name: sum(row["searches"] for row in answers(suite / name))
        for name in (*PROMPTED, *TRAINED)
    }
    assert searches["rag"] == 4
    assert searches["ircot"] >= 4
    assert searches["search_r1_grpo_base"] > 0
    assert {searches[name] for name in ("direct", "cot", "sft", "r1_base")} == {0}
    found = [turn["passages"] for row in answers(suite / "rag") for turn in row["transcript"]]
    assert all(1 <= len(passages) <= 3 for passages in found if passages)
    assert any(found)


def test_a_run_is_merged_into_its_row_and_its_step_is_recorded(suite: Path) -> None:
    merged = suite / "search_r1_grpo_base"
    settings = json.loads((merged / "manifest.json").read_text())["settings"]
    assert settings["merged_from"]["step"] == 3
    assert settings["model"] == str(merged / "model")
    assert settings["retriever"]["backend"] == "flat"


def test_two_rows_are_compared(suite: Path, do: Callable[..., str]) -> None:
    assert "| overall | 4 |" in do("compare", suite / "rag", suite / "search_r1_grpo_base")


def test_the_same_command_again_loads_no_model(
    suite: Path, words: list[object], run_command: Command
) -> None:
    before = {path: path.read_bytes() for path in suite.rglob("*.json*")}
    done = run_command(*words)
    assert done.returncode == 0, done.stderr
    assert "merging " not in done.stderr
    assert "vllm" not in done.stderr.casefold()
    assert {path: path.read_bytes() for path in before} == before
