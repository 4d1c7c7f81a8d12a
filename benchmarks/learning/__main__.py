"""The command: prepare, train, plot."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from benchmarks.learning.experiments import EXPERIMENTS, Experiment, run_folder, train
from benchmarks.learning.plots import draw, table
from benchmarks.learning.workshop import Workshop

NAMES = ", ".join(experiment.name for experiment in EXPERIMENTS)
Output = Annotated[Path, typer.Option(file_okay=False, help="Where worlds, policy and runs are.")]
Steps = Annotated[int, typer.Option(help="Optimizer steps of pretraining.")]
Demonstrated = Annotated[int, typer.Option(help="Demonstrations of the warm start.")]
Only = Annotated[list[str] | None, typer.Option(help=f"Only this of {NAMES}; repeatable.")]

app = typer.Typer(add_completion=False, help=__doc__, pretty_exceptions_enable=False)


@app.command()
def prepare(
    output: Output = Path("runs/learning"),
    reading_steps: Steps = Workshop.reading_steps,
    demonstrated: Demonstrated = Workshop.demonstrated,
) -> None:
    """Make worlds and index, teach a small policy to read, then the tags."""
    Workshop(output.resolve(), reading_steps, demonstrated).prepare()


@app.command()
def run(
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Further settings of every run, FIELD=VALUE.")
    ] = None,
    output: Output = Path("runs/learning"),
    experiment: Only = None,
    seeds: Annotated[int, typer.Option(help="At most so many of an experiment.")] = 3,
) -> None:
    """Train what is not finished of prepared experiments; what is not prepared is."""
    workshop = Workshop(output.resolve())
    workshop.prepare()
    for chosen in _chosen(experiment):
        train(workshop, replace(chosen, seeds=chosen.seeds[:seeds]), overrides or [])


@app.command()
def plot(
    output: Output = Path("runs/learning"),
    image: Annotated[Path, typer.Option(help="The PNG to write.")] = Path("learning.png"),
    experiment: Only = None,
) -> None:
    """Draw the curves of the finished runs, and print their table."""
    workshop = Workshop(output.resolve())
    runs = {
        chosen.name: [
            folder
            for seed in chosen.seeds
            if (folder := run_folder(workshop, chosen, seed)).is_dir()
        ]
        for chosen in _chosen(experiment)
    }
    found = {name: folders for name, folders in runs.items() if folders}
    draw(found, image)
    typer.echo(table(found))


def _chosen(names: list[str] | None) -> list[Experiment]:
    known = {experiment.name: experiment for experiment in EXPERIMENTS}
    if wrong := set(names or []) - set(known):
        raise typer.BadParameter(f"{', '.join(sorted(wrong))}: give some of {NAMES}")
    return [known[name] for name in names or known]


if __name__ == "__main__":
    app()
