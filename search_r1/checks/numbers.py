"""Settings that must be counts, checked first: the other checks compute with them."""

from omegaconf import DictConfig

from search_r1.checks.findings import Findings, Problem, select

COUNTS = (
    "trainer.nnodes",
    "trainer.n_gpus_per_node",
    "data.train_batch_size",
    "data.max_prompt_length",
    "data.max_response_length",
    "actor_rollout_ref.actor.ppo_mini_batch_size",
    "actor_rollout_ref.rollout.n",
    "actor_rollout_ref.rollout.tensor_model_parallel_size",
    "actor_rollout_ref.rollout.max_model_len",
)
OPTIONAL_COUNTS = (
    "trainer.total_training_steps",
    "trainer.total_epochs",
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu",
    "actor_rollout_ref.actor.ppo_max_token_len_per_gpu",
    "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu",
    "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu",
    "critic.ppo_mini_batch_size",
)


def check_numbers(config: DictConfig) -> Findings:
    """Every count is a whole number of at least 1, and those without a default are given."""
    for field in COUNTS + OPTIONAL_COUNTS:
        value = select(config, field)
        if value is None and field in OPTIONAL_COUNTS:
            continue
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            message = f"is {value!r}, not a whole number of at least 1"
            yield Problem(field, message, f"set {field} to a count")
