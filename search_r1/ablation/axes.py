"""What varies: named axes (``configs/ablations``) and hydra's own sweeps, as choices.

``axis_choices("top_k=top1,top5")``; ``sweep_choices(["search.top_k=1,5"])``.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Final

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException

from search_r1.config import ConfigError, config_folder
from search_r1.config_errors import explain

GROUP: Final = "ablations"
"""The config group of the named axes: a folder an axis, a file a value."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One value of what varies."""

    axis: str
    value: str
    overrides: tuple[str, ...]
    """In hydra's syntax; none of them sweeps."""


def axis_names() -> list[str]:
    """The named axes, sorted."""
    return sorted(folder.name for folder in (config_folder() / GROUP).iterdir() if folder.is_dir())


def axis_values(axis: str) -> list[str]:
    """The values of a named axis, in the order of the numbers in their names."""
    files = (config_folder() / GROUP / axis).glob("*.yaml")
    return sorted((file.stem for file in files), key=_natural)


def axis_choices(words: str) -> list[Choice]:
    """The choices of ``NAME``, which are all there are, or of ``NAME=VALUE,VALUE``.

    Raises:
        ConfigError: there is no such axis or value.
    """
    axis, _, listed = words.partition("=")
    if axis not in axis_names():
        raise ConfigError(f"--axis {axis}: no such axis; give one of {', '.join(axis_names())}")
    known = axis_values(axis)
    values = [value.strip() for value in listed.split(",")] if listed else known
    if wrong := [value for value in values if value not in known]:
        message = f"no such value {', '.join(wrong)}; give some of {', '.join(known)}"
        raise ConfigError(
            f"--axis {words}: {message}, or sweep its field, such as search.top_k=2,4"
        )
    return [Choice(axis, value, (f"+{GROUP}/{axis}={value}",)) for value in values]


def sweep_choices(overrides: Sequence[str]) -> tuple[list[str], list[Choice]]:
    """The overrides that sweep nothing, and the choices of those that do, as one grid.

    Args:
        overrides: In hydra's syntax, such as ``search.top_k=1,3,5`` or ``range(1,4)``.

    Raises:
        ConfigError: an override cannot be read, or sweeps what is not a list of values.
    """
    try:
        parsed = OverridesParser.create().parse_overrides(list(overrides))
    except HydraException as error:
        raise ConfigError(explain(error, ())) from error
    plain = [str(one.input_line) for one in parsed if not one.is_sweep_override()]
    swept = [_expand(one) for one in parsed if one.is_sweep_override()]
    return plain, [_join(combination) for combination in product(*swept)] if swept else []


def _expand(override: Override) -> list[Choice]:
    if not override.is_discrete_sweep():
        raise ConfigError(f"{override.input_line}: an interval has no values; give them, as a,b,c")
    key = override.get_key_element()
    axis = key.lstrip("+").rpartition("/")[2].rpartition(".")[2]
    return [
        Choice(axis, re.sub(r"\\(.)", r"\1", value), (f"{key}={value}",))
        for value in override.sweep_string_iterator()
    ]


def _join(choices: Sequence[Choice]) -> Choice:
    return Choice(
        " x ".join(choice.axis for choice in choices),
        ", ".join(choice.value for choice in choices),
        tuple(override for choice in choices for override in choice.overrides),
    )


def _natural(name: str) -> list[tuple[bool, int, str]]:
    parts = re.findall(r"\d+|\D+", name)
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts]
