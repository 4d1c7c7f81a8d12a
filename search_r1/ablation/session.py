"""An ablation from its words to its report, with what is said on the way."""

import os
import shlex
import signal
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

import typer
from rich.console import Console

from search_r1.ablation import training
from search_r1.ablation.check import check_plan, warnings
from search_r1.ablation.plan import Plan
from search_r1.ablation.record import Ablation, read_record, require_same_settings, write_record
from search_r1.ablation.report import PAGE, TEXT, write_report
from search_r1.check import Report
from search_r1.exits import BAD_INPUT
from search_r1.report import render_report

FINE: Final = 0
FAILED: Final = 1
INTERRUPTED: Final = 130

_err = Console(stderr=True, highlight=False)


def compose(
    config: str,
    overrides: Sequence[str],
    axes: Sequence[str],
    seeds: Sequence[int],
    output: Path,
) -> Plan:
    """The plan of these words, see `Plan.compose`; what is there already has the same settings.

    Raises:
        ConfigError: the words make no ablation, or another one than the folder holds.
    """
    with _err.status("composing every variant"):
        plan = Plan.compose(config, overrides, axes, seeds, output)
        require_same_settings(plan.runs)
    return plan


def describe(plan: Plan) -> str:
    """Every variant with its run, and the command of every run."""
    lines = []
    for variant in plan.variants:
        seed = "" if variant.seed is None else f", seed {variant.seed}"
        lines.append(f"# {variant.axis} = {variant.value}{seed}: {variant.run}")
    lines += [shlex.join(["search-r1", "train", *run.arguments]) for run in plan.runs]
    return "\n".join(lines)


def check_and_train(plan: Plan, command: str) -> int:
    """Check every run, train those that are not finished, write the report; the exit code."""
    # Before the checks: verl leaves settings of a run in the environment.
    trainer = training.Trainer(training.TRAIN, dict(os.environ), _err)
    with _err.status("checking every variant, with verl's own checks (half a minute)"):
        reports = check_plan(plan)
    if any(report.problems for report in reports.values()):
        _show_problems(reports)
        return BAD_INPUT
    _show_warnings(reports)
    ablation = write_record(plan, command)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        failed = trainer.train_all(plan, lambda: _write(ablation))
    except KeyboardInterrupt:
        _err.print("stopped; the same command goes on from there")
        return INTERRUPTED
    report(plan.folder)
    if failed:
        text = f"{len(failed)} of {len(plan.runs)} runs failed: {', '.join(failed)}"
        _err.print(text, style="red", soft_wrap=True)
    return FAILED if failed else FINE


def report(folder: Path) -> None:
    """Write the report of an ablation and print it as markdown.

    Raises:
        FileNotFoundError: the folder holds no ablation.
        ValueError: a file of it is broken; the message names it.
    """
    ablation = read_record(folder)
    _write(ablation)
    typer.echo((ablation.folder / TEXT).read_text(encoding="utf-8"))
    typer.echo(ablation.folder / PAGE)


def _write(ablation: Ablation) -> None:
    write_report(ablation, datetime.now().astimezone())


def _show_problems(reports: dict[str, Report]) -> None:
    for name, found in reports.items():
        if found.problems:
            _err.print(f"{name}: nothing was started", style="bold")
            _err.print(render_report(found))


def _show_warnings(reports: dict[str, Report]) -> None:
    for runs, field, text in warnings(reports):
        where = "every run" if len(runs) == len(reports) else ", ".join(runs)
        _err.print(f"warning: {field}: {text} ({where})", markup=False, style="yellow")
