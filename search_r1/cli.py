"""The command line: ``search-r1 prepare | serve | warm-start | train | eval | view | ...``.

Each command imports what it needs when it runs, so that help and errors come at once.
"""

import os
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console

from search_r1.ablation.command import ABLATE_EXAMPLES, ablate_command
from search_r1.evaluation.command import EVAL_EXAMPLES, compare_command, eval_command
from search_r1.examples import TRAIN_EXAMPLES
from search_r1.exits import one_line_errors
from search_r1.run_report.command import REPORT_EXAMPLES, report_command

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    help="Teach a language model, by reinforcement learning, when and what to search.",
)

_PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}

_out = Console(highlight=False)
_err = Console(stderr=True, highlight=False)


@app.command(epilog=TRAIN_EXAMPLES)
def train(
    config: Annotated[str, typer.Argument(help="A shipped config, or the path of a YAML file.")],
    overrides: Annotated[
        list[str] | None, typer.Argument(help="Settings as FIELD=VALUE (hydra's syntax).")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only check the config; exit code 2 if it cannot run.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print the whole config and the command.")
    ] = False,
) -> None:
    """Train a policy with PPO or GRPO; the same command resumes a run that was stopped."""
    from search_r1 import launch

    with one_line_errors():
        run = launch.Run.compose(config, overrides or [])
    if dry_run:
        typer.echo(run.describe())
        return
    raise typer.Exit(launch.check(run) if check else launch.train(run))


@app.command(context_settings=_PASS_ON, add_help_option=False)
def serve(context: typer.Context) -> NoReturn:
    """Serve an index over HTTP: `search-r1 serve --index FOLDER`; all of --help is the server's."""
    command = [sys.executable, "-m", "retrieval_server", *context.args]
    os.execv(sys.executable, command)  # noqa: S606 - no shell


@app.command(context_settings=_PASS_ON, add_help_option=False)
def prepare(context: typer.Context) -> None:
    """Make training data, worlds, indexes and the small model: `search-r1 prepare --help`."""
    from search_r1.prepare import gather_commands

    gather_commands()(args=context.args, prog_name="search-r1 prepare")


@app.command("warm-start", context_settings=_PASS_ON, add_help_option=False)
def warm_start(context: typer.Context) -> None:
    """Teach a model the tag protocol from demonstrations: `search-r1 warm-start --help`."""
    from search_r1.warm_start import warm_start_command

    alone = typer.Typer(pretty_exceptions_enable=False, add_completion=False)
    alone.command()(warm_start_command)
    alone(args=context.args, prog_name="search-r1 warm-start")


app.command("ablate", epilog=ABLATE_EXAMPLES)(ablate_command)
app.command("eval", epilog=EVAL_EXAMPLES)(eval_command)
app.command("compare")(compare_command)
app.command("report", epilog=REPORT_EXAMPLES)(report_command)


@app.command()
def view(
    file: Annotated[Path, typer.Argument(help="Trajectories: output_dir/validation/STEP.jsonl.")],
    best: Annotated[int, typer.Option(min=0, help="Show the N with the highest reward.")] = 0,
    worst: Annotated[int, typer.Option(min=0, help="Show the N with the lowest reward.")] = 0,
    record_id: Annotated[str | None, typer.Option("--id", help="Show the one of this id.")] = None,
) -> None:
    """Show whole trajectories in colour; without an option, the best one."""
    from search_r1.view import read_records, render, select_records

    with one_line_errors():
        best = best or int(not worst)
        chosen = select_records(read_records(file), best=best, worst=worst, record_id=record_id)
    for record in chosen:
        _out.print(render(record))


@app.command()
def summary(
    run: Annotated[Path, typer.Argument(help="A run's folder, its output_dir.")],
) -> None:
    """Show the validations of a run side by side."""
    from search_r1.summary import table_of, validation_files

    with one_line_errors():
        _out.print(table_of(validation_files(run)))


@app.command()
def merge(
    checkpoint: Annotated[Path, typer.Argument(help="A run's folder, or one of its checkpoints.")],
    output: Annotated[Path, typer.Argument(help="The Hugging Face folder to write.")],
    best: Annotated[
        bool, typer.Option("--best", help="Of a run, the best validated one without an alarm.")
    ] = False,
) -> None:
    """Turn a checkpoint into a Hugging Face folder; of a run, the newest."""
    from search_r1.merge import merge as merge_checkpoint

    with one_line_errors():
        source = merge_checkpoint(checkpoint, output, best=best)
    _out.print(f"{output}: merged from {source}", markup=False)


@app.command()
def doctor(
    retriever: Annotated[
        str | None,
        typer.Option(help="The /retrieve URL of a server: every rule of the API is tried on it."),
    ] = None,
) -> None:
    """Check the installation and the machine; exit code 1 if something must be fixed."""
    from search_r1.doctor import print_diagnoses

    with _err.status("looking; verl and vLLM take half a minute"):
        well = print_diagnoses(retriever, _out)
    raise typer.Exit(not well)
