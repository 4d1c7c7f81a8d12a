"""How every command ends when its input is wrong: one message on standard error, one exit code."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import typer
from rich.console import Console

BAD_INPUT: Final = 2
"""What was given cannot be used; one line says which field, and the fix."""
FAILED: Final = 1
"""What was given can be used, and something failed."""


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Turn errors about the input into one message and exit code 2.

    A program that the block started and that failed has said why: exit code 1.

    Raises:
        typer.Exit: the block raised ValueError, OSError or CalledProcessError.
    """
    try:
        yield
    except subprocess.CalledProcessError as error:
        raise typer.Exit(FAILED) from error
    except (ValueError, OSError) as error:
        # Made here, where standard error is the one of this moment.
        console = Console(stderr=True, highlight=False)
        console.print(f"error: {error}", markup=False, style="red", soft_wrap=True)
        raise typer.Exit(BAD_INPUT) from error
