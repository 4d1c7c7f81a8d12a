"""Exit codes of the server."""

from enum import IntEnum


class Exit(IntEnum):
    """Why the process ended."""

    OK = 0
    USAGE = 2
    LOAD_FAILED = 3
    ADDRESS = 4
