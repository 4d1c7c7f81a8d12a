"""The command ``search-r1 report``."""

from datetime import datetime
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from search_r1.exits import one_line_errors

REPORT_EXAMPLES: Final = """
The page holds, for all runs side by side: curves over the steps (training reward, response
length, valid searches, entropy, KL, gradient norm, seconds), every alarm, every validation, how
many answers are wrong and why (format, stopped early, misread, repeated query, bad query, not
retrieved), and whole held-out trajectories, right and wrong. It needs no network and no other
file. A run that is still going works.

Examples:

* `search-r1 report runs/ppo-7b --output ppo.html`

* `search-r1 report runs/ppo-7b runs/grpo-7b --output ppo_and_grpo.html --samples 10`
"""

_console = Console(stderr=True, highlight=False)


def report_command(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN", help="A run's folder, its output_dir; or several."),
    ],
    output: Annotated[Path, typer.Option(help="The HTML file to write.")],
    samples: Annotated[
        int,
        typer.Option(
            min=0, help="Show so many right trajectories of each run's last validation, and wrong."
        ),
    ] = 5,
    seed: Annotated[int, typer.Option(help="Of the draw of trajectories.")] = 0,
) -> None:
    """Write one HTML page about runs: curves, validations, failures and trajectories."""
    from search_r1.run_report.page import write_page
    from search_r1.run_report.runs import read_runs

    with one_line_errors():
        read = read_runs(runs, samples, seed)
        write_page(output, read, datetime.now().astimezone())
    for note in (note for run in read for note in run.notes):
        _console.print(f"note: {note}", markup=False, style="yellow", soft_wrap=True)
    typer.echo(f"{output}: {', '.join(run.name for run in read)}")
