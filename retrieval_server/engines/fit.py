"""Whether the settings fit the indexes: told by the manifests, before anything is loaded."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from retrieval_server.index_types import IndexType
from retrieval_server.manifest import Manifest, ManifestError
from retrieval_server.settings import Settings

_DEFAULTS: Final = {name: field.default for name, field in Settings.model_fields.items()}


def check_fit(settings: Settings) -> None:
    """Refuse what an index does not have, or has less of. What is wrong with a folder waits.

    Raises:
        ValueError: The message names flag and folder.
    """
    try:
        manifests = [Manifest.load(folder) for folder in settings.index]
    except (ManifestError, OSError):
        return  # /health tells it, and the load ends with a code of its own
    if problem := next(_problems(settings, manifests), None):
        raise ValueError(problem)


def own_settings(manifest: Manifest, manifests: Sequence[Manifest], settings: Settings) -> Settings:
    """Leave out what only another of the indexes has; what none has is refused as for one."""
    foreign = set().union(*map(_has, manifests)) - _has(manifest)
    return settings.model_copy(update={name: _DEFAULTS[name] for name in foreign})


def _has(manifest: Manifest) -> set[str]:
    """The settings that mean something to the type of an index."""
    names = manifest.search.model_dump(exclude_none=True).keys()
    by_vectors = {"encoder"} if manifest.encoder else set()
    return {*names, *by_vectors, *({"faiss_gpu"} if manifest.backend is IndexType.FLAT else ())}


def _problems(settings: Settings, manifests: Sequence[Manifest]) -> Iterator[str]:
    known = set().union(*map(_has, manifests))
    types = ", ".join(manifest.backend for manifest in manifests)
    for name in ("nprobe", "ef_search", "candidates", "faiss_gpu"):
        if getattr(settings, name) and manifests and name not in known:
            yield f"--{name.replace('_', '-')} does nothing for an index of type {types}"
    if settings.lanes > 1 and any(one.backend is IndexType.BM25 for one in manifests):
        yield f"--lanes does nothing for an index of type {types}"
    for folder, manifest in zip(settings.index, manifests, strict=True):
        yield from _above(settings, folder, manifest)


def _above(settings: Settings, folder: Path, manifest: Manifest) -> Iterator[str]:
    most = {
        "nprobe": (manifest.parameters.lists, "lists"),
        "ef_search": (manifest.rows, "rows"),
        "candidates": (manifest.rows, "rows"),
    }
    for name in _has(manifest) & most.keys():
        given, (there, what) = getattr(settings, name), most[name]
        if given and there and given > there:
            yield f"--{name.replace('_', '-')} {given} is above the {there} {what} of {folder}"
