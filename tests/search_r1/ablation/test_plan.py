from collections.abc import Callable
from pathlib import Path

import pytest
from omegaconf import DictConfig

from search_r1.ablation.check import check_plan, warnings
from search_r1.ablation.plan import Plan, PlannedRun
from search_r1.ablation.record import require_same_settings
from search_r1.check import Problem
from search_r1.config import ConfigError
from search_r1.files import RUN_CONFIG
from search_r1.train import to_yaml

Words = Callable[..., Plan]


@pytest.fixture
def plan_of(small_config: str, tmp_path: Path) -> Words:
    def run(*overrides: str, axes: tuple[str, ...] = (), seeds: tuple[int, ...] = ()) -> Plan:
        return Plan.compose(small_config, overrides, axes, seeds, tmp_path / "a b")

    return run


def test_axes_vary_one_at_a_time_and_share_the_configs_own_value(plan_of: Words) -> None:
    plan = plan_of(axes=("top_k=top1,top3", "group_size=n5,n1"))
    assert [(one.axis, one.value, one.run) for one in plan.variants] == [
        ("top_k", "top1", "top_k-top1"),
        ("top_k", "top3", "top_k-top3"),
        ("group_size", "n5", "top_k-top3"),
        ("group_size", "n1", "group_size-n1"),
    ]
    assert [run.name for run in plan.runs] == ["top_k-top1", "top_k-top3", "group_size-n1"]


def test_a_run_has_a_folder_a_name_and_seeds_of_its_own(plan_of: Words, tmp_path: Path) -> None:
    plan = plan_of("search.top_k=1,5", seeds=(7, 8))
    assert [(one.value, one.seed) for one in plan.variants] == [
        ("1", 7),
        ("1", 8),
        ("5", 7),
        ("5", 8),
    ]
    last = plan.runs[-1]
    assert last.folder == tmp_path.resolve() / "a b" / "runs" / "top_k-5-seed-8"
    assert last.config.output_dir == str(last.folder)
    assert last.config.trainer.experiment_name == "a b-top_k-5-seed-8"
    assert (last.config.data.seed, last.config.actor_rollout_ref.rollout.seed) == (8, 8)
    assert last.config.search.top_k == 5


def test_names_are_the_same_each_time_and_differ_for_values_that_read_alike(
    plan_of: Words,
) -> None:
    sweep = "search.urls=[http://a/retrieve],[http://a?retrieve]"
    names = [run.name for run in plan_of(sweep).runs]
    assert len(set(names)) == 2
    assert all(name.startswith("urls-") for name in names)
    assert [run.name for run in plan_of(sweep).runs] == names


@pytest.mark.parametrize(
    ("overrides", "axes", "message"),
    [
        ((), (), "nothing varies; give --axis algorithm|group_size"),
        (("output_dir=x", "search.top_k=1,3"), (), "output_dir is each variant's own"),
        (("search.top_k=7",), ("top_k=top1,top3",), "top1 and top3 make the same run"),
        (("search.topk=1,3",), (), "topk"),
    ],
)
def test_words_that_make_no_ablation(
    plan_of: Words, overrides: tuple[str, ...], axes: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ConfigError, match=message.replace("|", r"\|")):
        plan_of(*overrides, axes=axes)


@pytest.fixture(scope="module")
def whole_config(composed: Callable[..., DictConfig]) -> DictConfig:
    return composed("grpo")


@pytest.fixture
def checkable(whole_config: DictConfig, tmp_path: Path) -> Plan:
    """Groups of one and of five, with all that is checked."""
    runs = []
    for n in (1, 5):
        config = whole_config.copy()
        config.actor_rollout_ref.rollout.n = n
        runs.append(PlannedRun(f"group_size-n{n}", tmp_path, (), config))
    return Plan(tmp_path, (), tuple(runs))


def test_every_run_is_checked_before_verl_is_asked(
    checkable: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setattr("search_r1.ablation.check.validate_with_verl", asked.append)
    for run in checkable.runs:
        run.config.trainer.test_freq = -1
    for report in check_plan(checkable).values():
        assert [problem.field for problem in report.problems] == ["trainer.test_freq"]
    assert asked == []


def test_verls_problems_and_our_warnings_are_told_by_run(
    checkable: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = [Problem("config", "no", "yes")]
    monkeypatch.setattr(
        "search_r1.ablation.check.validate_with_verl",
        lambda config: refused if config.actor_rollout_ref.rollout.n == 1 else [],
    )
    reports = check_plan(checkable)
    assert {name: len(report.problems) for name, report in reports.items()} == {
        "group_size-n1": 1,
        "group_size-n5": 0,
    }
    found = [(runs, field) for runs, field, text in warnings(reports) if "REINFORCE" in text]
    assert found == [(["group_size-n1"], "actor_rollout_ref.rollout.n")]


def test_a_run_goes_on_only_with_its_own_settings(plan_of: Words) -> None:
    [run, _] = plan_of("search.top_k=1,5").runs
    run.folder.mkdir(parents=True)
    (run.folder / RUN_CONFIG).write_text(to_yaml(run.config))
    require_same_settings(plan_of("search.top_k=1,5").runs)
    with pytest.raises(ConfigError, match=r"trainer\.test_freq is 50 there and 9 now"):
        require_same_settings(plan_of("search.top_k=1,5", "trainer.test_freq=9").runs)
