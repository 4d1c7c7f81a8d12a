"""What a person gives as a model: a Hugging Face folder, a run, or a checkpoint of a run."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from rich.console import Console

from search_r1.evaluation.json_files import read_object
from search_r1.merge import MERGED_FROM, find_actor, merge, origin

_CONFIG: Final = "config.json"
_DESCRIPTION: Final = "huggingface"
"""In the folder of the shards: the model's configuration and tokenizer, without weights."""
_REMOVE: Final = "remove the folder, or give another --output"

_console = Console(stderr=True, highlight=False)


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A model that was found, and has not been loaded."""

    folder: Path
    """Holds the configuration and the tokenizer."""
    actor: Path | None = None
    """The shards of a checkpoint of verl; None if `folder` holds the weights too."""

    @classmethod
    def find(cls, given: Path) -> Self:
        """The model in a folder: Hugging Face's, a run's (its newest checkpoint) or a checkpoint's.

        Raises:
            ValueError: it is neither; the message names the folder.
        """
        if (given / _CONFIG).is_file():
            return cls(given)
        try:
            actor = find_actor(given)
        except (OSError, ValueError) as error:
            no_model = f"{given} is no Hugging Face folder (it holds no {_CONFIG})"
            raise ValueError(f"model: {no_model}, and {error}") from error
        if not (actor / _DESCRIPTION / _CONFIG).is_file():
            missing = f"{actor} holds no {_DESCRIPTION}/{_CONFIG}, which verl saves beside shards"
            raise ValueError(f"model: {missing}; give a checkpoint that is whole")
        return cls(actor / _DESCRIPTION, actor)

    def with_weights(self, target: Path) -> Path:
        """A Hugging Face folder: the one given, or `target`, into which a checkpoint is merged.

        A `target` that exists is used again if it was made of the same checkpoint.

        Raises:
            ValueError: `target` was made of something else.
            subprocess.CalledProcessError: verl's merger failed; it has said why.
        """
        if self.actor is None:
            return self.folder
        if target.exists():
            _check_same(target, origin(self.actor))
        else:
            _console.print(f"merging {self.actor} into {target}", markup=False, soft_wrap=True)
            merge(self.actor, target)
        return target


def merged_from(model: Path) -> dict[str, Any] | None:
    """The checkpoint and the step that a folder was merged from; None if it says of none.

    Raises:
        ValueError: its word for it cannot be read.
    """
    path = model / MERGED_FROM
    return read_object(path, _REMOVE) if path.is_file() else None


def _check_same(target: Path, now: Mapping[str, Any]) -> None:
    there = merged_from(target) or {}
    if there == now:
        return
    was, checkpoint = there.get("checkpoint", "something else"), now["checkpoint"]
    changed = " as it was before it changed" if was == checkpoint else f", not from {checkpoint}"
    raise ValueError(
        f"model: {target} was merged from {was}{changed}; {_REMOVE}, or give what it was made of"
    )
