"""The commands ``search-r1 eval`` and ``search-r1 compare``."""

from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from search_r1.exits import one_line_errors
from search_r1.trajectory import Budgets

_SHOWN_CHANGES: Final = 5

EVAL_EXAMPLES: Final = """
Leaves in the output folder: manifest.json (everything it was made with), answers.jsonl (each
answer as it came, with times), trajectories.jsonl (in the data's order; `search-r1 view` shows
it), metrics.json and metrics.md.

Examples:

* `search-r1 eval runs/NAME-merged --data data/test.parquet --retriever
http://127.0.0.1:8000/retrieve --output evals/NAME`

* `search-r1 eval models/Qwen2.5-7B --data nq/test.jsonl --data hotpotqa/dev.jsonl --sample 1000
--retriever URL --output evals/base`

* `search-r1 compare evals/base evals/NAME`
"""

_console = Console(stderr=True, highlight=False)


def eval_command(
    model: Annotated[
        Path,
        typer.Argument(
            exists=True,
            file_okay=False,
            help="A Hugging Face folder; `search-r1 merge` makes one of a verl checkpoint.",
        ),
    ],
    data: Annotated[
        list[Path],
        typer.Option(
            exists=True,
            dir_okay=False,
            help="Questions: .parquet of `search-r1 prepare questions`, or .jsonl[.gz] with id, "
            "question and golden_answers. Repeat it for several sets.",
        ),
    ],
    output: Annotated[Path, typer.Option(help="The results' folder; the same one resumes.")],
    retriever: Annotated[
        list[str] | None,
        typer.Option(
            help="The /retrieve URL of a server; repeat it for replicas. "
            "Only direct, cot, sft, r1 and --max-searches 0 go without."
        ),
    ] = None,
    method: Annotated[
        str, typer.Option(help="How to answer; a wrong name lists them all.")
    ] = "search_r1",
    sample: Annotated[
        int | None,
        typer.Option(help="Draw so many questions, the same number from each set.  [default: all]"),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the sample, tokens and intervals.")] = 0,
    temperature: Annotated[float, typer.Option(help="0 is greedy decoding.")] = 0.0,
    top_k: Annotated[int, typer.Option(help="Passages a search.")] = 3,
    max_searches: Annotated[int, typer.Option(help="Searches a question.")] = Budgets.max_searches,
    turn_tokens: Annotated[int, typer.Option(help="Sampled in one turn.")] = Budgets.turn_tokens,
    observation_tokens: Annotated[
        int, typer.Option(help="Inserted after one search.")
    ] = Budgets.observation_tokens,
    answer_reserve_tokens: Annotated[
        int, typer.Option(help="Room that every insert leaves for an answer.")
    ] = Budgets.answer_reserve_tokens,
    sequence_tokens: Annotated[
        int, typer.Option(help="Prompt and response; also the engine's limit.")
    ] = Budgets.sequence_tokens,
    concurrency: Annotated[int, typer.Option(help="Questions at a time.")] = 64,
    tensor_parallel: Annotated[int, typer.Option(help="GPUs that share the model.")] = 1,
    kv_cache_gib: Annotated[int, typer.Option(help="On a CPU: vLLM's key-value cache.")] = 2,
) -> None:
    """Answer question sets with a model and a search engine, and score the answers."""
    from search_r1.evaluation.config import EvalConfig
    from search_r1.evaluation.evaluate import Evaluation
    from search_r1.evaluation.watch import run_watched
    from search_r1.model_tokenizer import load_tokenizer
    from search_r1.settings import SearchSettings

    with one_line_errors():
        search = SearchSettings(
            urls=tuple(retriever or SearchSettings.urls),
            top_k=top_k,
            max_searches=max_searches,
            turn_tokens=turn_tokens,
            observation_tokens=observation_tokens,
            answer_reserve_tokens=answer_reserve_tokens,
            max_response_length=sequence_tokens,
            sequence_tokens=sequence_tokens,
        )
        config = EvalConfig(
            model=model,
            data=tuple(data),
            output=output,
            searchable=bool(retriever),
            method=method,
            sample=sample,
            seed=seed,
            temperature=temperature,
            search=search,
            concurrency=concurrency,
            tensor_parallel=tensor_parallel,
            kv_cache_gib=kv_cache_gib,
        )
        evaluation = Evaluation.prepare(config, load_tokenizer(model))
        log = evaluation.open_log()
    with log:
        run_watched(evaluation, log)
    typer.echo((output / "metrics.md").read_text(encoding="utf-8"), nl=False)


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
