"""Estimators and losses that verl 0.9.1 offers but its trainer cannot, or does not, compute right.

Each refusal names what is missing upstream; tests/search_r1/exactness shows it on verl's own code.
What concerns masks and advantages of the others is shown there, too.
"""

from typing import Final

from omegaconf import DictConfig

from search_r1.checks.findings import Findings, Note, Problem, select
from search_r1.checks.sizes import Batches, needs_critic

_ACTOR = "actor_rollout_ref.actor"
_CORRECTION = "algorithm.rollout_correction"
_LOG_PROBS = "actor_rollout_ref.rollout.calculate_log_probs"
_ESTIMATOR = "algorithm.adv_estimator"
_LOSS = f"{_ACTOR}.policy_loss.loss_mode"

UNFED_ESTIMATORS: Final = {
    "remax": "verl 0.9.1's trainer rolls out no greedy baseline for it",
    "gdpo": "verl 0.9.1's trainer hands it no prompts and no parts of the reward",
    "optimal_token_baseline": "verl 0.9.1's trainer hands it no sum_pi_squared",
    "tir_optimal_token_baseline": "verl 0.9.1's trainer hands it no sum_pi_squared",
}
"""Estimators that stop the first step (trainer/ppo/v1/trainer_base.py, _compute_advantage)."""

BROKEN_LOSSES: Final = {
    "geo_mean": "averages over each micro-batch, so its gradient grows with their number",
}
"""Policy losses that are wrong as `actor.policy_loss.loss_mode` (trainer/ppo/core_algos.py)."""

_KL_TYPES: Final = ("kl", "k1", "abs", "mse", "k2", "low_var_kl", "k3")
_NO_EFFECT: Final = {"loss_type": "ppo_clip", "rollout_is": None, "rollout_rs": None}
"""Settings that verl's current trainer does not read in bypass mode, by their defaults."""


def check_algorithm(config: DictConfig) -> Findings:
    """The estimator gets what it needs, and loss, KL and corrections do what they say."""
    yield from _check_estimator(config)
    yield from _check_loss(config)
    yield from _check_kl(config)
    yield from _check_correction(config)
    yield from _check_padding(config)
    yield from _check_sampling(config)


def _check_estimator(config: DictConfig) -> Findings:
    estimator = config.algorithm.adv_estimator
    if estimator in UNFED_ESTIMATORS:
        message = f"{estimator}: {UNFED_ESTIMATORS[estimator]}"
        yield Problem(_ESTIMATOR, message, "gae, grpo, rloo or reinforce_plus_plus")
    if estimator == "gae" and not needs_critic(config):
        yield Problem("critic.enable", "gae needs the values of a critic", "true, or null")
    if estimator == "grpo_passk" and config.actor_rollout_ref.rollout.n < 2:
        message = "grpo_passk compares the two best of a group"
        yield Problem("actor_rollout_ref.rollout.n", message, "at least 2")
    if select(config, "algorithm.use_pf_ppo"):
        message = "verl 0.9.1's trainer gives the resampled advantages to other trajectories"
        yield Problem("algorithm.use_pf_ppo", message, "false")


def _check_loss(config: DictConfig) -> Findings:
    mode = select(config, _LOSS, "vanilla")
    if mode in BROKEN_LOSSES:
        message = f"{mode}: {BROKEN_LOSSES[mode]}"
        yield Problem(_LOSS, message, "vanilla, gspo or clip_cov")
    if mode == "dro" and not select(config, f"{_ACTOR}.policy_loss.dro_beta", 0) > 0:
        yield Problem(f"{_ACTOR}.policy_loss.dro_beta", "dro divides by it", "a number above 0")


def _check_kl(config: DictConfig) -> Findings:
    used = {
        "algorithm.kl_penalty": config.algorithm.use_kl_in_reward,
        f"{_ACTOR}.kl_loss_type": config.actor_rollout_ref.actor.use_kl_loss,
    }
    for field, is_used in used.items():
        kind = str(select(config, field))
        if is_used and kind.removesuffix("+") not in _KL_TYPES:
            yield Problem(field, f"verl cannot compute {kind}", " or ".join(_KL_TYPES))
    kind = config.algorithm.kl_ctrl.type
    if config.algorithm.use_kl_in_reward and kind not in {"fixed", "adaptive"}:
        yield Problem("algorithm.kl_ctrl.type", f"is {kind!r}", "fixed or adaptive")


def _check_correction(config: DictConfig) -> Findings:
    section = select(config, _CORRECTION, {})
    bypass = section.get("bypass_mode", False)
    uses_log_probs = bypass or section.get("rollout_is") or section.get("rollout_rs")
    if uses_log_probs and not select(config, _LOG_PROBS):
        yield Problem(_LOG_PROBS, f"{_CORRECTION} needs the engine's log-probabilities", "true")
    if not bypass and select(config, _LOSS) == "bypass_mode":
        message = "takes the old log-probabilities for the engine's, which they are not"
        yield Problem(_LOSS, message, f"{_CORRECTION}.bypass_mode=true")
    for name, default in _NO_EFFECT.items():
        if bypass and section.get(name, default) != default:
            message = "verl 0.9.1's trainer does not read it in bypass mode"
            fix = f"+{_ACTOR}.policy_loss.rollout_correction.{name}=..., and {_LOSS}=bypass_mode"
            yield Problem(f"{_CORRECTION}.{name}", message, fix)


def _check_padding(config: DictConfig) -> Findings:
    batches = Batches.of(config)
    empty = batches.trajectories - batches.sampled
    if empty >= batches.smallest_mini:
        message = (
            f"{batches.sampled} trajectories are filled up with {empty} empty ones, which can be a "
            f"whole mini-batch of {batches.smallest_mini}: its loss is 0/0"
        )
        field = "data.train_batch_size"
        yield Problem(field, message, "a multiple of every ppo_mini_batch_size")


def _check_sampling(config: DictConfig) -> Findings:
    rollout = config.actor_rollout_ref.rollout
    cuts = {"top_p": rollout.top_p < 1, "top_k": select(rollout, "top_k", -1) > 0}
    for name in (name for name, is_cut in cuts.items() if is_cut):
        text = "trajectories come from a cut distribution, but every loss takes them for the whole"
        yield Note(f"actor_rollout_ref.rollout.{name}", text, warning=True)
