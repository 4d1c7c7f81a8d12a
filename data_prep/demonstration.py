"""One demonstration: a question of a world, answered by a script in the real rollout."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from data_prep.demonstrator import Demonstrator, Hop
from data_prep.library import Librarian, Library
from data_prep.questions import Question
from search_r1.prompts import build_messages
from search_r1.result import RolloutResult
from search_r1.rollout import run_rollout
from search_r1.settings import SearchSettings
from search_r1.tokens import HubTokenizer, PlainTokenizer, prompt_ids

_HOP_FIELDS = frozenset({"title", "relation", "answer"})


@dataclass(frozen=True, slots=True)
class Stage:
    """What all demonstrations of a world share."""

    library: Library
    tokenizer: HubTokenizer
    """The policy's."""
    gold_share: float
    guess_share: float
    search: SearchSettings

    async def demonstrate(self, question: Question, rng: random.Random) -> dict[str, Any] | None:
        """The row of one demonstration: `id`, `hops`, `input_ids`, `mask`.

        Returns:
            None if the budgets cut a passage that the script's words rely on.

        Raises:
            ValueError: the question has no chain, or the budgets leave no room for a turn.
        """
        chain = _chain(question)
        plain = PlainTokenizer(self.tokenizer)
        searches = self.search.max_searches
        script = Demonstrator(
            chain, self.library, plain, self.gold_share, self.guess_share, searches, rng
        )
        prompt = prompt_ids(self.tokenizer, build_messages(question.question), {})
        result = await run_rollout(
            prompt,
            generate=script,
            retriever=Librarian(self.library, rng),
            tokenizer=plain,
            settings=self.search,
        )
        if not _shows(result, chain[: script.right_hops]):
            return None
        trajectory = result.trajectory
        return {
            "id": question.id,
            "hops": len(chain),
            "input_ids": trajectory.ids,
            "mask": trajectory.loss_mask,
        }


def _chain(question: Question) -> Sequence[Hop]:
    chain = question.metadata.get("chain")
    if not chain or not all(set(hop) >= _HOP_FIELDS for hop in chain):
        raise ValueError(
            f"question {question.id}: chain: must list title, relation and answer of each hop; "
            "make the world with search-r1 prepare world"
        )
    return list(chain)


def _shows(result: RolloutResult, hops: Sequence[Hop]) -> bool:
    """Whether it ends with an answer, and the passages hold what the script claims to have read."""
    if result.answer is None or len(result.turns) <= len(hops):
        return False
    return all(
        hop["title"] in {passage.title for passage in turn.passages}
        and hop["answer"] in turn.observation
        for hop, turn in zip(hops, result.turns, strict=False)
    )
