"""What the outputs of `search-r1 prepare` may not be: an input, or a name nothing reads."""

from collections.abc import Iterable
from pathlib import Path

from search_r1.files import require_place


def refuse_inputs(output: Path, inputs: Iterable[Path]) -> None:
    """Keep an output from replacing what it is made from, by whatever name.

    Raises:
        ValueError: `output` is one of `inputs`.
    """
    for path in inputs:
        if path.resolve() == output.resolve():
            raise ValueError(
                f"output: {output} is also an input, and would be replaced; give another --output"
            )


def require_parquet(output: Path) -> None:
    """Keep a file from a name that `search-r1 train` and `warm-start` refuse.

    Raises:
        ValueError: `output` does not end in .parquet, or is a folder.
        OSError: it cannot be made there.
    """
    if output.suffix != ".parquet":
        raise ValueError(f"output: {output} must end in .parquet, the format of the file")
    if output.is_dir():
        raise ValueError(f"output: {output} is a folder; give a file that ends in .parquet")
    require_place(output)
