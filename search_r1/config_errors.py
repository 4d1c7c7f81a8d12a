"""What hydra and OmegaConf say of a config, in one line that names the field and the fix."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

from hydra.errors import MissingConfigException, OverrideParseException
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, InterpolationKeyError

_ALIKE: Final = 0.85
_SYNTAX: Final = "give FIELD=VALUE, +FIELD=VALUE or ~FIELD; quote a VALUE with spaces or brackets"


def explain(error: Exception, known: Sequence[str]) -> str:
    """One line about an override or a file that makes no config.

    Args:
        error: What was raised while the config was composed or resolved.
        known: The fields that there are, by their dotted names.
    """
    match error:
        case OverrideParseException():
            return f"{error.override!r} cannot be read as an override; {_SYNTAX}"
        case MissingConfigException(options=options) if options and error.missing_cfg_file:
            group, _, option = error.missing_cfg_file.rpartition("/")
            return f"{group}: there is no {option!r}; give one of {', '.join(sorted(options))}"
        case InterpolationKeyError(full_key=field):
            return f"{field}: {first_line(error)}; name a field that there is"
    match error.__cause__:
        case ConfigAttributeError(full_key=field) | ConfigKeyError(full_key=field) if field:
            return f"{field}: there is no such field; {_near(field, known)}"
    field = getattr(error, "full_key", None)
    return f"{field}: {first_line(error)}" if field else first_line(error)


def _near(field: str, known: Sequence[str]) -> str:
    adding = f"+{field}=... adds one"
    name = field.rpartition(".")[2]
    # One that looks like it, or has its name in another section: the least nested one.
    found = get_close_matches(field, known, n=1, cutoff=_ALIKE)
    found += sorted((k for k in known if k.rpartition(".")[2] == name), key=lambda k: k.count("."))
    return f"did you mean {found[0]}? ({adding})" if found else adding


def first_line(error: Exception) -> str:
    """Without the lines behind it, which point into the libraries."""
    text = str(error).strip() or type(error).__name__
    return text.partition("\n")[0].rstrip(".")
