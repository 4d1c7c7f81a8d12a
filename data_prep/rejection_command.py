"""The command ``search-r1 prepare rejection-samples``."""

import json
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from data_prep.console import progress, say
from data_prep.demonstration_file import write_rows
from data_prep.outputs import refuse_inputs, require_parquet
from data_prep.rejection import PAPER_SAMPLES, Preference, Selection, Tally, select
from search_r1.evaluation import options
from search_r1.exits import one_line_errors
from search_r1.files import write_lines
from search_r1.trajectory import Budgets

if TYPE_CHECKING:
    from search_r1.evaluation.sampling import Logs, Sampling

SELECTION: Final = "selection.json"

REJECTION_EXAMPLES: Final = """
Beside the output a folder of the same name with .samples holds every trajectory, right or wrong
(`search-r1 view FOLDER/1/answers.jsonl`), how they were made (1/manifest.json, ...) and what was
kept (selection.json). The same command resumes; with a larger --samples it adds to what there is.

Examples, from data to scores:

* `search-r1 prepare rejection-samples models/Qwen2.5-7B-Instruct --data data/qa/train.parquet
--retriever http://127.0.0.1:8000/retrieve --output rejection.parquet`

* `torchrun --nproc-per-node 8 --no-python search-r1 warm-start --model models/Qwen2.5-7B
--data rejection.parquet --learning-rate 1e-5 --batch-size 64 --fsdp --gradient-checkpointing
--output models/rejection`; or with verl's SFT trainer: configs/sft.yaml has its command

* `search-r1 eval models/rejection --data data/qa/nq.parquet --retriever URL --output evals/rs`
"""


def rejection_command(
    model: Annotated[
        Path,
        typer.Argument(
            exists=True,
            file_okay=False,
            help="Who answers: a Hugging Face folder, a run or a checkpoint. The paper takes an "
            "instruct model.",
        ),
    ],
    data: Annotated[
        list[Path],
        typer.Option(
            exists=True,
            help="Training questions, as `search-r1 eval` takes them; repeat it for several sets.",
        ),
    ],
    output: Annotated[Path, typer.Option(help="The file to write; it must end in .parquet.")],
    retriever: Annotated[
        list[str] | None,
        typer.Option(
            help="The /retrieve URL of a server; repeat it for replicas. Only --max-searches 0 "
            "goes without."
        ),
    ] = None,
    samples: Annotated[int, typer.Option(help="Trajectories of each question.")] = PAPER_SAMPLES,
    keep: Annotated[
        int | None,
        typer.Option(help="At most so many of each question.  [default: all that are right]"),
    ] = None,
    prefer: Annotated[
        Preference, typer.Option(help="Which, if there are more than --keep.")
    ] = Preference.FIRST,
    questions: Annotated[
        int | None,
        typer.Option(help="Draw so many questions, as many from each set.  [default: all]"),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of questions, tokens and random choice.")] = 0,
    temperature: Annotated[float, typer.Option(help="Of the tokens.")] = 1.0,
    top_k: options.TopK = 3,
    max_searches: options.MaxSearches = Budgets.max_searches,
    turn_tokens: options.TurnTokens = Budgets.turn_tokens,
    observation_tokens: options.ObservationTokens = Budgets.observation_tokens,
    answer_reserve_tokens: options.AnswerReserveTokens = Budgets.answer_reserve_tokens,
    sequence_tokens: options.SequenceTokens = Budgets.sequence_tokens,
    concurrency: options.Concurrency = 64,
    tensor_parallel: options.TensorParallel = 1,
    kv_cache_gib: options.KvCacheGib = 2,
) -> None:
    """Answer training questions several times and keep the right trajectories, for warm-start.

    The paper's rejection sampling: five trajectories a question with the search rollout at
    temperature 1, and of those every one whose final answer is an exact match. The model and its
    tokenizer must be those of the policy to train, or share its vocabulary and chat template.
    """
    from search_r1.evaluation.config import EvalConfig
    from search_r1.evaluation.sampling import Sampling
    from search_r1.model_tokenizer import load_tokenizer

    with ExitStack() as stack:
        with one_line_errors():
            require_parquet(output)
            refuse_inputs(output, data)
            selection = Selection(keep, prefer, seed)
            config = EvalConfig(
                model=model,
                data=tuple(data),
                output=samples_folder(output),
                searchable=bool(retriever),
                sample=questions,
                seed=seed,
                temperature=temperature,
                search=options.search_settings(
                    retriever,
                    top_k=top_k,
                    max_searches=max_searches,
                    turn_tokens=turn_tokens,
                    observation_tokens=observation_tokens,
                    answer_reserve_tokens=answer_reserve_tokens,
                    sequence_tokens=sequence_tokens,
                ),
                concurrency=concurrency,
                tensor_parallel=tensor_parallel,
                kv_cache_gib=kv_cache_gib,
            )
            sampling = Sampling.prepare(config, samples, load_tokenizer)
            logs = sampling.open_logs(stack)
        _sample(sampling, logs)
        with one_line_errors():
            _write(sampling, logs, selection, output)


def samples_folder(output: Path) -> Path:
    """Where the trajectories are that an output is made of."""
    return output.with_suffix(".samples")


def _sample(sampling: "Sampling", logs: "Logs") -> None:
    from search_r1.evaluation import vllm_engine
    from search_r1.evaluation.watch import progress_bar, tell_how_it_ends

    with tell_how_it_ends(sampling.total), progress_bar() as bar:
        task = bar.add_task("Sampling", total=sampling.total)
        sampling.run(logs, vllm_engine.start_vllm, lambda done: bar.update(task, completed=done))


def _write(sampling: "Sampling", logs: "Logs", selection: Selection, output: Path) -> None:
    """Write what is kept, and beside the trajectories how it was chosen."""
    tally = Tally()
    with progress("Choosing", len(sampling.evaluations[0].questions)) as advance:
        size = write_rows(select(sampling.rows(logs), selection, tally, lambda: advance(1)), output)
    chosen = asdict(selection) | {"samples": len(logs)} | tally.to_json()
    write_lines(samples_folder(output) / SELECTION, [json.dumps(chosen, indent=2)])
    say(f"{output}: {size}; {tally}")
