"""What verl's trainer does not know about search: its metrics, its trajectories, its failures.

A mixin for the trainers of verl's registry (`search_r1.train` joins them), so that it sees every
batch between rollout and update and every validation at its end.
"""

import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from search_r1.files import write_lines
from search_r1.metrics import Row, failed_search_rate, step_line, summarise, validation_line
from search_r1.stability.signals import row_signals

# Below verl's logger, which verl shields from what other libraries do to the root logger.
logger = logging.getLogger("verl.search_r1.monitor")

_ENGINE_AGAINST_TRAINER = (
    "training/rollout_probs_diff",
    "training/rollout_actor_probs",
    "rollout_corr/",
)
"""verl's metrics of how the engine's log-probabilities differ from the trainer's."""

RECORD = "record"
"""The reward's extra key that carries one trajectory's row, as JSON."""


class SearchUnavailableError(RuntimeError):
    """So many searches failed that training on this batch would teach the wrong thing."""


class SearchMonitor:
    """Adds search metrics, stores trajectories, and stops a run whose search engine is down."""

    config: Any
    global_steps: int
    _validation_rows: list[Row]

    def _balance_batch(self, batch: Any, metrics: dict[str, Any]) -> Any:
        # The first of verl's steps that holds the batch: nothing has been trained on it yet.
        rows = _rows_of(batch)
        self._require_search(rows, expected=self._trajectories_per_step())
        metrics.update(summarise(rows))
        metrics.update(row_signals(rows, self.config.search.max_searches))
        # Trajectories arrive as they finish; mini-batches must not depend on that.
        batch.reorder(sorted(range(len(rows)), key=lambda i: _identity(rows[i])))
        return super()._balance_batch(batch, metrics=metrics)  # type: ignore[misc]

    def _compute_metrics(
        self, batch: Any, metrics: dict[str, Any], *args: Any, **kwargs: Any
    ) -> None:
        if not getattr(self.config.search, "mask_retrieved", True):
            # They would count inserted tokens, of which the engine has no log-probability.
            for name in [name for name in metrics if name.startswith(_ENGINE_AGAINST_TRAINER)]:
                del metrics[name]
        super()._compute_metrics(batch, metrics, *args, **kwargs)  # type: ignore[misc]
        logger.info("%s", step_line(self.global_steps, metrics))

    def _require_search(self, rows: Sequence[Row], expected: int) -> None:
        limit = self.config.search.max_failure_rate
        failed = failed_search_rate(rows)
        if failed > limit:
            raise SearchUnavailableError(
                f"step {self.global_steps}: {failed:.0%} of the searches failed, more than "
                f"search.max_failure_rate={limit}; is a retrieval server up at "
                f"{', '.join(self.config.search.urls)}? Resume with the same command."
            )
        lost = 1 - len(rows) / expected
        if lost > limit:
            raise SearchUnavailableError(
                f"step {self.global_steps}: {lost:.0%} of the trajectories ended in an error, more "
                f"than search.max_failure_rate={limit}; the errors are in the log above."
            )

    def _trajectories_per_step(self) -> int:
        return int(self.config.data.train_batch_size * self.config.actor_rollout_ref.rollout.n)

    def _val_metrics_update(
        self,
        data_sources: Sequence[str],
        sample_uids: Sequence[str],
        reward_extra_infos_dict: dict[str, list[Any]],
        sample_turns: Sequence[int],
        **kwargs: Any,
    ) -> dict[str, float]:
        records = reward_extra_infos_dict.pop(RECORD)
        rows = [json.loads(record) for record in records if record is not None]
        metrics: dict[str, float] = super()._val_metrics_update(  # type: ignore[misc]
            data_sources, sample_uids, reward_extra_infos_dict, sample_turns, **kwargs
        )
        self._require_search(rows, expected=max(len(records), 1))
        if self.config.trainer.validation_data_dir:
            self._store(rows, self.config.trainer.validation_data_dir)
        ours = summarise(rows)
        logger.info("%s", validation_line(self.global_steps, len(rows), ours))
        return metrics | {f"val/{name}": value for name, value in ours.items()}

    def _log_rollout_data(
        self, batch: Any, _timing: dict[str, float], rollout_data_dir: str
    ) -> None:
        self._store(_rows_of(batch), rollout_data_dir)

    def _dump_generations(self, **_: Any) -> None:
        """Write nothing: what verl would write of a validation is in our file of it."""

    def _store(self, rows: Sequence[Row], folder: str) -> None:
        """Write one JSON line per trajectory to ``folder/STEP.jsonl``."""
        path = Path(folder) / f"{self.global_steps}.jsonl"
        ordered = sorted(rows, key=_identity)
        write_lines(path, (json.dumps(row, ensure_ascii=False) for row in ordered))


def _identity(row: Row) -> tuple[str, int]:
    return row["id"], row["session"]


def _is_padding(tag: Mapping[str, Any]) -> bool:
    return bool(tag.get("is_padding", False))


def _rows_of(batch: Any) -> list[Row]:  # a transfer_queue.KVBatchMeta
    import transfer_queue

    # verl fills a batch up to whole mini-batches with copies of its first row.
    real = [key for key, tag in zip(batch.keys, batch.tags, strict=True) if not _is_padding(tag)]
    data = transfer_queue.kv_batch_get(
        keys=real, partition_id=batch.partition_id, select_fields=["extra_fields"]
    )
    # Only pop keeps the stack that can be listed; indexing unpacks it.
    every = data.pop("extra_fields").tolist()
    return [json.loads(fields["reward_extra_info"][RECORD]) for fields in every]
