"""What ``search-r1 eval --suite`` does."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from search_r1.baselines.published import BASES
from search_r1.evaluation.suite.rows import PAPER, SUITES, assign, paper_base
from search_r1.exits import one_line_errors
from search_r1.files import require_folder

if TYPE_CHECKING:
    from search_r1.evaluation.config import EvalConfig


def run_suite(
    configure: Callable[..., "EvalConfig"],
    suite: str,
    model: Path | None,
    policies: Sequence[str],
    output: Path,
    method: str | None,
    published: str | None,
) -> Path:
    """Run a suite.

    Args:
        configure: Makes the config of a row from its `model`, `method` and `output`.
        suite: One of `search_r1.evaluation.suite.rows.SUITES`.
        model: Of the rows without training, if one was given.
        policies: NAME=MODEL each.
        output: Holds a folder for each row.
        method: What was asked for besides, which no suite has.
        published: One of `search_r1.baselines.published.BASES`; None chooses by the models' names.

    Returns:
        The tables.

    Raises:
        typer.Exit: an input is wrong, the search engine is lost, or the user stopped the run.
    """
    from search_r1.evaluation.suite.run import TABLES
    from search_r1.evaluation.suite.suite import Suite
    from search_r1.evaluation.suite.watch import run_suite_watched
    from search_r1.model_tokenizer import load_tokenizer

    with ExitStack() as stack:
        with one_line_errors():
            _check_words(suite, method, published)
            require_folder(output)
            models = assign(model, policies)
            methods = {row.name: row.method for row in PAPER}
            configs = {
                name: configure(model=path, method=methods[name], output=output / name)
                for name, path in models.items()
            }
            base = published or paper_base(models.values())
            prepared = Suite.prepare(output, base, configs, load_tokenizer)
            logs = prepared.open_logs(stack)
        run_suite_watched(prepared, logs)
    return output / TABLES


def _check_words(suite: str, method: str | None, published: str | None) -> None:
    if suite not in SUITES:
        raise ValueError(f"suite: there is no {suite!r}; give {' or '.join(SUITES)}")
    if method is not None:
        raise ValueError("method: a suite has methods of its own; leave out --method, or --suite")
    if published is not None and published not in BASES:
        raise ValueError(
            f"published: there is no table of {published!r}; give {' or '.join(BASES)}"
        )
