"""Whether overrides keep the type of what they replace: numbers stay numbers, switches switches.

verl's schema holds plain YAML, so ``lr=fast`` would compose and fail hours later in an optimizer.
"""

import math
from collections.abc import Iterator

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from search_r1.config_errors import first_line

_ABSENT = object()
_TO_BE_GIVEN = "???"
_SHOWN = 3


def type_problems(config: DictConfig, defaults: DictConfig) -> Iterator[str]:
    """What overrides broke: each section that is none any more, or else each changed field.

    A field is changed if it is gone
    or has lost its type.

    Args:
        config: With overrides.
        defaults: The same config without them. What is text, a list or null there may be anything.
    """
    now, whole = OmegaConf.to_container(config), OmegaConf.to_container(defaults)
    if broken := list(_broken_sections(now, whole)):
        yield from broken
        return
    there = dict(leaves(now))
    for field, default in leaves(whole):
        # What was not touched needs no look: resolving it takes most of the time.
        if default == _TO_BE_GIVEN or there.get(field, _ABSENT) == default:
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


def _broken_sections(node: object, default: object, name: str = "") -> Iterator[str]:
    """One message for each section of the defaults that is gone, or a single value."""
    if not isinstance(default, dict) or not default:
        return
    if isinstance(node, dict):
        for key, inner in default.items():
            yield from _broken_sections(node.get(key), inner, f"{name}.{key}" if name else str(key))
        return
    now = "gone" if node is None else repr(node)
    some = ", ".join(list(map(str, default))[:_SHOWN])
    yield f"{name} is {now}, not a section; give its fields one by one ({name}.FIELD=...: {some})"


def _value(config: DictConfig, field: str) -> object:
    try:
        return OmegaConf.select(config, field, default=_ABSENT)
    except OmegaConfBaseException as error:
        raise ValueError(f"{field}: {first_line(error)}") from error


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
