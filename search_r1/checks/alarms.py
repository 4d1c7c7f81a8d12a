"""The ``alarms:`` section, and that verl can do what each alarm asks for."""

import math
import re

from omegaconf import DictConfig

from search_r1.checks.findings import Findings, Note, Problem, select
from search_r1.stability.catalogue import DETECTORS
from search_r1.stability.detector import Action
from search_r1.stability.keeper import FSDP
from search_r1.stability.settings import AlarmSettings, alarm_settings

_CORRECTION = "algorithm.rollout_correction"


def check_alarms(config: DictConfig) -> Findings:
    """The section is one that the guard takes, and its actions are possible."""
    try:
        settings = alarm_settings(config)
    except (TypeError, ValueError) as error:
        field = re.search(r"alarms(\.\w+)+", str(error))
        yield Problem(field.group() if field else "alarms", str(error), "see configs/base.yaml")
        return
    yield from _check_skipping(config, settings)
    yield from _check_rate(config, settings)
    if settings.those_that(Action.ROLL_BACK):
        yield from _check_rollback(config, settings)
    yield from _check_retention(config)


def _check_skipping(config: DictConfig, settings: AlarmSettings) -> Findings:
    possible = [name for name, one in DETECTORS.items() if one.known_before_update]
    for detector in settings.those_that(Action.SKIP_UPDATE):
        field = f"alarms.{detector.name}.action"
        if not detector.known_before_update:
            message = "skip_update cannot cure a policy: without updates the alarm never ends"
            yield Problem(field, message, f"another action; only {', '.join(possible)} can skip")
        elif detector.name == "ratio_tail" and select(config, f"{_CORRECTION}.bypass_mode"):
            message = "with bypass_mode the engine's log-probabilities are compared with nothing"
            yield Problem(field, message, f"log, or {_CORRECTION}.bypass_mode=false")


def _check_rate(config: DictConfig, settings: AlarmSettings) -> Findings:
    strategy = config.actor_rollout_ref.actor.strategy
    for action in (Action.LOWER_RATE, Action.ROLL_BACK):
        for detector in settings.those_that(action):
            if strategy not in FSDP:
                message = f"{action} cannot set the learning rate of strategy {strategy}"
                fix = f"log, stop, or a strategy of {', '.join(sorted(FSDP))}"
                yield Problem(f"alarms.{detector.name}.action", message, fix)


def _check_rollback(config: DictConfig, settings: AlarmSettings) -> Findings:
    save, test = config.trainer.save_freq, config.trainer.test_freq
    last = select(config, "trainer.total_training_steps", math.inf)
    names = ", ".join(one.name for one in settings.those_that(Action.ROLL_BACK))
    if save <= 0 or test <= 0 or math.lcm(save, test) > last:
        message = f"{names} would roll back, but no checkpoint is ever validated"
        yield Problem("trainer.save_freq", message, "trainer.test_freq and save_freq alike")


def _check_retention(config: DictConfig) -> Findings:
    actor, critic = (f"trainer.max_{role}_ckpt_to_keep" for role in ("actor", "critic"))
    limits = {select(config, field) for field in (actor, critic)} - {None}
    if len(limits) > 1:
        text = f"checkpoints are kept whole: {max(limits)} of policy and critic, and the best one"
        yield Note(actor, text)
    if limits and select(config, "actor_rollout_ref.actor.checkpoint.async_save"):
        text = "with checkpoint.async_save verl removes old checkpoints, also the best one"
        yield Note(actor, text, warning=True)
