"""verl's FSDP engine for the policy, with fewer logits, on a CPU.

Most tokens of a search trajectory are not trained: prompt and passages. verl computes logits over
the whole vocabulary for all of them, a large part of the work where the model is small.
Importing this module registers it; configs/hardware/cpu.yaml names it as `external_lib`. A process
that does not, such as the critic's, takes verl's own engine.
"""

from typing import Any

import torch
from tensordict import TensorDict
from verl.utils import torch_functional
from verl.utils.tensordict_utils import get_non_tensor_data
from verl.workers.engine import EngineRegistry
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead

from search_r1.platform import ENGINE_DEVICE, PLATFORM_NAME

_ON_REQUEST = {
    "entropy": torch_functional.entropy_from_logits,
    "sum_pi_squared": torch_functional.calculate_sum_pi_squared_from_logits,
}
"""What else verl asks of the logits, (..., vocabulary) -> (...)."""


@EngineRegistry.register(
    "language_model", ["fsdp", "fsdp2"], device=ENGINE_DEVICE, vendor=PLATFORM_NAME
)
class TrainedTokensEngine(FSDPEngineWithLMHead):  # type: ignore[misc] # verl is not typed
    """Log-probabilities of the tokens whose `response_mask` is 1; 0 for all others.

    A forward pass without padding removal and fused kernels is assumed, as on every CPU.
    """

    def prepare_model_inputs(
        self, micro_batch: TensorDict
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Verl's inputs, and `logits_to_keep`: where any of the B rows has a trained token next."""
        inputs, output_args = super().prepare_model_inputs(micro_batch)
        trained = trained_positions(micro_batch)
        kept = trained.any(dim=0).nonzero().squeeze(1)
        output_args |= {
            "trained": trained[:, kept],
            "kept": kept,
            "labels": inputs["input_ids"][:, kept + 1],
        }
        return inputs | {"logits_to_keep": kept}, output_args

    def prepare_model_outputs(
        self,
        output: Any,
        output_args: dict[str, Any],
        micro_batch: TensorDict,
        logits_processor_func: Any,
    ) -> dict[str, torch.Tensor]:
        """Nested tensors over all tokens, as verl's own: position t speaks of token t + 1."""
        logits = output.logits.float() / output_args["temperature"][:, None, None]
        lengths = micro_batch["input_ids"].offsets().diff()
        log_probs = logits.log_softmax(-1).gather(-1, output_args["labels"][..., None]).squeeze(-1)
        results = {"log_probs": log_probs}
        for name, function in _ON_REQUEST.items():
            if get_non_tensor_data(micro_batch, f"calculate_{name}", default=False):
                results[name] = function(logits)
        return {
            name: _spread(values.where(output_args["trained"], 0), output_args["kept"], lengths)
            for name, values in results.items()
        }


def trained_positions(micro_batch: TensorDict) -> torch.Tensor:
    """Where the next token is trained: bool, (B, T), T the length of the longest row.

    Args:
        micro_batch: nested int tensors `input_ids`, a prompt and a response a row, and
            `response_mask`, 1 on the tokens of the response that are trained.
    """
    lengths = micro_batch["input_ids"].offsets().diff().tolist()
    trained = torch.zeros(len(lengths), max(lengths), dtype=torch.bool)
    for row, length, mask in zip(
        trained, lengths, micro_batch["response_mask"].unbind(), strict=True
    ):
        row[length - len(mask) - 1 : length - 1] = mask.bool()
    return trained


def _spread(values: torch.Tensor, kept: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """Values (B, K) at the kept positions, 0 elsewhere, as a nested tensor of these lengths."""
    longest = int(lengths.max())
    dense = values.new_zeros(len(values), longest).index_copy(1, kept, values)
    inside = torch.arange(longest) < lengths[:, None]
    offsets = torch.nn.functional.pad(lengths.cumsum(0), (1, 0))
    return torch.nested.nested_tensor_from_jagged(dense[inside], offsets)
