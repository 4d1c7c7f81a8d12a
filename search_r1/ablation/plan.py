"""From the words of ``search-r1 ablate`` to the runs that they ask for: composed, not started."""

import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Any, Final, Self

from omegaconf import DictConfig, OmegaConf

from search_r1.ablation.axes import Choice, axis_choices, axis_names, sweep_choices
from search_r1.config import ConfigError, compose
from search_r1.run_report.settings import settings_of

RUNS: Final = "runs"
"""In an ablation's folder: the output folders of its runs."""

_OURS: Final = ("output_dir", "trainer.experiment_name")
_SEEDED: Final = ("data.seed", "actor_rollout_ref.rollout.seed")
_OF_A_START: Final = re.compile(r".*\.experiment_name|ray_kwargs\..*\.env_vars\..*")
_LONGEST_NAME: Final = 60


@dataclass(frozen=True, slots=True)
class Variant:
    """One value of one axis with one seed, and the run that is it.

    Axes share the run in which each has the config's own value.
    """

    axis: str
    value: str
    seed: int | None
    """None where the config's own seeds hold."""
    run: str


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """A run to train."""

    name: str
    folder: Path
    arguments: tuple[str, ...]
    """Of ``search-r1 train``: a config and overrides."""
    config: DictConfig

    @property
    def settings(self) -> dict[str, str]:
        """What decides how the run turns out, see `comparable`."""
        container: Any = OmegaConf.to_container(self.config)
        return comparable(settings_of(container), self.folder)


@dataclass(frozen=True, slots=True)
class Plan:
    """An ablation: its variants in the order they were asked for, and their runs."""

    folder: Path
    variants: tuple[Variant, ...]
    runs: tuple[PlannedRun, ...]

    @classmethod
    def compose(
        cls,
        config: str,
        overrides: Sequence[str],
        axes: Sequence[str],
        seeds: Sequence[int],
        folder: Path,
    ) -> Self:
        """The plan of these words.

        Args:
            config: A shipped config, or the path of a YAML file.
            overrides: Hydra overrides. Those that sweep are one grid.
            axes: Named axes, see `search_r1.ablation.axes.axis_choices`; each varies by itself.
            seeds: Each variant is trained once with each; without any, once with the config's own.
            folder: Of the ablation.

        Raises:
            ConfigError: nothing varies, a variant cannot be composed, or two values of an axis
                make the same run.
        """
        plain, grid = sweep_choices(overrides)
        choices = [choice for axis in axes for choice in axis_choices(axis)] + grid
        _check_words(overrides, choices)
        by_settings: dict[frozenset[tuple[str, str]], PlannedRun] = {}
        variants = []
        for choice, seed in product(choices, seeds or (None,)):
            run = _compose_run(config, plain, choice, seed, folder.resolve())
            run = by_settings.setdefault(frozenset(run.settings.items()), run)
            variants.append(Variant(choice.axis, choice.value, seed, run.name))
        _require_difference(variants)
        return cls(folder.resolve(), tuple(variants), tuple(by_settings.values()))


def comparable(settings: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The fields of a run's config, without what every start or run has of its own.

    Args:
        settings: As text, by dotted name.
        folder: The run's output folder, which stands in many of them.
    """
    return {
        name: value.replace(str(folder), "<output_dir>")
        for name, value in settings.items()
        if not _OF_A_START.fullmatch(name)
    }


def _check_words(overrides: Sequence[str], choices: Sequence[Choice]) -> None:
    for field in _OURS:
        if any(override.lstrip("+").startswith(f"{field}=") for override in overrides):
            raise ConfigError(f"{field} is each variant's own; name the ablation with --output")
    if not choices:
        names = "|".join(axis_names())
        raise ConfigError(f"nothing varies; give --axis {names}, or a sweep: search.top_k=1,3,5")


def _compose_run(
    config: str, plain: Sequence[str], choice: Choice, seed: int | None, folder: Path
) -> PlannedRun:
    name = _name(choice, seed)
    output = folder / RUNS / name
    seeded = [f"{field}={seed}" for field in _SEEDED] if seed is not None else []
    own = [
        f"output_dir={_quoted(str(output))}",
        f"trainer.experiment_name={_quoted(f'{folder.name}-{name}')}",
    ]
    overrides = (*plain, *seeded, *choice.overrides, *own)
    return PlannedRun(name, output, (config, *overrides), compose(config, overrides))


def _require_difference(variants: Sequence[Variant]) -> None:
    for one, other in combinations(variants, 2):
        if one.axis == other.axis and one.seed == other.seed and one.run == other.run:
            raise ConfigError(
                f"axis {one.axis}: {one.value} and {other.value} make the same run; take one of "
                "them away, or the override that sets the same field for both"
            )


def _name(choice: Choice, seed: int | None) -> str:
    """A folder's name, the same each time and another for each choice and seed."""
    whole = f"{choice.axis}-{choice.value}" + (f"-seed-{seed}" if seed is not None else "")
    name = re.sub(r"[^\w.-]+", "-", whole, flags=re.ASCII)[:_LONGEST_NAME].strip("-.")
    return name if name == whole else f"{name}-{zlib.crc32(whole.encode()):08x}"


def _quoted(text: str) -> str:
    """Text as hydra reads it in an override."""
    if re.fullmatch(r"[\w./-]+", text, flags=re.ASCII):
        return text
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
