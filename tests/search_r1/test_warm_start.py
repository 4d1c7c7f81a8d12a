"""The warm start's settings; with torch (slow), its loss and the folder it writes."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer import Typer
from typer.testing import CliRunner

from search_r1.warm_start import WarmStartConfig, warm_start_command

Row = dict[str, list[int]]

VOCABULARY = 40
ROWS: list[Row] = [
    {"input_ids": [5, 6, 7, 8, 9], "mask": [0, 0, 1, 1, 0]},
    {"input_ids": [5, 6, 10, 11, 12, 13, 14], "mask": [0, 0, 1, 0, 0, 1, 1]},
    {"input_ids": [5, 6, 15], "mask": [1, 0, 1]},
    {"input_ids": [5, 6, 15, 16, 17], "mask": [0, 1, 1, 1, 1]},
]


def config(folder: Path, **changes: Any) -> WarmStartConfig:
    values = {
        "model": str(folder / "model"),
        "data": folder / "demonstrations.parquet",
        "output": folder / "policy",
    }
    return WarmStartConfig(**values | changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"learning_rate": 0.0}, "learning_rate: 0.0 must be above 0"),
        ({"epochs": -1.0}, "epochs: -1.0 must be above 0"),
        ({"batch_size": 0}, "batch_size: 0 must be above 0"),
        ({"micro_batch_size": 0}, "micro_batch_size: 0 must be above 0"),
        ({"steps": 0}, "steps: 0 must be at least 1"),
        ({"warmup_share": 1.0}, "warmup_share: 1.0 must be"),
    ],
)
def test_a_setting_out_of_range_is_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        config(tmp_path, **changes)


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    pq.write_table(pa.Table.from_pylist(list(rows)), path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A Llama of two layers with random weights, its tokenizer, and four demonstrations."""
    import torch
    from tokenizers import Tokenizer, models
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    torch.set_num_threads(1)
    torch.manual_seed(0)
    shape = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        tie_word_embeddings=True,
    )
    model = LlamaForCausalLM(shape)
    model.generation_config.max_new_tokens = 7
    model.to(torch.bfloat16).save_pretrained(tmp_path / "model")
    words = {f"w{number}": number for number in range(VOCABULARY)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="w0"))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="w1").save_pretrained(
        tmp_path / "model"
    )
    write_rows(tmp_path / "demonstrations.parquet", ROWS)
    return tmp_path


@pytest.fixture
def invoke(folder: Path) -> Callable[..., Any]:
    """Runs the command with the folder's files and further arguments."""
    app = Typer()
    app.command()(warm_start_command)

    def run(*arguments: object) -> Any:
        paths = ("--model", folder / "model", "--data", folder / "demonstrations.parquet")
        given = (*paths, "--output", folder / "policy", *arguments)
        return CliRunner().invoke(app, [str(argument) for argument in given])

    return run


@pytest.mark.slow
def test_a_batch_keeps_the_positions_whose_next_token_is_trained() -> None:
    from search_r1.masked_loss import collate

    batch = {name: value.tolist() for name, value in collate(ROWS[:3]).items()}
    assert batch == {
        "input_ids": [[5, 6, 7, 8, 9, 0, 0], [5, 6, 10, 11, 12, 13, 14], [5, 6, 15, 0, 0, 0, 0]],
        "attention_mask": [[1, 1, 1, 1, 1, 0, 0], [1] * 7, [1, 1, 1, 0, 0, 0, 0]],
        "logits_to_keep": [1, 2, 4, 5],
        "labels": [[7, 8, -100, -100], [10, -100, 13, 14], [15, -100, -100, -100]],
    }


@pytest.mark.slow
def test_the_loss_is_the_mean_over_the_trained_tokens_whatever_the_micro_batch(
    folder: Path,
) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    from search_r1.masked_loss import collate, masked_loss

    model = AutoModelForCausalLM.from_pretrained(folder / "model", dtype=torch.float32)
    log_likelihoods = []
    for row in ROWS:
        logs = model(torch.tensor([row["input_ids"]])).logits[0].log_softmax(-1)
        log_likelihoods += [
            logs[position - 1, row["input_ids"][position]]
            for position in range(1, len(row["mask"]))
            if row["mask"][position]
        ]
    expected = -torch.stack(log_likelihoods).mean()
    tokens = torch.tensor(len(log_likelihoods))
    assert tokens == 10
    for size in (1, 2, 4):
        total = torch.tensor(0.0)
        for start in range(0, len(ROWS), size):
            batch = collate(ROWS[start : start + size])
            labels = batch.pop("labels")
            total = total + masked_loss(model(**batch), labels, tokens)
        torch.testing.assert_close(total, expected)


