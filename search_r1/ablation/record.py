"""What an ablation's folder holds besides its runs: what was asked for, and how each run ended."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from search_r1.ablation.plan import RUNS, Plan, PlannedRun, Variant, comparable
from search_r1.config import ConfigError
from search_r1.evaluation.json_files import read_object
from search_r1.files import write_lines
from search_r1.run_report.settings import read_settings

RECORD: Final = "ablation.json"

_ENDED: Final = "ended.json"
"""In a run's folder once it has ended by itself."""
_FIX: Final = "give the --output of a search-r1 ablate, or remove the file"
_SHOWN: Final = 3
_FIELDS: Final = {"axis": str, "value": str, "seed": int | None, "run": str}


@dataclass(frozen=True, slots=True)
class Ablation:
    """An ablation as its folder tells it."""

    folder: Path
    command: str
    """The last one that was given."""
    variants: tuple[Variant, ...]

    def folder_of(self, run: str) -> Path:
        """The output folder of a run."""
        return self.folder / RUNS / run


def write_record(plan: Plan, command: str) -> Ablation:
    """Store what was asked for; variants of earlier commands stay, behind those of this one."""
    earlier = read_record(plan.folder).variants if (plan.folder / RECORD).is_file() else ()
    asked = {(variant.axis, variant.value, variant.seed) for variant in plan.variants}
    kept = [one for one in earlier if (one.axis, one.value, one.seed) not in asked]
    ablation = Ablation(plan.folder, command, (*plan.variants, *kept))
    content = {"command": command, "variants": [asdict(variant) for variant in ablation.variants]}
    write_lines(plan.folder / RECORD, [json.dumps(content, indent=2)])
    return ablation


def read_record(folder: Path) -> Ablation:
    """The ablation of a folder.

    Raises:
        FileNotFoundError: it holds none.
        ValueError: its record is broken; the message names the field.
    """
    path = folder / RECORD
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file; {_FIX}")
    content = read_object(path, _FIX)
    rows = content.get("variants")
    if not isinstance(rows, list) or not rows:
        raise ValueError(f"{path}: field variants is no list of variants; {_FIX}")
    variants = tuple(_variant(row, f"{path}: variants[{place}]") for place, row in enumerate(rows))
    return Ablation(folder.resolve(), str(content.get("command", "")), variants)


def _variant(row: Any, where: str) -> Variant:  # noqa: ANN401 - JSON
    if not isinstance(row, dict):
        raise ValueError(f"{where} is no object; {_FIX}")
    for name, kind in _FIELDS.items():
        if not isinstance(row.get(name), kind):
            raise ValueError(f"{where}.{name} is {row.get(name)!r}; {_FIX}")
    return Variant(**{name: row[name] for name in _FIELDS})


def write_end(run: Path, exit_code: int, seconds: float) -> None:
    """Note how a run ended by itself."""
    content = {"exit_code": exit_code, "seconds": round(seconds, 1)}
    write_lines(run / _ENDED, [json.dumps(content)])


def exit_code(run: Path) -> int | None:
    """The exit code of a run that ended; None if it never started, was stopped, or still runs."""
    path = run / _ENDED
    if not path.is_file():
        return None
    code = read_object(path, "remove the file").get("exit_code")
    return code if isinstance(code, int) else None


def forget_end(run: Path) -> None:
    """A run that starts again has not ended."""
    (run / _ENDED).unlink(missing_ok=True)


def require_same_settings(runs: Sequence[PlannedRun]) -> None:
    """Refuse to resume a run with other settings than it was started with.

    Raises:
        ConfigError: the message names the fields.
    """
    for run in runs:
        stored = comparable(read_settings(run.folder), run.folder)
        if not stored:
            continue
        now = run.settings
        differing = [name for name in {**now, **stored} if now.get(name) != stored.get(name)]
        if differing:
            shown = ", ".join(
                f"{name} is {stored.get(name)} there and {now.get(name)} now"
                for name in differing[:_SHOWN]
            )
            raise ConfigError(
                f"{run.folder} was started with other settings: {shown}"
                f"{', ...' if len(differing) > _SHOWN else ''}; give those, remove that folder, or "
                "give another --output"
            )
