"""The data files: there, parquet, with verl's columns and enough rows."""

from collections.abc import Generator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from omegaconf import DictConfig

from search_r1.checks.findings import Finding, Findings, Note, Problem, as_list, select
from search_r1.checks.search import search_settings

PREPARE = "write it with `search-r1 prepare` (see `search-r1 prepare --help`)"


def check_data(config: DictConfig) -> Findings:
    """Each file can be read and has the columns; the training files fill at least one batch."""
    train_rows = yield from _count_rows(config, "data.train_files")
    val_rows = yield from _count_rows(config, "data.val_files")
    if val_rows == 0:
        yield Problem("data.val_files", "holds no rows", "give a file with questions")
    if train_rows is not None:
        yield from _check_amount(config, train_rows)


def _count_rows(config: DictConfig, field: str) -> Generator[Finding, None, int | None]:
    """Yield what is wrong with the files of `field`; return their rows, None if unknown."""
    columns = {config.data.prompt_key, config.data.reward_fn_key, "reward_model", "extra_info"}
    if not search_settings(config).may_search:
        columns.add("extra_info.question")  # the prompt without search is made of it
    names = as_list(select(config, field))
    if not names or not all(isinstance(name, str) for name in names):
        yield Problem(field, f"is {names!r}, not a file or a list of files", PREPARE)
        return None
    paths = [Path(name) for name in names]
    problems = [problem for path in paths if (problem := _problem_of(field, path, columns))]
    yield from problems
    if problems:
        return None
    return sum(int(pq.read_metadata(path).num_rows) for path in paths)


def _problem_of(field: str, path: Path, columns: set[str]) -> Problem | None:
    if not path.is_file():
        return Problem(field, f"there is no file {path}", PREPARE)
    if path.suffix != ".parquet":
        # verl tells the format by the name.
        return Problem(field, f"{path} does not end in .parquet", PREPARE)
    try:
        missing = columns - _names(pq.read_schema(path))
    except (pa.ArrowInvalid, OSError) as error:
        return Problem(field, f"{path} is not a parquet file: {error}", PREPARE)
    if missing:
        names = ", ".join(sorted(missing))
        return Problem(field, f"{path} has no column {names}", PREPARE)
    return None


def _names(schema: pa.Schema) -> set[str]:
    """The columns, and the fields of those that have any, by dotted name."""
    inner = {
        f"{column.name}.{field.name}"
        for column in schema
        if pa.types.is_struct(column.type)
        for field in column.type
    }
    return {*schema.names, *inner}


def _check_amount(config: DictConfig, rows: int) -> Findings:
    batch, limit = config.data.train_batch_size, select(config, "data.train_max_samples", -1)
    rows = min(rows, limit) if limit > 0 else rows
    steps = select(config, "trainer.total_training_steps")
    steps_per_epoch = rows // batch
    if not steps_per_epoch:
        message = f"{rows} training rows do not fill one batch of {batch}"
        yield Problem("data.train_batch_size", message, f"at most {rows}, or give more rows")
    elif steps and steps > steps_per_epoch * config.trainer.total_epochs:
        message = (
            f"training would end after {steps_per_epoch * config.trainer.total_epochs} steps of "
            f"{steps}: an epoch has {steps_per_epoch}"
        )
        epochs = -(-steps // steps_per_epoch)
        yield Problem("trainer.total_epochs", message, f"at least {epochs}")
    elif steps:
        passes = f"{rows:,} rows, {steps_per_epoch:,} steps an epoch"
        yield Note("data.train_files", f"{passes}; {steps} steps see {steps * batch:,} questions")
