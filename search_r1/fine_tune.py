"""Supervised fine-tuning of a Hugging Face folder: loss on the tokens whose mask is 1, only there.

Used by `search_r1.warm_start`; the loop, the devices and the precision are transformers' Trainer.
"""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import torch
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    Trainer,
    TrainingArguments,
    set_seed,
)
from transformers.trainer_utils import TrainOutput

from search_r1.files import file_fingerprint, require_new, write_lines
from search_r1.masked_loss import collate, masked_loss, read_demonstrations
from search_r1.platform.precision import cpu_dtype
from search_r1.warm_start import WarmStartConfig

TUNED_FROM: Final = "fine_tuned_from.json"
"""In the written folder: its data and settings, and what came of them."""
_LOGS: Final = 10
"""How often a run reports its loss."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What a warm start did."""

    demonstrations: int
    steps: int
    loss: float
    """Mean over the run, in nats a trained token."""
    seconds: float

    def __str__(self) -> str:
        return (
            f"{self.steps} steps on {self.demonstrations:,} demonstrations in "
            f"{self.seconds:.0f} s, mean loss {self.loss:.3f}"
        )


def fine_tune(config: WarmStartConfig) -> Summary:
    """Train on the demonstrations and write the policy's folder, its weights in bfloat16.

    The folder appears only once it is complete. Under torchrun every process calls this.

    Raises:
        OSError: the output exists, or cannot be made there.
        ValueError: a row of the data is wrong, or the machine and the config do not fit.
    """
    require_new(config.output)
    rows = read_demonstrations(config.data)
    partial = config.output.with_name(f".{config.output.name}.partial")
    set_seed(config.seed)
    tokenizer = AutoTokenizer.from_pretrained(config.model)
    model = AutoModelForCausalLM.from_pretrained(config.model, dtype=torch.float32)
    # Sharding changes the class of the model, and the Trainer its use of a cache.
    architecture, use_cache = type(model), model.config.use_cache
    trainer = Trainer(
        model,
        _arguments(config, partial),
        data_collator=collate,
        train_dataset=rows,
        compute_loss_func=masked_loss,
    )
    done = trainer.train()
    weights = trainer.accelerator.get_state_dict(trainer.model_wrapped)
    if trainer.is_world_process_zero():
        shutil.rmtree(partial, ignore_errors=True)
        tokenizer.save_pretrained(partial)
        model.config.use_cache = use_cache
        _save(architecture, model, weights, partial)
        write_lines(partial / TUNED_FROM, [json.dumps(_origin(config, done), indent=2)])
        partial.replace(config.output)
    trainer.accelerator.wait_for_everyone()
    return Summary(len(rows), done.global_step, done.training_loss, done.metrics["train_runtime"])


def _origin(config: WarmStartConfig, done: TrainOutput) -> dict[str, Any]:
    """What the folder was made of and how, as JSON data."""
    paths = {"data": str(config.data.resolve()), "output": str(config.output.resolve())}
    return {
        "settings": asdict(config) | paths,
        "data": file_fingerprint(config.data),
        "steps": done.global_step,
        "loss": done.training_loss,
    }


def _arguments(config: WarmStartConfig, folder: Path) -> TrainingArguments:
    shares = _world_size() * config.micro_batch_size
    if config.batch_size % shares:
        raise ValueError(
            f"batch_size: {config.batch_size} must be a multiple of {shares}, the devices times "
            "micro_batch_size"
        )
    return TrainingArguments(
        output_dir=str(folder),
        learning_rate=config.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=config.warmup_share,
        num_train_epochs=config.epochs,
        max_steps=config.steps or -1,
        per_device_train_batch_size=config.micro_batch_size,
        gradient_accumulation_steps=config.batch_size // shares,
        gradient_checkpointing=config.gradient_checkpointing and not config.fsdp,
        fsdp="full_shard auto_wrap" if config.fsdp else "",
        fsdp_config=_fsdp(config) if config.fsdp else None,
        seed=config.seed,
        use_cpu=not torch.cuda.is_available(),
        bf16=_bfloat16_is_fast(),
        logging_steps=1 / _LOGS,
        save_strategy="no",
        report_to="none",
        remove_unused_columns=False,
    )


def _fsdp(config: WarmStartConfig) -> dict[str, Any]:
    return {"fsdp_version": 2, "activation_checkpointing": config.gradient_checkpointing}


def _world_size() -> int:
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    if processes == 1 and torch.cuda.device_count() > 1:
        raise ValueError(
            f"{torch.cuda.device_count()} GPUs are visible to one process; start it with torchrun "
            "--nproc-per-node N --no-python search-r1 warm-start, or set CUDA_VISIBLE_DEVICES=0"
        )
    return processes


def _bfloat16_is_fast() -> bool:
    """Whether matrices in bfloat16 are multiplied by the hardware, not in emulation."""
    if torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return cpu_dtype() == "bfloat16"


def _save(
    architecture: type[PreTrainedModel],
    model: PreTrainedModel,
    weights: Mapping[str, torch.Tensor],
    folder: Path,
) -> None:
    """Write the trained weights; `model` itself may hold but one shard of them."""
    saved = architecture.from_pretrained(
        None, config=model.config, state_dict=weights, dtype=torch.bfloat16
    )
    saved.generation_config = model.generation_config
    saved.save_pretrained(folder)
