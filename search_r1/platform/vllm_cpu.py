"""What vLLM's CPU build needs so that its weights can be updated while it serves.

vLLM calls `register` in each of its processes: entry point of the group ``vllm.general_plugins``.
"""

import functools
from collections.abc import Callable
from typing import Any

from search_r1.platform import is_selected

Weights = list[tuple[str, Any]]


def register() -> None:
    """Apply the patches in a process of a CPU run; do nothing in any other."""
    if is_selected():
        keep_linear_weights()
        copy_received_weights()


def keep_linear_weights() -> None:
    """vllm/model_executor/layers/linear.py drops each weight once it is packed for the CPU.

    A later update then finds nothing to load into. The weight is kept, and packed again after
    each update, because verl calls ``process_weights_after_loading`` at its end.
    """
    from vllm.model_executor.layers import utils

    pack = utils.dispatch_cpu_unquantized_gemm

    @functools.wraps(pack)
    def pack_and_keep(layer: Any, remove_weight: bool) -> None:  # noqa: ARG001
        pack(layer, remove_weight=False)

    utils.dispatch_cpu_unquantized_gemm = pack_and_keep


def copy_received_weights() -> None:
    """verl/workers/rollout/vllm_rollout/bucketed_weight_transfer.py hands out views of its buffer.

    ``tensor.to(device)`` copies on an accelerator but not on a CPU, and a view that outlives the
    bucket keeps the shared memory from closing.
    """
    from verl.workers.rollout.vllm_rollout.bucketed_weight_transfer import BucketedWeightReceiver

    receive = BucketedWeightReceiver.receive_weights

    def receive_copies(self: Any, on_bucket_received: Callable[[Weights, bool], None]) -> None:
        def with_copies(weights: Weights, is_last: bool) -> None:
            on_bucket_received([(name, tensor.clone()) for name, tensor in weights], is_last)

        receive(self, with_copies)

    BucketedWeightReceiver.receive_weights = receive_copies
