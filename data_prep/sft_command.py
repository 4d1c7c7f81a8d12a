"""The command ``search-r1 prepare sft``."""

from pathlib import Path
from typing import Annotated, Final

import typer

from data_prep.console import progress, say
from data_prep.demonstration_file import write_rows
from data_prep.outputs import refuse_inputs, require_parquet
from data_prep.sft import direct_rows
from search_r1.evaluation.question_sets import join, read_files, sample
from search_r1.exits import one_line_errors
from search_r1.model_tokenizer import load_tokenizer

SFT_EXAMPLES: Final = """
Examples, from data to scores:

* `search-r1 prepare sft data/qa/train.parquet --model models/Qwen2.5-7B --output sft.parquet`

* on one device: `search-r1 warm-start --model models/Qwen2.5-7B --data sft.parquet
--learning-rate 1e-5 --batch-size 64 --output models/sft`

* on eight GPUs the same, sharded: `torchrun --nproc-per-node 8 --no-python search-r1 warm-start
--fsdp --gradient-checkpointing --micro-batch-size 8 ...`; or with verl's SFT trainer, which keeps
checkpoints and resumes: configs/sft.yaml has its command

* `search-r1 eval models/sft --method sft --data data/qa/nq.parquet --output evals/sft`
"""


def sft_command(
    inputs: Annotated[
        list[Path],
        typer.Argument(
            exists=True,
            dir_okay=False,
            help="Question sets: .parquet of `search-r1 prepare`, or .jsonl[.gz] with id, question "
            "and golden_answers.",
            metavar="INPUT...",
        ),
    ],
    model: Annotated[
        Path,
        typer.Option(exists=True, file_okay=False, help="The policy, for its tokenizer."),
    ],
    output: Annotated[Path, typer.Option(help="The file to write; it must end in .parquet.")],
    count: Annotated[
        int | None,
        typer.Option(
            "--sample", help="Draw so many questions, as many from each set.  [default: all]"
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the sample.")] = 0,
) -> None:
    """Make the data of the paper's SFT baseline: the question, and at once its first gold answer.

    The prompt is that of `search-r1 eval --method sft` (the same as --method direct), in the
    model's chat template where it has one; only the answer block is learnt. No search is involved.
    """
    with one_line_errors():
        require_parquet(output)
        refuse_inputs(output, inputs)
        questions = join(read_files(inputs).values())
        if count is not None:
            questions = sample(questions, count, seed)
        rows = direct_rows(questions, load_tokenizer(model))
        with progress("Writing rows", len(questions)) as advance:
            size = write_rows(rows, output, advance)
    say(f"{output}: {size}")