@pytest.mark.slow
def test_it_learns_the_masked_tokens_and_writes_a_whole_folder(folder: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from search_r1.fine_tune import fine_tune

    summary = fine_tune(config(folder, steps=40, learning_rate=2e-2))
    assert (summary.steps, summary.demonstrations) == (40, 4)
    policy = AutoModelForCausalLM.from_pretrained(folder / "policy")
    assert policy.dtype == torch.bfloat16
    assert policy.config.use_cache
    assert policy.generation_config.max_new_tokens == 7
    assert policy.lm_head.weight.data_ptr() == policy.model.embed_tokens.weight.data_ptr()
    assert len(AutoTokenizer.from_pretrained(folder / "policy")) == VOCABULARY
    made_from = json.loads((folder / "policy" / "fine_tuned_from.json").read_text())
    assert made_from["settings"]["data"] == str(folder / "demonstrations.parquet")
    assert made_from["settings"]["learning_rate"] == 2e-2
    assert made_from["data"].startswith(f"{(folder / 'demonstrations.parquet').stat().st_size} ")
    assert (made_from["steps"], made_from["loss"]) == (40, summary.loss)
    predicted = policy(torch.tensor([ROWS[1]["input_ids"]])).logits[0].argmax(-1).tolist()
    assert predicted[4:6] == [13, 14]
    # 11 and 12 stand where the mask is 0, so nothing was learnt of them.
    assert predicted[2:4] != [11, 12]
    assert sorted(path.name for path in folder.iterdir()) == [
        "demonstrations.parquet",
        "model",
        "policy",
    ]


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


@pytest.mark.slow
def test_the_same_seed_gives_the_same_weights(folder: Path) -> None:
    from search_r1.fine_tune import fine_tune

    def train(name: str, seed: int) -> bytes:
        fine_tune(config(folder, output=folder / name, epochs=3, batch_size=1, seed=seed))
        return weights(folder / name)

    assert train("a", 0) == train("b", 0) != train("c", 1)


@pytest.mark.slow
def test_a_run_that_is_killed_leaves_no_folder_and_can_be_started_again(
    folder: Path, invoke: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from search_r1 import fine_tune

    with monkeypatch.context() as patch:
        patch.setattr(fine_tune, "_save", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert invoke("--steps", 1).exit_code != 0
    assert not (folder / "policy").exists()
    result = invoke("--steps", 1)
    assert result.exit_code == 0, result.output
    assert "1 steps on 4 demonstrations" in result.output
    assert not (folder / ".policy.partial").exists()
    again = invoke("--steps", 1)
    assert again.exit_code == 2
    assert "policy exists: remove it" in again.output


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "has no column of lists ['input_ids', 'mask']"),
        ([{"input_ids": [1, 2]}], "has no column of lists ['mask']"),
        ([ROWS[0], {"input_ids": [1, 2], "mask": [1]}], "row 1: mask is not as long as input_ids"),
        ([{"input_ids": [1, 2], "mask": [1, 0]}], "row 0: mask trains no token"),
    ],
)
def test_bad_demonstrations_are_named(
    folder: Path, invoke: Callable[..., Any], rows: list[Row], message: str
) -> None:
    write_rows(folder / "demonstrations.parquet", rows)
    result = invoke()
    assert result.exit_code == 2
    assert f"demonstrations.parquet: {message}" in result.output
    assert "make it with search-r1 prepare demonstrations" in result.output


@pytest.mark.slow
def test_an_output_that_cannot_be_made_is_refused(folder: Path, invoke: Callable[..., Any]) -> None:
    (folder / "file").touch()
    result = invoke("--output", folder / "file" / "policy")
    assert result.exit_code == 2
    assert f"output: {folder / 'file'} is a file" in result.output


@pytest.mark.slow
def test_a_batch_that_does_not_divide_is_refused(invoke: Callable[..., Any]) -> None:
    result = invoke("--batch-size", 3, "--micro-batch-size", 2)
    assert result.exit_code == 2
    assert "batch_size: 3 must be a multiple of 2" in result.output


@pytest.mark.slow
@pytest.mark.parametrize("fsdp", [False, True])
def test_two_processes_train_as_one_does(folder: Path, fsdp: bool) -> None:
    from safetensors.torch import load_file

    from search_r1.fine_tune import fine_tune

    alone = config(folder, steps=5, learning_rate=1e-2)
    fine_tune(alone)
    command = f"""
from pathlib import Path
from search_r1.fine_tune import fine_tune
from search_r1.warm_start import WarmStartConfig
folder = Path({str(folder)!r})
fine_tune(WarmStartConfig(model=str(folder / "model"), data=folder / "demonstrations.parquet",
    output=folder / "both", steps=5, learning_rate=1e-2, fsdp={fsdp}))
"""
    script = folder / "train.py"
    script.write_text(command)
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", str(script)]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(launch, capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    one, two = (load_file(folder / name / "model.safetensors") for name in ("policy", "both"))
    assert one.keys() == two.keys()
    for name, tensor in one.items():
        assert (tensor.float() - two[name].float()).abs().max() < 0.02, name
    assert json.loads((folder / "both" / "config.json").read_text())["dtype"] == "bfloat16"
