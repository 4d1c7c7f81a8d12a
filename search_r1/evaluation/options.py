"""Options that several commands take: what a trajectory may cost, and what the engine gets."""

from typing import Annotated

import typer

TopK = Annotated[int, typer.Option(help="Passages a search.")]
MaxSearches = Annotated[int, typer.Option(help="Searches a question.")]
TurnTokens = Annotated[int, typer.Option(help="Sampled in one turn.")]
ObservationTokens = Annotated[int, typer.Option(help="Inserted after one search.")]
AnswerReserveTokens = Annotated[
    int, typer.Option(help="Room that every insert leaves for an answer.")
]
SequenceTokens = Annotated[int, typer.Option(help="Prompt and response; also the engine's limit.")]
Concurrency = Annotated[int, typer.Option(help="Questions at a time.")]
TensorParallel = Annotated[int, typer.Option(help="GPUs that share the model.")]
KvCacheGib = Annotated[int, typer.Option(help="On a CPU: vLLM's key-value cache.")]
