"""The log on standard error: lines for people, or JSON for machines."""

import logging
import os
from typing import Literal

LogFormat = Literal["text", "json"]

_TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_NAMES = {"asctime": "time", "levelname": "level", "name": "logger", "process": "pid"}


def configure_logs(kind: LogFormat) -> None:
    """Send everything from level INFO to standard error.

    Args:
        kind: `text`, or `json`: one object a line with time, level, logger, pid, message and the
            fields that a message brings with it.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(_TEXT) if kind == "text" else _json_formatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    # It tells at length which of its builds it tries.
    logging.getLogger("faiss.loader").setLevel(logging.WARNING)


def _json_formatter() -> logging.Formatter:
    from pythonjsonlogger.core import RESERVED_ATTRS
    from pythonjsonlogger.json import JsonFormatter

    # A progress bar would break the lines.
    os.environ.setdefault("TQDM_DISABLE", "1")
    return JsonFormatter(
        " ".join(f"%({name})s" for name in (*_NAMES, "message")),
        rename_fields=_NAMES,
        reserved_attrs=[*RESERVED_ATTRS, "color_message"],
        json_ensure_ascii=False,
    )
