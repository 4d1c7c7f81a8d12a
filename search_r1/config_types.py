"""Whether overrides keep the type of what they replace: numbers stay numbers, switches switches.

verl's schema holds plain YAML, so ``lr=fast`` would compose and fail hours later in an optimizer.
"""

import math
from collections.abc import Iterator

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

_ABSENT = object()
_TO_BE_GIVEN = "???"


def type_problems(config: DictConfig, defaults: DictConfig) -> Iterator[str]:
    """One message for each field that has lost its type, or is gone.

    Args:
        config: With overrides.
        defaults: The same config without them. What is text, a list or null there may be anything.
    """
    for field, default in leaves(OmegaConf.to_container(defaults)):
        if default == _TO_BE_GIVEN:
            continue
        value = _value(config, field)
        if value is _ABSENT:
            yield f"{field} is gone; leave its section as it is (the default is {default})"
        elif problem := _problem(value, default):
            yield f"{field} is {value!r}, {problem} (the default is {default})"


def leaves(node: object, name: str = "") -> Iterator[tuple[str, object]]:
    """Every value of nested mappings that is no mapping itself, by its dotted name."""
    if not isinstance(node, dict):
        yield name, node
        return
    for key, inner in node.items():
        yield from leaves(inner, f"{name}.{key}" if name else str(key))


def _value(config: DictConfig, field: str) -> object:
    try:
        return OmegaConf.select(config, field, default=_ABSENT)
    except OmegaConfBaseException as error:
        raise ValueError(f"{field}: {error}") from error


def _problem(value: object, default: object) -> str | None:
    if value is None or not isinstance(default, bool | int | float):
        return None
    if isinstance(value, str) and value.startswith("${"):
        return None
    if isinstance(default, bool):
        return None if isinstance(value, bool) else "not true or false"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "not a number"
    return None if math.isfinite(value) else "not finite"
