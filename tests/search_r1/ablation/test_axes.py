import pytest

from search_r1.ablation.axes import (
    Choice,
    axis_choices,
    axis_names,
    axis_values,
    sweep_choices,
)
from search_r1.check import check
from search_r1.config import ConfigError, compose

AXES = {
    "algorithm": ["grpo", "ppo"],
    "group_size": ["n1", "n3", "n5"],
    "mask": ["off", "on"],
    "model": ["base", "instruct"],
    "retriever": ["bm25", "e5"],
    "top_k": ["top1", "top3", "top5"],
}


def test_the_axes_are_those_of_the_paper() -> None:
    assert {axis: axis_values(axis) for axis in axis_names()} == AXES


@pytest.mark.parametrize("place", range(3))
def test_every_value_makes_a_config_that_can_run(place: int, run_overrides: list[str]) -> None:
    """Three configs hold all values: of each axis the first, the second, the last."""
    chosen = [
        f"+ablations/{axis}={values[min(place, len(values) - 1)]}" for axis, values in AXES.items()
    ]
    model = "actor_rollout_ref.model.path"
    overrides = [one for one in run_overrides if not one.startswith(model)]
    config = compose("grpo", [*overrides, *chosen])
    assert check(config).problems == ()
    assert config.actor_rollout_ref.model.path == "Qwen/Qwen2.5-7B" + "-Instruct" * (place > 0)


def test_the_values_set_what_they_say(run_overrides: list[str]) -> None:
    chosen = ("mask=off", "top_k=top5", "group_size=n3", "algorithm=grpo", "retriever=bm25")
    config = compose("ppo", [*run_overrides, *(f"+ablations/{choice}" for choice in chosen)])
    assert config.search.mask_retrieved is False
    assert config.search.top_k == 5
    assert config.search.urls == ["http://127.0.0.1:8001/retrieve"]
    assert config.actor_rollout_ref.rollout.n == 3
    assert config.actor_rollout_ref.actor.use_kl_loss is True
    assert (config.algorithm.adv_estimator, config.algorithm.use_kl_in_reward) == ("grpo", False)


def test_the_mask_differs_in_nothing_else(small_config: str) -> None:
    name = "trainer.experiment_name=x"
    on, off = (compose(small_config, [name, f"+ablations/mask={value}"]) for value in ("on", "off"))
    assert (on.search.mask_retrieved, off.search.mask_retrieved) == (True, False)
    on.search.mask_retrieved = False
    on.ray_kwargs = off.ray_kwargs  # the times of their starts
    assert on == off
    assert off.algorithm.rollout_correction.bypass_mode is False


def test_an_axis_has_all_its_values_or_those_that_are_named() -> None:
    assert [choice.value for choice in axis_choices("top_k")] == ["top1", "top3", "top5"]
    assert axis_choices("mask=off") == [Choice("mask", "off", ("+ablations/mask=off",))]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("masks", "no such axis; give one of algorithm, group_size, mask, model"),
        ("top_k=top1,2", "no such value 2; give some of top1, top3, top5, or sweep its field"),
    ],
)
def test_an_unknown_axis_or_value_names_the_known(words: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        axis_choices(words)


def test_sweeps_are_a_grid_and_the_rest_stays() -> None:
    plain, grid = sweep_choices(
        ["search.top_k=1,3", "trainer.test_freq=5", "actor_rollout_ref.rollout.n=range(2,4)"]
    )
    assert plain == ["trainer.test_freq=5"]
    assert [choice.value for choice in grid] == ["1, 2", "1, 3", "3, 2", "3, 3"]
    assert {choice.axis for choice in grid} == {"top_k x n"}
    assert grid[1].overrides == ("search.top_k=1", "actor_rollout_ref.rollout.n=3")


def test_a_list_is_one_value_and_lists_can_be_swept() -> None:
    assert sweep_choices(["trainer.logger=[console,file]"]) == (
        ["trainer.logger=[console,file]"],
        [],
    )
    _, grid = sweep_choices(["search.urls=[http://a:1/retrieve],[http://b:1/retrieve]"])
    assert [choice.value for choice in grid] == ["[http://a:1/retrieve]", "[http://b:1/retrieve]"]
    assert {choice.axis for choice in grid} == {"urls"}


@pytest.mark.parametrize("override", ["search.top_k=interval(1,3)", "search.top_k=[1", "x"])
def test_what_cannot_be_swept_is_refused(override: str) -> None:
    with pytest.raises(ConfigError):
        sweep_choices([override])
