"""Exit codes of every command."""

from typing import Final

BAD_INPUT: Final = 2
"""What was given cannot be used; one line says which field, and the fix."""
