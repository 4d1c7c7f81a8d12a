"""The command ``search-r1 ablate``."""

import shlex
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from search_r1.exits import one_line_errors
from search_r1.files import require_folder

ABLATE_EXAMPLES: Final = """
Each named axis is varied by itself, as in the paper (section 5): `mask`, `top_k`, `group_size`,
`algorithm`, `model`, `retriever` (the files of configs/ablations). FIELD=A,B and FIELD=range(1,4),
hydra's own syntax, vary any field; several of them make a grid. Every variant is checked before the
first one trains. Each trains in a process of its own; the same command goes on where it stopped and
leaves out what is finished. The folder holds `report.html`, `report.md`, `report.json`, `logs` and
the `runs`, each as search-r1 train leaves it. Held-out numbers are those of the runs' validations.

Examples:

* `search-r1 ablate ppo --axis mask --axis top_k --seeds 1,2,3 --output runs/ablations/ppo-7b
actor_rollout_ref.model.path=Qwen/Qwen2.5-7B data.train_files=train.parquet
data.val_files=nq.parquet`

* `search-r1 ablate grpo --axis group_size=n1,n5 --output runs/ablations/group ...`

* `search-r1 ablate ppo 'search.urls=[http://a:8000/retrieve],[http://b:8000/retrieve]'
--output runs/ablations/retriever ...`

* `search-r1 ablate --report-only runs/ablations/ppo-7b`

One value alone: `search-r1 train ppo +ablations/mask=off ...`
"""


def ablate_command(
    config: Annotated[
        str | None, typer.Argument(help="A shipped config, or the path of a YAML file.")
    ] = None,
    overrides: Annotated[
        list[str] | None,
        typer.Argument(help="Settings as FIELD=VALUE, or FIELD=VALUE,VALUE to vary them."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(file_okay=False, help="The ablation's folder; one that exists is resumed."),
    ] = None,
    axis: Annotated[
        list[str] | None, typer.Option(metavar="NAME[=VALUE,...]", help="What to vary; repeatable.")
    ] = None,
    seeds: Annotated[
        str, typer.Option(metavar="N,...", help="Train every variant once with each.")
    ] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list the variants and their commands.")
    ] = False,
    report_only: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Only write the report of an ablation again."),
    ] = None,
) -> None:
    """Train variants of one config and compare them: mask, top-k, group size, or any field."""
    from search_r1.ablation import session

    with one_line_errors():
        if report_only:
            session.report(report_only)
            return
        if config is None or output is None:
            raise ValueError("CONFIG and --output must be given: what to vary, and its folder")
        require_folder(output)
        plan = session.compose(config, overrides or [], axis or [], _numbers(seeds), output)
    if dry_run:
        typer.echo(session.describe(plan))
        return
    command = shlex.join(["search-r1", *sys.argv[1:]])
    raise typer.Exit(session.check_and_train(plan, command))


def _numbers(seeds: str) -> list[int]:
    words = [word.strip() for word in seeds.split(",")] if seeds else []
    if not all(word.isascii() and word.isdecimal() for word in words):
        raise ValueError(f"--seeds {seeds}: not whole numbers; give them as 1,2,3")
    if len(set(words)) < len(words):
        raise ValueError(f"--seeds {seeds}: a seed is there twice")
    return [int(word) for word in words]
