"""GRPO and PPO on real verl, Ray, FSDP2 and vLLM, over HTTP to a real retrieval server."""

import math
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from search_r1.checkpoints.folders import checkpoint_folder
from search_r1.checkpoints.recovery import fault_of
from search_r1.config import compose
from search_r1.files import RUN_CONFIG
from search_r1.stability.catalogue import DETECTORS
from search_r1.stability.checkpoints import BestCheckpoint
from search_r1.stability.state import read_state

pytestmark = pytest.mark.slow

Processes = Callable[[], list[Any]]

RESUMED = (
    "trainer.save_freq=2",
    "trainer.val_before_train=false",
    "trainer.total_training_steps=3",
)

PPO = ("algo=ppo", "algorithm.use_kl_in_reward=true")


@pytest.fixture(scope="module")
def ppo(train: Any) -> Any:
    run = train("ppo", *PPO, "data.train_batch_size=8", "trainer.save_freq=2")
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


SHARD = "model_world_size_1_rank_0.pt"


def shard(run: Path, step: int) -> Path:
    return checkpoint_folder(run / "checkpoints", step) / "actor" / SHARD


def weights(run: Path, step: int) -> dict[str, Any]:
    import torch

    state = torch.load(shard(run, step), weights_only=False)
    return {name: getattr(value, "_local_tensor", value) for name, value in state.items()}


def test_a_group_shares_a_question_and_every_session_is_there(grpo: Any) -> None:
    rows = grpo.trajectories("rollouts", 1)
    sessions = {identity(row) for row in rows}
    assert len(rows) == len(sessions) == 4 * 5
    assert len({row["id"] for row in rows}) == 4


def test_the_alarms_of_a_healthy_run_are_there_and_quiet(grpo: Any, ppo: Any) -> None:
    for run in (grpo, ppo):
        for step in (1, 2):
            metrics = run.metrics()[step]
            alarms = numbers(metrics, "alarm/")
            assert set(alarms) == {f"alarm/{name}" for name in DETECTORS}
            assert sum(alarms.values()) == 0
            assert metrics["alarm_value/non_finite"] == 0
            assert 0 <= metrics["alarm_value/ratio_tail"] < 0.01
            assert metrics["stability/update_skipped"] == 0
            assert metrics["stability/searches"] > 0
            assert metrics["stability/sampled_logprob"] < 0


def test_the_validated_checkpoint_is_the_best_one(grpo: Any) -> None:
    best = BestCheckpoint.read(grpo.folder)
    assert best is not None
    assert (best.step, best.em) == (2, grpo.metrics()[2]["val/reward/em"])
    assert (Path(best.path) / "actor").is_dir()
    assert read_state(Path(best.path)).detectors["non_finite"].recent == (0.0,)


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


@pytest.fixture(scope="module")
def resumed(
    grpo: Any, train: Any, mortal_server: Any, workshop: Path, grpo_words: tuple[str, ...]
) -> Any:
    """A run resumed from checkpoints whose newest one is broken, and whose server dies later."""
    folder = workshop / "resumed"
    shutil.copytree(grpo.folder / "checkpoints", folder / "checkpoints")
    flip_a_bit(shard(folder, 2))
    killer = Thread(target=kill_the_server, args=(folder, mortal_server))
    killer.start()
    words = (*grpo_words, *RESUMED, "search.timeout_seconds=5")
    run = train("resumed", *words, url=mortal_server.url)
    killer.join()
    return run


def test_a_resumed_run_passes_over_a_broken_checkpoint_and_repeats_the_step(
    grpo: Any, resumed: Any
) -> None:
    assert (
        "global_step_2 is broken: actor/model_world_size_1_rank_0.pt: its checksum" in resumed.log
    )
    assert (resumed.folder / "checkpoints" / "broken_global_step_2").is_dir()
    assert_same_step(grpo, resumed, 2)
    assert (
        fault_of(checkpoint_folder(resumed.folder / "checkpoints", 2), is_vouched_for=False) is None
    )


def test_a_run_stops_when_its_server_dies(resumed: Any, mortal_server: Any) -> None:
    assert resumed.code == 1
    assert "more than search.max_failure_rate" in resumed.log
    assert mortal_server.url in resumed.log
    assert set(resumed.metrics()) == {2}  # nothing was trained on in step 3


def test_a_run_whose_engine_is_killed_says_so_and_leaves_nothing(
    resumed: Any, train: Any, left_of_runs: Processes, grpo_words: tuple[str, ...]
) -> None:
    killed: list[float] = []
    killer = Thread(target=kill_the_engine, args=(resumed.folder, left_of_runs, killed))
    killer.start()
    ended = train("resumed", *grpo_words, *RESUMED)
    seconds = time.monotonic() - killed[0]
    killer.join()
    assert ended.code == 1
    assert re.search(r"a process of the run died: vLLMHttpServer, process \d+ on", ended.log)
    assert seconds < 120
    assert "global_step_2" in ended.log  # it had resumed from what the start before saved
    assert set(ended.metrics()) == {2}
    wait_until(lambda: not left_of_runs(), 90)


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def kill_the_server(run: Path, server: Any) -> None:
    """Once the first step of a run is over."""
    await_first_step(run)
    wait_until(lambda: any(log.stat().st_size for log in (run / "metrics").glob("*.jsonl")), 900)
    server.process.kill()
    server.process.wait()


def kill_the_engine(run: Path, processes: Processes, killed: list[float]) -> None:
    await_first_step(run)
    [engine] = [one for one in processes() if "VLLM::EngineCore" in " ".join(one.cmdline())]
    engine.kill()
    killed.append(time.monotonic())


def await_first_step(run: Path) -> None:
    """Wait until the trainer of a run that starts now comes to a step: it opens its metrics."""
    before = len(list((run / "metrics").glob("*.jsonl")))
    wait_until(lambda: len(list((run / "metrics").glob("*.jsonl"))) > before, 900)


def wait_until(holds: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds:g} seconds"
        time.sleep(0.05)


def assert_same_step(run: Any, resumed: Any, step: int) -> None:
    before, after = run.trajectories("rollouts", step), resumed.trajectories("rollouts", step)
    assert [identity(row) for row in before] == [identity(row) for row in after]
    assert [words(row) for row in before] == [words(row) for row in after]
    once, again = run.metrics()[step], resumed.metrics()[step]
    for name in ("actor/lr", "actor/pg_loss", "actor/grad_norm", "actor/kl_loss", "reward/score"):
        assert again[name] == pytest.approx(once[name], rel=1e-2, abs=1e-4), name
    first, second = weights(run.folder, step), weights(resumed.folder, step)
    assert max((first[name] - second[name]).abs().max().item() for name in first) < 1e-3


def words(row: dict[str, Any]) -> list[dict[str, Any]]:
    """The transcript without scores: their last digit depends on the batches of the server."""
    return [
        {**turn, "passages": [passage["id"] for passage in turn["passages"]]}
        for turn in row["transcript"]
    ]


def identity(row: dict[str, Any]) -> tuple[str, int]:
    return row["id"], row["session"]


def test_a_run_stores_a_config_that_can_be_trained_again(grpo: Any) -> None:
    stored = compose(str(grpo.folder / RUN_CONFIG), [])
    assert stored.algorithm.adv_estimator == "grpo"
    assert stored.output_dir == str(grpo.folder)


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
