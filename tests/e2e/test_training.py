"""GRPO and PPO on real verl, Ray, FSDP2 and vLLM, over HTTP to a real retrieval server."""

import math
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def grpo(train: Any) -> Any:
    run = train("grpo", "algo=grpo", "trainer.save_freq=1")
    assert run.code == 0, run.log[-5000:]
    return run


@pytest.fixture(scope="module")
def ppo(train: Any) -> Any:
    run = train("ppo", "algo=ppo", "actor_rollout_ref.rollout.n=2", "trainer.save_freq=2")
    assert run.code == 0, run.log[-5000:]
    return run


def numbers(metrics: dict[str, Any], prefix: str) -> dict[str, float]:
    return {name: value for name, value in metrics.items() if name.startswith(prefix)}


def assert_learning(metrics: dict[str, Any], role: str) -> None:
    assert all(math.isfinite(value) for value in numbers(metrics, f"{role}/").values())
    assert metrics[f"{role}/grad_norm"] > 0


def test_grpo_updates_the_policy_on_searching_trajectories(grpo: Any) -> None:
    steps = grpo.metrics()
    for step in (1, 2):
        assert_learning(steps[step], "actor")
        assert steps[step]["search/searches_per_question"] > 0
        assert steps[step]["search/failed_search_rate"] == 0
        assert 0 < steps[step]["tokens/masked_share"] < 1


def test_the_engine_samples_from_the_updated_weights(grpo: Any) -> None:
    first, second = (weights(grpo.folder, step) for step in (1, 2))
    moved = max((first[name] - second[name]).abs().max().item() for name in first)
    assert moved > 1e-3  # three orders above the rounding of bfloat16 near zero
    # The trainer's log-probabilities are those of the engine, after an update as before it.
    for step in (1, 2):
        assert grpo.metrics()[step]["training/rollout_actor_probs_pearson_corr"] > 0.98


def weights(run: Path, step: int) -> dict[str, Any]:
    import torch

    actor = run / "checkpoints" / f"global_step_{step}" / "actor"
    [path] = actor.glob("model_world_size_1_rank_0.pt")
    state = torch.load(path, weights_only=False)
    return {name: getattr(value, "_local_tensor", value) for name, value in state.items()}


def test_a_group_shares_a_question_and_every_session_is_there(grpo: Any) -> None:
    rows = grpo.trajectories("rollouts", 1)
    sessions = {(row["id"], row["session"]) for row in rows}
    assert len(rows) == len(sessions) == 4 * 4
    assert len({row["id"] for row in rows}) == 4


def test_a_validation_leaves_its_trajectories(grpo: Any) -> None:
    for step in (0, 2):
        rows = grpo.trajectories("validation", step)
        assert len(rows) == 8
        for row in rows:
            assert row["question"].endswith("?")
            assert row["golden_answers"]
            assert row["hops"] in (1, 2, 3)
            assert set(row["reward_parts"]) >= {"em", "f1", "sub_em", "format", "retrieval_hit"}
            assert row["transcript"][-1]["observation"] == ""
            assert row["sampled_tokens"] == sum(t["sampled_tokens"] for t in row["transcript"])
        em = sum(row["reward_parts"]["em"] for row in rows) / len(rows)
        assert grpo.metrics()[step]["val/reward/em"] == pytest.approx(em)


def test_a_resumed_run_repeats_the_step_after_its_checkpoint(grpo: Any, train: Any) -> None:
    checkpoints = grpo.folder / "checkpoints"
    resumed_folder = grpo.folder.with_name("resumed") / "checkpoints"
    shutil.copytree(checkpoints / "global_step_1", resumed_folder / "global_step_1")
    (resumed_folder / "latest_checkpointed_iteration.txt").write_text("1")
    resumed = train("resumed", "algo=grpo", "trainer.save_freq=2", "trainer.val_before_train=false")
    assert resumed.code == 0, resumed.log[-5000:]

    assert set(resumed.metrics()) == {2}
    before, after = grpo.trajectories("rollouts", 2), resumed.trajectories("rollouts", 2)
    assert [(row["id"], row["session"]) for row in before] == [
        (row["id"], row["session"]) for row in after
    ]
    assert [row["transcript"] for row in before] == [row["transcript"] for row in after]
    once, again = grpo.metrics()[2], resumed.metrics()[2]
    for name in ("actor/pg_loss", "actor/grad_norm", "actor/lr", "reward/em", "actor/entropy"):
        assert again[name] == pytest.approx(once[name], rel=1e-2, abs=1e-4), name
    first, second = weights(grpo.folder, 2), weights(resumed.folder, 2)
    assert max((first[name] - second[name]).abs().max().item() for name in first) < 1e-3


def test_ppo_updates_policy_and_critic(ppo: Any) -> None:
    steps = ppo.metrics()
    for step in (1, 2):
        assert_learning(steps[step], "actor")
        assert math.isfinite(steps[step]["critic/vf_loss"])
        assert steps[step]["critic/grad_norm"] > 0
        assert steps[step]["search/searches_per_question"] > 0


def test_a_checkpoint_merges_into_a_folder_that_transformers_loads(
    ppo: Any, tmp_path: Path
) -> None:
    from transformers import AutoModelForCausalLM

    command = str(Path(sys.executable).with_name("search-r1"))
    merged = tmp_path / "merged"
    subprocess.run([command, "merge", str(ppo.folder), str(merged)], check=True, timeout=300)
    model = AutoModelForCausalLM.from_pretrained(merged)
    name = "model.layers.0.mlp.up_proj.weight"
    expected = weights(ppo.folder, 2)[name].to(model.dtype)
    assert (dict(model.named_parameters())[name] == expected).all()


def test_a_run_without_a_retrieval_server_stops_and_says_so(train: Any) -> None:
    run = train(
        "no-server",
        "algo=grpo",
        "trainer.val_before_train=false",
        "search.max_attempts=2",
        url="http://127.0.0.1:9/retrieve",
    )
    assert run.code == 1
    assert "search.max_failure_rate" in run.log
    assert "127.0.0.1:9" in run.log
    assert 1 not in run.metrics()  # nothing was trained on
