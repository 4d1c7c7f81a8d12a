"""The data files: there, parquet, with verl's columns and enough rows."""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from omegaconf import DictConfig

from search_r1.checks.findings import Finding, Findings, Note, Problem, as_list, select
from search_r1.checks.search import search_settings

PREPARE: Final = "write it with `search-r1 prepare` (see `search-r1 prepare --help`)"


@dataclass(frozen=True, slots=True)
class _Column:
    kind: str
    fits: Callable[[pa.DataType], bool]


def _has_fields(kind: pa.DataType, *names: str) -> bool:
    is_mapping: bool = pa.types.is_struct(kind)
    return is_mapping and all(kind.get_field_index(name) >= 0 for name in names)


def _is_chat(kind: pa.DataType) -> bool:
    is_list: bool = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    return is_list and _has_fields(kind.value_type, "role", "content")


def _is_text(kind: pa.DataType) -> bool:
    bare = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(bare) or pa.types.is_large_string(bare))


_CHAT: Final = _Column("a list of messages {role, content}", _is_chat)
_TEXT: Final = _Column("text", _is_text)
_GOLDS: Final = _Column(
    "a mapping with ground_truth", lambda kind: _has_fields(kind, "ground_truth")
)
_MAPPING: Final = _Column("a mapping", _has_fields)
_QUESTION: Final = _Column(
    "a mapping with question (for search.max_searches=0)",
    lambda kind: _has_fields(kind, "question"),
)


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
    # The prompt without search is made of the question.
    may_search = search_settings(config).may_search
    columns = {
        config.data.prompt_key: _CHAT,
        config.data.reward_fn_key: _TEXT,
        "reward_model": _GOLDS,
        "extra_info": _MAPPING if may_search else _QUESTION,
    }
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


def _problem_of(field: str, path: Path, columns: Mapping[str, _Column]) -> Problem | None:
    if not path.is_file():
        return Problem(field, f"there is no file {path}", PREPARE)
    if path.suffix != ".parquet":
        # verl tells the format by the name.
        return Problem(field, f"{path} does not end in .parquet", PREPARE)
    try:
        schema = pq.read_schema(path)
    except (pa.ArrowInvalid, OSError) as error:
        return Problem(field, f"{path} is not a parquet file: {error}", PREPARE)
    if missing := sorted(columns.keys() - set(schema.names)):
        return Problem(field, f"{path} has no column {', '.join(missing)}", PREPARE)
    for name, column in columns.items():
        if not column.fits(found := schema.field(name).type):
            return Problem(field, f"{path}: {name} must be {column.kind}, not {found}", PREPARE)
    return None


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
