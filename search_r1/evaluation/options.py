"""Options that several commands take: what a trajectory may cost, and what the engine gets."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from search_r1.settings import SearchSettings

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


def search_settings(
    retriever: Sequence[str] | None,
    *,
    top_k: int,
    max_searches: int,
    turn_tokens: int,
    observation_tokens: int,
    answer_reserve_tokens: int,
    sequence_tokens: int,
) -> "SearchSettings":
    """The settings that these options make; a response may take the whole sequence.

    Args:
        retriever: The URLs given; None keeps the default, which then nothing asks.
        top_k: Passages a search.
        max_searches: Searches a question.
        turn_tokens: Sampled in one turn.
        observation_tokens: Inserted after one search.
        answer_reserve_tokens: Room that every insert leaves for an answer.
        sequence_tokens: Prompt and response.

    Raises:
        ValueError: one is out of its range; the message names it.
    """
    from search_r1.settings import SearchSettings

    return SearchSettings(
        urls=tuple(retriever or SearchSettings.urls),
        top_k=top_k,
        max_searches=max_searches,
        turn_tokens=turn_tokens,
        observation_tokens=observation_tokens,
        answer_reserve_tokens=answer_reserve_tokens,
        max_response_length=sequence_tokens,
        sequence_tokens=sequence_tokens,
    )
