"""What the checks say of alarms and remedies."""

from collections.abc import Callable
from pathlib import Path

import pytest
from omegaconf import DictConfig, OmegaConf

from search_r1.check import check
from search_r1.checks.alarms import check_alarms
from search_r1.checks.findings import Note, Problem
from search_r1.checks.remedies import check_remedies
from search_r1.config import config_folder

REMEDIES = sorted(path.stem for path in (config_folder() / "remedies").glob("*.yaml"))


@pytest.fixture(scope="module")
def grpo(composed: Callable[..., DictConfig]) -> DictConfig:
    return composed("grpo")


@pytest.fixture
def changed(grpo: DictConfig) -> Callable[..., DictConfig]:
    def make(**changes: object) -> DictConfig:
        config = grpo.copy()
        for field, value in changes.items():
            OmegaConf.update(config, field.replace("__", "."), value, force_add=True)
        return config

    return make


Changed = Callable[..., DictConfig]


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"alarms__repetition__action": "halt"}, "alarms.repetition.action", "not one of"),
        ({"alarms__max_rollbacks": 1.5}, "alarms.max_rollbacks", "a whole number"),
        (
            {"alarms__repetition__action": "skip_update"},
            "alarms.repetition.action",
            "without updates the alarm never ends",
        ),
        (
            {
                "alarms__ratio_tail__action": "skip_update",
                "algorithm__rollout_correction__bypass_mode": True,
            },
            "alarms.ratio_tail.action",
            "compared with nothing",
        ),
        (
            {
                "alarms__repetition__action": "lower_rate",
                "actor_rollout_ref__actor__strategy": "megatron",
            },
            "alarms.repetition.action",
            "lower_rate cannot set the learning rate of strategy megatron",
        ),
        (
            {"alarms__repetition__action": "roll_back", "trainer__test_freq": -1},
            "trainer.save_freq",
            "repetition would roll back, but no checkpoint is ever validated",
        ),
        (
            {"alarms__repetition__action": "roll_back", "trainer__test_freq": 37},
            "trainer.save_freq",  # 37 and 50 first meet at step 1,850 of 500
            "no checkpoint is ever validated",
        ),
    ],
)
def test_what_cannot_be_done_is_refused(
    changed: Changed, changes: dict[str, object], field: str, message: str
) -> None:
    [problem] = check_alarms(changed(**changes))
    assert isinstance(problem, Problem)
    assert problem.field == field
    assert message in problem.message


@pytest.mark.parametrize("action", ["log", "stop", "lower_rate", "roll_back"])
def test_every_alarm_can_do_what_needs_no_look_ahead(changed: Changed, action: str) -> None:
    names = changed().alarms
    every = {f"alarms__{name}__action": action for name, one in names.items() if one is not None}
    every = {field: one for field, one in every.items() if OmegaConf.is_dict(names[field[8:-8]])}
    assert list(check_alarms(changed(**every))) == []


def test_kept_checkpoints_are_whole(changed: Changed) -> None:
    limits = {"trainer__max_actor_ckpt_to_keep": 3, "trainer__max_critic_ckpt_to_keep": 1}
    [note] = check_alarms(changed(**limits))
    assert isinstance(note, Note)
    assert "3 of policy and critic" in note.text


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        (
            {
                "actor_rollout_ref__actor__policy_loss__loss_mode": "likelihood_preserving",
                "actor_rollout_ref__actor__ppo_mini_batch_size": 512,
            },
            "the term is 0",
        ),
        (
            {"algorithm__filter_groups__enable": True, "actor_rollout_ref__rollout__n": 1},
            "nothing is filtered",
        ),
        ({"algorithm__kl_ctrl__type": "adaptive"}, "which is off"),
    ],
)
def test_a_remedy_that_would_do_nothing_is_told(
    changed: Changed, changes: dict[str, object], text: str
) -> None:
    [note] = check_remedies(changed(**changes))
    assert isinstance(note, Note)
    assert note.warning
    assert text in note.text


@pytest.mark.parametrize("name", ["ppo", "cpu_quickstart"])
def test_all_remedies_together_compose_with_a_config(
    composed: Callable[..., DictConfig], name: str
) -> None:
    config = composed(name, f"+remedies=[{','.join(REMEDIES)}]")
    assert check(config).problems == ()
    assert "search_r1.agent_loop" in config.actor_rollout_ref.model.external_lib


@pytest.mark.parametrize("algorithm", ["ppo", "grpo"])
@pytest.mark.parametrize("remedy", REMEDIES)
def test_each_remedy_passes_the_check_with_each_algorithm(
    grpo: DictConfig, algorithm: str, remedy: str
) -> None:
    # Merged as hydra does, which takes a second each time.
    parts = (f"algo/{algorithm}", f"remedies/{remedy}")
    files = [OmegaConf.load(config_folder() / f"{part}.yaml") for part in parts]
    config = OmegaConf.merge(grpo, *files)
    assert isinstance(config, DictConfig)
    assert check(config).problems == ()


@pytest.mark.parametrize("remedy", REMEDIES)
def test_a_remedy_says_what_it_cures_what_it_costs_and_whence_it_is(remedy: str) -> None:
    text = (Path(config_folder()) / "remedies" / f"{remedy}.yaml").read_text()
    assert text.startswith("# @package _global_\n")
    assert all(f"# {word}: " in text for word in ("Cures", "How", "Cost", "Source"))
