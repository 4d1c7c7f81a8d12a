"""The monitor over a stand-in for verl's trainer, with the same methods and arguments."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from search_r1 import monitor
from search_r1.monitor import RECORD, SearchMonitor, SearchUnavailableError


def row(name: str, session: int = 0, searches: int = 1, failed: int = 0) -> dict[str, Any]:
    return {
        "id": name,
        "session": session,
        "hops": 1,
        "stop_reason": "answered",
        "turns": 2,
        "valid_actions": 2,
        "searches": searches,
        "failed_searches": failed,
        "sampled_tokens": 10,
        "inserted_tokens": 30,
        "generate_seconds": 1.0,
        "search_seconds": 0.1,
        "reward_parts": {"score": 1.0, "em": 1.0},
        "transcript": [{"text": "<think> it is so </think><search> a </search>"}],
    }


class Batch:
    """A batch of verl's, which knows only its order."""

    def __init__(self, size: int) -> None:
        self.order = list(range(size))

    def reorder(self, indices: list[int]) -> None:
        self.order = [self.order[index] for index in indices]


class Trainer:
    """The methods of verl's trainer that the monitor stands in front of."""

    def __init__(self) -> None:
        self.global_steps = 3
        self.config = SimpleNamespace(
            search=SimpleNamespace(
                max_failure_rate=0.2, urls=["http://127.0.0.1:9/retrieve"], max_searches=4
            ),
            data=SimpleNamespace(train_batch_size=2),
            trainer=SimpleNamespace(validation_data_dir=None),
            actor_rollout_ref=SimpleNamespace(rollout=SimpleNamespace(n=2)),
        )
        self.trained: list[Batch] = []

    def _balance_batch(self, batch: Batch, metrics: dict[str, Any]) -> Batch:
        self.trained.append(batch)
        return batch

    def _compute_metrics(self, batch: Batch, metrics: dict[str, Any]) -> None:
        metrics["training/global_step"] = self.global_steps

    def _val_metrics_update(
        self,
        data_sources: list[str],
        sample_uids: list[str],
        reward_extra_infos_dict: dict[str, list[Any]],
        sample_turns: list[int],
        expected_acc_counts: dict[Any, int] | None = None,
    ) -> dict[str, float]:
        assert RECORD not in reward_extra_infos_dict
        return {"val-core/nq/reward/mean@1": 0.5}


class Monitored(SearchMonitor, Trainer):
    pass


@pytest.fixture
def rows(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    batch = [row("b", 1), row("a", 1), row("b", 0), row("a", 0)]
    monkeypatch.setattr(monitor, "_rows_of", lambda _batch: batch)
    return batch


def test_a_batch_is_measured_and_put_in_an_order_of_its_own(rows: list[dict[str, Any]]) -> None:
    trainer, batch, metrics = Monitored(), Batch(4), {}
    trainer._balance_batch(batch, metrics)
    assert [(rows[i]["id"], rows[i]["session"]) for i in batch.order] == [
        ("a", 0),
        ("a", 1),
        ("b", 0),
        ("b", 1),
    ]
    assert metrics["reward/em"] == 1.0
    assert metrics["tokens/masked_share"] == 0.75
    assert metrics["stability/search_load"] == 0.25
    assert trainer.trained == [batch]


def test_nothing_is_trained_on_a_batch_whose_searches_failed(rows: list[dict[str, Any]]) -> None:
    rows[0]["failed_searches"] = 1
    trainer = Monitored()
    with pytest.raises(SearchUnavailableError, match=r"25% .*max_failure_rate=0.2; .*127.0.0.1:9"):
        trainer._balance_batch(Batch(4), {})
    assert trainer.trained == []


def test_nothing_is_trained_on_a_batch_that_lost_trajectories(rows: list[dict[str, Any]]) -> None:
    del rows[0]
    trainer = Monitored()
    with pytest.raises(SearchUnavailableError, match="25% of the trajectories ended in an error"):
        trainer._balance_batch(Batch(3), {})
    assert trainer.trained == []


def test_what_verl_fills_a_batch_up_with_is_no_trajectory(monkeypatch: pytest.MonkeyPatch) -> None:
    fields = {key: {"reward_extra_info": {RECORD: json.dumps(row(key))}} for key in ("a", "pad")}

    def get(keys: list[str], **_: Any) -> dict[str, Any]:
        return {"extra_fields": SimpleNamespace(tolist=lambda: [fields[key] for key in keys])}

    queue = SimpleNamespace(kv_batch_get=get)
    monkeypatch.setitem(sys.modules, "transfer_queue", queue)
    batch = SimpleNamespace(
        keys=["a", "pad"], tags=[{}, {"is_padding": True}], partition_id="train"
    )
    assert monitor._rows_of(batch) == [row("a")]


def test_a_failure_rate_at_the_limit_is_put_up_with(rows: list[dict[str, Any]]) -> None:
    rows[0] |= {"searches": 2, "failed_searches": 1}
    trainer = Monitored()
    trainer._balance_batch(Batch(4), {})  # 1 of 5
    assert len(trainer.trained) == 1


@pytest.mark.parametrize("mask_retrieved", [True, False])
def test_without_the_mask_engine_and_trainer_are_not_compared(
    rows: list[dict[str, Any]], mask_retrieved: bool
) -> None:
    trainer, batch = Monitored(), Batch(4)
    trainer.config.search.mask_retrieved = mask_retrieved
    compared = {
        "training/rollout_probs_diff_mean": 0.1,
        "training/rollout_actor_probs_pearson_corr": 0.9,
        "rollout_corr/kl": 0.1,
    }
    metrics: dict[str, Any] = compared | {"training/rollout_failure/evicted_samples": 0}
    trainer._balance_batch(batch, metrics)
    trainer._compute_metrics(batch, metrics)
    assert {"training/rollout_failure/evicted_samples", "training/global_step"} <= set(metrics)
    assert (set(compared) & set(metrics)) == (set(compared) if mask_retrieved else set())


def validate(records: list[str | None], trainer: Monitored | None = None) -> dict[str, float]:
    count = len(records)
    return (trainer or Monitored())._val_metrics_update(
        ["nq"] * count, ["u"] * count, {"reward": [1.0] * count, RECORD: records}, [2] * count
    )


def test_a_validation_adds_our_metrics_to_verls() -> None:
    metrics = validate([json.dumps(row("a")), json.dumps(row("b", searches=3))])
    assert metrics["val-core/nq/reward/mean@1"] == 0.5
    assert metrics["val/search/searches_per_question"] == 2.0
    assert metrics["val/em/1_hop"] == 1.0


def test_a_validation_without_a_search_engine_is_no_validation() -> None:
    with pytest.raises(SearchUnavailableError):
        validate([json.dumps(row("a", failed=1)), json.dumps(row("b"))])


def test_a_validation_stores_each_trajectory_on_a_line(tmp_path: Path) -> None:
    trainer = Monitored()
    trainer.config.trainer.validation_data_dir = str(tmp_path)
    validate([json.dumps(row("b")), json.dumps(row("a"))], trainer)
    lines = (tmp_path / "3.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [row("a"), row("b")]


def test_a_step_stores_its_trajectories(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    Monitored()._log_rollout_data(Batch(4), {}, str(tmp_path))
    lines = (tmp_path / "3.jsonl").read_text().splitlines()
    assert [json.loads(line)["id"] for line in lines] == ["a", "a", "b", "b"]
