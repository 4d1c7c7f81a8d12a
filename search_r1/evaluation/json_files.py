"""JSON files of which an evaluation reads fields."""

import json
from pathlib import Path
from typing import Any


def read_object(path: Path, fix: str) -> dict[str, Any]:
    """The object in a file.

    Raises:
        OSError: the file cannot be read.
        ValueError: it holds something else; the message names it and the fix.
    """
    try:
        content = json.loads(path.read_bytes().decode())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path}: not JSON: {error}; {fix}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path}: not a JSON object; {fix}")
    return content
