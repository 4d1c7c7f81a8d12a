"""Turns a checkpoint of a run into a Hugging Face folder, with verl's own merger.

Command: ``search-r1 merge runs/NAME models/NAME``.
"""

import shutil
import subprocess
import sys
from pathlib import Path

from search_r1.platform import subprocess_environment

_MARK = "fsdp_config.json"
_NEWEST = "latest_checkpointed_iteration.txt"
_STDERR = 2
"""Where verl's merger talks, so that our own output stays clean."""


def find_actor(path: Path) -> Path:
    """The actor's shards under `path`: a run's folder (its newest checkpoint), or a checkpoint.

    Raises:
        FileNotFoundError: there is no checkpoint of an actor.
    """
    folders = [path, path / "actor"]
    for checkpoints in (path, path / "checkpoints"):
        if (checkpoints / _NEWEST).is_file():
            step = (checkpoints / _NEWEST).read_text(encoding="utf-8").strip()
            folders.append(checkpoints / f"global_step_{step}" / "actor")
    for folder in folders:
        if (folder / _MARK).is_file():
            return folder
    raise FileNotFoundError(
        f"{path} is neither a run with checkpoints/{_NEWEST} nor a checkpoint global_step_N; "
        "did the run save one (trainer.save_freq)?"
    )


def merge(checkpoint: Path, output: Path) -> Path:
    """Write the policy's weights (bfloat16), configuration and tokenizer into the folder `output`.

    The folder appears only once it is complete. Needs the memory of the whole model, no GPU.

    Returns:
        The folder of shards that was merged.

    Raises:
        FileNotFoundError: there is no checkpoint of an actor.
        FileExistsError: `output` exists.
        subprocess.CalledProcessError: verl's merger failed; it has said why on standard error.
    """
    if output.exists():
        raise FileExistsError(f"{output} exists: remove it, or give another folder")
    actor = find_actor(checkpoint)
    output.parent.mkdir(parents=True, exist_ok=True)
    partial = output.with_name(f".{output.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    command = [sys.executable, "-m", "verl.model_merger", "merge", "--backend", "fsdp"]
    command += ["--local_dir", str(actor), "--target_dir", str(partial)]
    try:
        subprocess.run(command, check=True, env=subprocess_environment(has_gpu()), stdout=_STDERR)  # noqa: S603 - no shell
        partial.replace(output)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return actor


def has_gpu() -> bool:
    """Whether this machine has an NVIDIA GPU, without loading torch."""
    return any(Path("/dev").glob("nvidia[0-9]*"))
