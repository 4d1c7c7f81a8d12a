"""Turns a checkpoint of a run into a Hugging Face folder, with verl's own merger.

Command: ``search-r1 merge runs/NAME models/NAME``, with ``--best`` for the best checkpoint.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from search_r1.checkpoints.folders import NEWEST_FILE
from search_r1.checkpoints.recovery import require_whole
from search_r1.files import fingerprint, require_new, write_lines
from search_r1.platform import subprocess_environment
from search_r1.stability.checkpoints import BEST_FILE, BestCheckpoint

MERGED_FROM: Final = "merged_from.json"
"""In a merged folder: what it was made of, as `origin` says it."""

_MARK = "fsdp_config.json"
_NAME_ONE = "write there the step of a checkpoint that is whole, or merge its global_step_N"
_CHECKPOINT = "global_step_"
_SHOWN = 40
_STDERR = 2
"""Where verl's merger talks, so that our own output stays clean."""


def find_actor(path: Path) -> Path:
    """The actor's shards under `path`: a run's folder (its newest checkpoint), or a checkpoint.

    Raises:
        FileNotFoundError: there is no checkpoint of an actor.
        ValueError: a run's own word for its newest checkpoint is none.
    """
    for folder in _candidates(path):
        if (folder / _MARK).is_file():
            return folder
    raise FileNotFoundError(
        f"{path} is neither a run with checkpoints/{NEWEST_FILE} nor a checkpoint global_step_N; "
        "did the run save one (trainer.save_freq)?"
    )


def find_best(run: Path) -> Path:
    """The actor's shards of the run's best checkpoint.

    Raises:
        FileNotFoundError: no best checkpoint was chosen, or it is gone.
        ValueError: the run's file about it is broken.
    """
    best = BestCheckpoint.read(run)
    if best is None:
        raise FileNotFoundError(
            f"{run} has no {BEST_FILE}: no checkpoint was validated while the alarms were quiet "
            "(trainer.save_freq and trainer.test_freq at the same step); merge without --best"
        )
    actor = Path(best.path) / "actor"
    if not (actor / _MARK).is_file():
        raise FileNotFoundError(
            f"{run / BEST_FILE} names step {best.step}, but there is no {actor / _MARK}; "
            "merge without --best, or a checkpoint by path"
        )
    return actor


def _candidates(path: Path) -> Iterator[Path]:
    yield from (path, path / "actor")
    for marker in (path / NEWEST_FILE, path / "checkpoints" / NEWEST_FILE):
        if marker.is_file():
            yield _newest(marker)


def _newest(marker: Path) -> Path:
    """The actor of the step that the file of a run names."""
    step = marker.read_bytes().decode(errors="replace").strip()
    if not (step.isascii() and step.isdecimal()):
        raise ValueError(f"{marker}: {step[:_SHOWN]!r} is no step; {_NAME_ONE}")
    actor = marker.with_name(f"global_step_{step}") / "actor"
    if not (actor / _MARK).is_file():
        raise FileNotFoundError(
            f"{marker} names step {step}, but there is no {actor / _MARK}; {_NAME_ONE}"
        )
    return actor


def merge(checkpoint: Path, output: Path, *, best: bool = False) -> Path:
    """Write the policy's weights (bfloat16), configuration and tokenizer into the folder `output`.

    The folder appears only once it is complete. Needs the memory of the whole model, no GPU.

    Args:
        checkpoint: A run's folder, or a checkpoint.
        output: The folder to write.
        best: Of a run, its best checkpoint rather than its newest.

    Returns:
        The folder of shards that was merged.

    Raises:
        FileNotFoundError: there is no checkpoint of an actor.
        ValueError: a run's own word for its newest checkpoint is none.
        BrokenCheckpointError: the checkpoint is not what was saved.
        OSError: `output` exists, or cannot be made there.
        subprocess.CalledProcessError: verl's merger failed; it has said why on standard error.
    """
    require_new(output)
    actor = find_best(checkpoint) if best else find_actor(checkpoint)
    require_whole(actor.resolve().parent)
    output.parent.mkdir(parents=True, exist_ok=True)
    partial = output.with_name(f".{output.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    command = [sys.executable, "-m", "verl.model_merger", "merge", "--backend", "fsdp"]
    command += ["--local_dir", str(actor), "--target_dir", str(partial)]
    try:
        subprocess.run(command, check=True, env=subprocess_environment(has_gpu()), stdout=_STDERR)  # noqa: S603 - no shell
        write_lines(partial / MERGED_FROM, [json.dumps(origin(actor), indent=2)])
        partial.replace(output)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return actor


def origin(actor: Path) -> dict[str, Any]:
    """Where a merged model comes from, as JSON data: the folder of its shards, step and files."""
    step = actor.resolve().parent.name.removeprefix(_CHECKPOINT)
    return {
        "checkpoint": str(actor.resolve()),
        "step": int(step) if step.isascii() and step.isdecimal() else None,
        "files": fingerprint(actor),
    }


def has_gpu() -> bool:
    """Whether this machine has an NVIDIA GPU, without loading torch."""
    return any(Path("/dev").glob("nvidia[0-9]*"))
