"""Watches every step of verl's trainer and acts on alarms.

A mixin for the trainers of verl's registry, in front of `search_r1.monitor.SearchMonitor`, whose
metrics it reads; `search_r1.train` joins them.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from search_r1.checkpoints.folders import resume_from
from search_r1.stability.alarms import Change
from search_r1.stability.checkpoints import BestCheckpoint
from search_r1.stability.detector import Action
from search_r1.stability.errors import AlarmStopError, RollBackError, report
from search_r1.stability.events import Event, append_events
from search_r1.stability.keeper import CheckpointKeeper
from search_r1.stability.signals import SIGNAL, token_signals
from search_r1.stability.state import RunState, read_state, write_state

# Below verl's logger, which verl shields from what other libraries do to the root logger.
logger = logging.getLogger("verl.search_r1.stability")

_TOKENS = ("response_mask", "old_log_probs", "ref_log_prob", "advantages", "rollout_log_probs")


class StabilityGuard(CheckpointKeeper):
    """Judges each step by the alarms, and does what they ask for."""

    logger: Any
    _skipping: Sequence[str] = ()
    """The alarms for which nothing is trained on this batch."""

    def _compute_advantage(self, batch: Any, metrics: dict[str, Any]) -> Any:
        batch = super()._compute_advantage(batch, metrics)  # type: ignore[misc]
        metrics.update(token_signals(_tokens_of(batch, self._is_bypassing())))
        self._skipping = self._alarms.would_skip(metrics)
        metrics[f"{SIGNAL}update_skipped"] = float(bool(self._skipping))
        return batch

    def _update_critic(self, batch: Any, metrics: dict[str, Any]) -> Any:
        if self._skipping:
            return batch
        return super()._update_critic(batch, metrics)  # type: ignore[misc]

    def _update_actor(self, batch: Any, metrics: dict[str, Any]) -> Any:
        if self._skipping:
            names = ", ".join(self._skipping)
            logger.warning("step %d: nothing is trained on: %s", self.global_steps, names)
            return batch
        return super()._update_actor(batch, metrics)  # type: ignore[misc]

    def step(self, metrics: dict[str, Any], timing_raw: dict[str, Any]) -> Any:
        """One of verl's steps; then its alarms, before anything of it is saved."""
        batch = super().step(metrics, timing_raw)  # type: ignore[misc]
        changes = self._alarms.observe(metrics)
        metrics.update(self._alarms.metrics())
        self._record(changes)
        try:
            self._act([change for change in changes if change.begins])
            self._count_skipped(metrics)
        except AlarmStopError:
            # verl would log them at the end of the step, which is not reached.
            self.logger.log(data=metrics, step=self.global_steps)
            raise
        metrics[f"{SIGNAL}rate_scale"] = self._state.rate_scale
        return batch

    def _record(self, changes: Sequence[Change]) -> None:
        events = [
            Event(self.global_steps, one.name, one.begins, one.measured, one.limit, one.action)
            for one in changes
        ]
        append_events(self._run, events)
        for change in changes:
            word = "begins" if change.begins else "ends"
            logger.warning("step %d: alarm %s %s: %s", self.global_steps, change.name, word, change)

    def _act(self, began: Sequence[Change]) -> None:
        by_action = {action: [one for one in began if one.action is action] for action in Action}
        if causes := by_action[Action.STOP]:
            raise AlarmStopError(report(self.global_steps, causes, "the run stops"))
        if causes := by_action[Action.ROLL_BACK]:
            self._roll_back(causes)
        if by_action[Action.LOWER_RATE]:
            self._state = self._with_lower_rate(self._state)
            self._set_rate()

    def _roll_back(self, causes: Sequence[Change]) -> None:
        """Make the best checkpoint the newest one, with a lower rate, and end this process."""
        best, done = BestCheckpoint.read(self._run), self._state.rollbacks
        is_there = best is not None and best.is_whole
        if best is None or not is_there or done >= self._settings.max_rollbacks:
            why = f"rolled back {done} times before" if is_there else "no stable checkpoint"
            raise AlarmStopError(report(self.global_steps, causes, f"the run stops: {why}"))
        folder = Path(best.path)
        lowered = self._with_lower_rate(self._state)
        state = replace(
            read_state(folder), rate_scale=lowered.rate_scale, rollbacks=done + 1, skipped=0
        )
        write_state(folder, state)
        resume_from(self._checkpoints, best.step)
        then = (
            f"back to step {best.step} (exact match {best.em:.3f}) with "
            f"{state.rate_scale:g} of the learning rate"
        )
        raise RollBackError(report(self.global_steps, causes, then))

    def _count_skipped(self, metrics: dict[str, Any]) -> None:
        was_skipped = bool(metrics.get(f"{SIGNAL}update_skipped"))
        skipped = self._state.skipped + 1 if was_skipped else 0
        self._state = replace(self._state, skipped=skipped)
        if skipped >= self._settings.max_skipped:
            raise AlarmStopError(
                f"step {self.global_steps}: {skipped} updates in a row were skipped for "
                f"{', '.join(self._skipping)}, alarms.max_skipped={skipped}; the run stops. "
                "Resume with the same command once the cause is found."
            )

    def _is_bypassing(self) -> bool:
        correction = self.config.algorithm.get("rollout_correction") or {}
        return bool(correction.get("bypass_mode", False))

    def _with_lower_rate(self, state: RunState) -> RunState:
        return replace(state, rate_scale=state.rate_scale * self._settings.rate_factor)


def _tokens_of(batch: Any, is_bypassing: bool) -> dict[str, Any]:
    import transfer_queue

    wanted = [name for name in _TOKENS if not (is_bypassing and name == "rollout_log_probs")]
    data = transfer_queue.kv_batch_get(
        keys=batch.keys, partition_id=batch.partition_id, select_fields=wanted
    ).to_padded_tensor()
    return {name: data[name] for name in wanted if name in data.keys()}  # noqa: SIM118 - a TensorDict
