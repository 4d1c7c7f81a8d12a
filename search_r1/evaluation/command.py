"""The commands ``search-r1 eval`` and ``search-r1 compare``."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from search_r1.evaluation import options
from search_r1.exits import one_line_errors
from search_r1.trajectory import Budgets

if TYPE_CHECKING:
    from search_r1.evaluation.config import EvalConfig

_SHOWN_CHANGES: Final = 5

EVAL_EXAMPLES: Final = """
Leaves in the output folder: manifest.json (everything it was made with), answers.jsonl (each
answer as it came, with times), trajectories.jsonl (in the data's order; `search-r1 view` shows
it), metrics.json and metrics.md. With --suite such a folder for each row of the paper's table, and
suite.md and suite.json; `search-r1 compare` takes any two of the folders.

Examples:

* `search-r1 eval runs/NAME --data data/test.parquet --retriever http://127.0.0.1:8000/retrieve
--output evals/NAME`

* `search-r1 eval models/Qwen2.5-7B --data nq/test.jsonl --data hotpotqa/dev.jsonl --sample 1000
--retriever URL --output evals/base`

* `search-r1 eval models/Qwen2.5-7B-Instruct --suite paper --data data/qa --retriever URL
--policy search_r1_ppo_base=runs/ppo --policy sft=models/sft --output evals/paper`

* `search-r1 compare evals/paper/rag evals/paper/search_r1_ppo_base`
"""


def eval_command(
    data: Annotated[
        list[Path],
        typer.Option(
            exists=True,
            help="Questions: a folder of `search-r1 prepare qa` for all its sets, a .parquet of "
            "`search-r1 prepare`, or .jsonl[.gz] with id, question and golden_answers. Repeat it "
            "for several sets.",
        ),
    ],
    output: Annotated[Path, typer.Option(help="The results' folder; the same one resumes.")],
    model: Annotated[
        Path | None,
        typer.Argument(
            exists=True,
            file_okay=False,
            help="A Hugging Face folder; or a run (its newest checkpoint) or a global_step_N, "
            "merged into the output first (`search-r1 merge` does it once for many). In a suite it "
            "answers the rows without training.",
        ),
    ] = None,
    suite: Annotated[
        str | None,
        typer.Option(
            help="'paper': every method of the paper's table, beside its numbers. The rows without "
            "training prompt MODEL (the paper prompts an instruct model)."
        ),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=MODEL",
            help="In a suite, the policy of a row with training; repeat it. A wrong name lists "
            "them all; a row without one is shown as missing.",
        ),
    ] = None,
    published: Annotated[
        str | None,
        typer.Option(
            help="Whose published numbers a suite shows; a wrong name lists them.  "
            "[default: as a model's folder is called, or Qwen2.5-7B]"
        ),
    ] = None,
    retriever: Annotated[
        list[str] | None,
        typer.Option(
            help="The /retrieve URL of a server; repeat it for replicas. "
            "Only direct, cot, sft, r1 and --max-searches 0 go without."
        ),
    ] = None,
    method: Annotated[
        str | None,
        typer.Option(help="How to answer; a wrong name lists them all.  [default: search_r1]"),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option(help="Draw so many questions, the same number from each set.  [default: all]"),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the sample, tokens and intervals.")] = 0,
    temperature: Annotated[float, typer.Option(help="0 is greedy decoding.")] = 0.0,
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
    """Answer question sets with a model and a search engine, and score the answers."""
    from search_r1.evaluation.config import EvalConfig
    from search_r1.evaluation.suite.command import run_suite

    with one_line_errors():
        search = options.search_settings(
            retriever,
            top_k=top_k,
            max_searches=max_searches,
            turn_tokens=turn_tokens,
            observation_tokens=observation_tokens,
            answer_reserve_tokens=answer_reserve_tokens,
            sequence_tokens=sequence_tokens,
        )
    configure = partial(
        EvalConfig,
        data=tuple(data),
        searchable=bool(retriever),
        sample=sample,
        seed=seed,
        temperature=temperature,
        search=search,
        concurrency=concurrency,
        tensor_parallel=tensor_parallel,
        kv_cache_gib=kv_cache_gib,
    )
    if suite is None:
        table = _evaluate(configure, model, output, method, suite_only=bool(policy or published))
    else:
        table = run_suite(configure, suite, model, policy or [], output, method, published)
    typer.echo(table.read_text(encoding="utf-8"), nl=False)


def _evaluate(
    configure: Callable[..., "EvalConfig"],
    model: Path | None,
    output: Path,
    method: str | None,
    *,
    suite_only: bool,
) -> Path:
    """Run one evaluation; its tables."""
    from search_r1.evaluation.evaluate import Evaluation, check_searchable
    from search_r1.evaluation.inputs import Inputs
    from search_r1.evaluation.methods import DEFAULT_METHOD
    from search_r1.evaluation.model_source import ModelSource
    from search_r1.evaluation.output_files import TABLES
    from search_r1.evaluation.watch import run_watched
    from search_r1.files import require_folder
    from search_r1.model_tokenizer import load_tokenizer

    with one_line_errors():
        if model is None:
            raise ValueError("model: give a Hugging Face folder, a run or a checkpoint")
        if suite_only:
            raise ValueError("policy, published: these go with --suite paper; leave them out")
        require_folder(output)
        config = configure(model=model, output=output, method=method or DEFAULT_METHOD)
        check_searchable(config)
        inputs = Inputs.read(config)
        tokenizer = load_tokenizer(ModelSource.find(model).folder)
        evaluation = Evaluation.prepare(config, tokenizer, inputs.ask(config))
        log = evaluation.open_log()
    with log:
        run_watched(evaluation, log)
    return output / TABLES


def compare_command(
    a: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="An eval's folder.")],
    b: Annotated[Path, typer.Argument(exists=True, file_okay=False, help="Another's.")],
    output: Annotated[
        Path | None,
        typer.Option(
            help="File for the questions that one of them alone has right.  "
            "[default: B/changed_from_A.jsonl]"
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the intervals.")] = 0,
    show: Annotated[int, typer.Option(min=0, help="Show so many changes.")] = _SHOWN_CHANGES,
) -> None:
    """Say whether B is better than A: paired differences, B minus A, and McNemar's exact test."""
    from search_r1.evaluation.comparison import compare, read_answers
    from search_r1.evaluation.difference_table import comparison_text, write_changes
    from search_r1.evaluation.output_files import refuse_own_files

    with one_line_errors():
        target = output or b / f"changed_from_{a.resolve().name}.jsonl"
        refuse_own_files(target, (a, b))
        comparison = compare(read_answers(a), read_answers(b), seed)
        write_changes(target, comparison)
    typer.echo(comparison_text(comparison, show))
    typer.echo(f"\n{len(comparison.changed):,} questions changed: {target}")
