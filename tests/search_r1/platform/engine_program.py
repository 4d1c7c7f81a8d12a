"""Runs verl's engine and the CPU platform's on the same rows; prints how far they differ, as JSON.

A program of its own, run by test_engine.py in the platform's environment.
"""

import json
import sys
from types import SimpleNamespace
from typing import Any

import torch
import verl  # noqa: F401 - enters the platform
from tensordict import TensorDict
from transformers import LlamaConfig, LlamaForCausalLM
from verl.utils.tensordict_utils import assign_non_tensor
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead

from search_r1.platform.engine import TrainedTokensEngine, trained_positions

PROMPTS, MASKS = (3, 5, 2), ([1, 1, 0, 0, 0, 1], [1], [0])
VOCABULARY = 64


def rows(temperature: float) -> TensorDict:
    lengths = [prompt + len(mask) for prompt, mask in zip(PROMPTS, MASKS, strict=True)]

    def nested(values: list[torch.Tensor]) -> torch.Tensor:
        return torch.nested.nested_tensor(values, layout=torch.jagged)

    data = TensorDict(
        {
            "input_ids": nested([torch.randint(VOCABULARY, (n,)) for n in lengths]),
            "position_ids": nested([torch.arange(n) for n in lengths]),
            "response_mask": nested([torch.tensor(mask) for mask in MASKS]),
        },
        batch_size=[len(lengths)],
    )
    assign_non_tensor(
        data, temperature=temperature, calculate_entropy=True, use_remove_padding=False
    )
    return data


def run(engine_class: type[Any], model: torch.nn.Module, data: TensorDict) -> dict[str, Any]:
    engine = engine_class.__new__(engine_class)
    engine.pad_to_length = False
    engine.engine_config = SimpleNamespace(entropy_checkpointing=False)
    inputs, output_args = engine.prepare_model_inputs(data)
    return dict(engine.prepare_model_outputs(model(**inputs), output_args, data, None))


def trained(output: dict[str, Any], name: str, mask: torch.Tensor) -> torch.Tensor:
    dense = torch.nested.to_padded_tensor(output[name], padding=0.0, output_size=mask.shape)
    return torch.where(mask, dense, 0)


def gradient(output: dict[str, Any], model: torch.nn.Module, mask: torch.Tensor) -> torch.Tensor:
    model.zero_grad()
    trained(output, "log_probs", mask).sum().backward()
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def main() -> None:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
    )
    model = LlamaForCausalLM(config)
    data = rows(temperature=0.7)
    mask = trained_positions(data)
    verls, ours = (run(c, model, data) for c in (FSDPEngineWithLMHead, TrainedTokensEngine))
    answer: dict[str, object] = {
        f"{name} differs by": (trained(ours, name, mask) - trained(verls, name, mask)).abs().max()
        for name in ("log_probs", "entropy")
    }
    answer["gradient differs by"] = (
        (gradient(ours, model, mask) - gradient(verls, model, mask)).abs().max()
    )
    answer["trained"] = mask.sum()
    answer["not 0"] = sum((ours["log_probs"].values() != 0).tolist())
    answer["lengths"] = ours["log_probs"].offsets().diff() - verls["log_probs"].offsets().diff()
    json.dump(answer, sys.stdout, default=lambda tensor: tensor.tolist())


if __name__ == "__main__":
    main()
