"""Settings that must be counts, checked first: the other checks compute with them."""

from omegaconf import DictConfig

from search_r1.checks.findings import Findings, Problem, select

COUNTS = (
    "trainer.nnodes",
    "trainer.n_gpus_per_node",
    "trainer.total_epochs",
    "data.train_batch_size",
    "data.max_prompt_length",
    "data.max_response_length",
    "actor_rollout_ref.actor.ppo_mini_batch_size",
    "actor_rollout_ref.actor.ppo_epochs",
    "actor_rollout_ref.rollout.n",
    "actor_rollout_ref.rollout.tensor_model_parallel_size",
    "actor_rollout_ref.rollout.max_model_len",
)
OPTIONAL_COUNTS = (
    "trainer.total_training_steps",
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu",
    "actor_rollout_ref.actor.ppo_max_token_len_per_gpu",
    "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu",
    "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu",
    "critic.ppo_mini_batch_size",
)


WHOLE_NUMBERS = (
    "trainer.save_freq",
    "trainer.test_freq",
    "data.train_max_samples",
    "actor_rollout_ref.rollout.max_num_batched_tokens",
    "actor_rollout_ref.rollout.val_kwargs.n",
)
"""These may be negative, which verl reads as never or as all."""


def check_numbers(config: DictConfig) -> Findings:
    """Every count is a whole number of at least 1, and those without a default are given."""
    for field in COUNTS + OPTIONAL_COUNTS:
        value = select(config, field)
        if value is None and field in OPTIONAL_COUNTS:
            continue
        if not _is_whole(value) or value < 1:
            message = f"is {value!r}, not a whole number of at least 1"
            yield Problem(field, message, f"set {field} to a count")
    for field in WHOLE_NUMBERS:
        value = select(config, field)
        if not _is_whole(value):
            yield Problem(field, f"is {value!r}, not a whole number", f"set {field} to one")


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
