"""The paper's trained baselines on real parts: R1 on verl, SFT, and rejection sampling on vLLM."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from search_r1.platform import cpu_environment

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).resolve().parents[2]
NOWHERE = "http://127.0.0.1:9/retrieve"
Do = Callable[..., str]
SMALL = ("--sequence-tokens", 768, "--kv-cache-gib", 1)


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_r1_trains_on_the_same_data_without_any_server(train: Any) -> None:
    run = train(
        "r1",
        "search.max_searches=0",
        "data.max_response_length=${search.turn_tokens}",
        # Several prompts do not fit into one step of the engine together: it must not split one.
        "actor_rollout_ref.rollout.max_num_batched_tokens=320",
        "trainer.total_training_steps=1",
        "trainer.val_before_train=false",
        "trainer.test_freq=1",
        url=NOWHERE,
    )
    assert run.code == 0, run.log[-5000:]
    metrics = run.metrics()[1]
    assert math.isfinite(metrics["actor/grad_norm"])
    assert metrics["search/searches_per_question"] == 0
    assert metrics["tokens/masked_share"] == 0
    rows = run.trajectories("rollouts", 1)
    assert len(rows) == 4 * 5
    assert {row["turns"] for row in rows} == {1}


@pytest.fixture(scope="module")
def sft_data(workshop: Path, world: Path, random_llama: Path, do: Do) -> Path:
    output = workshop / "sft.parquet"
    do("prepare", "sft", world / "train.parquet", "--model", random_llama, "--output", output)
    return output


def test_sft_learns_to_answer_at_once(
    workshop: Path, world: Path, random_llama: Path, sft_data: Path, do: Do
) -> None:
    policy, scores = workshop / "sft-policy", workshop / "sft-scores"
    do(
        *("warm-start", "--model", random_llama, "--data", sft_data, "--output", policy),
        *("--epochs", 8, "--learning-rate", 5e-3),
    )
    assert json.loads((policy / "fine_tuned_from.json").read_text())["steps"] == 128
    do(
        *("eval", policy, "--method", "sft", "--data", world / "test.parquet"),
        *("--output", scores, "--turn-tokens", 40, *SMALL),
    )
    rows = read_lines(scores / "trajectories.jsonl")
    assert sum(row["stop_reason"] == "answered" for row in rows) >= len(rows) - 1
    assert {row["searches"] for row in rows} == {0}


def test_verls_own_sft_trainer_takes_the_same_file(
    workshop: Path, random_llama: Path, sft_data: Path, do: Do
) -> None:
    run = workshop / "verl-sft"
    words = [
        *("--config-dir", "configs", "--config-name", "sft", "trainer.device=cpu"),
        *(f"model.path={random_llama}", f"data.train_files={sft_data}"),
        *("trainer.experiment_name=sft", f"trainer.default_local_dir={run}"),
        *("trainer.total_training_steps=2", "trainer.n_gpus_per_node=1", "data.train_batch_size=8"),
        *("model.use_remove_padding=false", "model.enable_gradient_checkpointing=false"),
        *("+model.override_config.attn_implementation=eager", "engine.use_torch_compile=false"),
        f"hydra.run.dir={run}/hydra",
    ]
    launch = ["-m", "torch.distributed.run", "--nproc-per-node", "1"]
    done = subprocess.run(
        [sys.executable, *launch, "-m", "verl.trainer.sft_trainer", *words],
        cwd=REPOSITORY,
        env=os.environ | cpu_environment(kv_cache_gib=1),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    assert "train/loss" in done.stdout
    do("merge", run / "global_step_2", workshop / "verl-sft-policy")


@pytest.fixture
def sample(run_command: Any, tiny_model: Path, server: Any) -> Any:
    """Samples two trajectories of each question in a file."""
    budgets = ("--turn-tokens", 64, "--observation-tokens", 200, "--sequence-tokens", 1280)
    engine = ("--temperature", 0.5, "--kv-cache-gib", 1)

    def run(data: Path, output: Path) -> subprocess.CompletedProcess[str]:
        return run_command(
            *("prepare", "rejection-samples", tiny_model, "--data", data, "--output", output),
            *("--retriever", server.url, "--samples", 2, *budgets, *engine),
        )

    return run


def test_rejection_sampling_keeps_what_is_right_with_its_tokens(
    workshop: Path, world: Path, tiny_model: Path, sample: Any, do: Do
) -> None:
    # The tiny model knows nothing: what it says at first becomes the gold answer.
    nothing = sample(world / "test.jsonl", workshop / "none.parquet")
    assert nothing.returncode == 2
    assert "no trajectory is right (16 trajectories of 8 questions" in nothing.stderr
    said = read_lines(workshop / "none.samples" / "1" / "answers.jsonl")
    answered = [row for row in said if row["answer"]]
    assert answered
    data, output = workshop / "said.jsonl", workshop / "right.parquet"
    keys = ("id", "question", "data_source")
    lines = [
        {key: row[key] for key in keys} | {"golden_answers": [row["answer"]]} for row in answered
    ]
    data.write_text("".join(json.dumps(line) + "\n" for line in lines))

    done = sample(data, output)
    assert done.returncode == 0, done.stderr
    assert "kept; " in done.stdout
    assert_exact(output, tiny_model, read_lines(workshop / "right.samples" / "1" / "answers.jsonl"))
    policy = workshop / "rejection-policy"
    do(*("warm-start", "--model", tiny_model, "--data", output, "--output", policy, "--steps", 2))


def assert_exact(output: Path, model: Path, stored: list[dict[str, Any]]) -> None:
    """The rows hold the ids of the trajectories, and train on what the model wrote alone."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    rows = pq.read_table(output).to_pylist()
    right = {row["id"]: row for row in stored if row["reward_parts"]["em"] == 1}
    first = {row["id"]: row for row in reversed(rows)}
    assert right
    for id_, row in right.items():
        ids, mask = first[id_]["input_ids"], first[id_]["mask"]
        assert (ids, mask) == (row["input_ids"], row["mask"])
        assert sum(mask) == row["sampled_tokens"]
        learnt = [token for token, kept in zip(ids, mask, strict=True) if kept]
        trained = tokenizer.decode(learnt, clean_up_tokenization_spaces=False)
        assert "<information>" not in trained
        for turn in row["transcript"]:
            assert turn["text"] in trained
