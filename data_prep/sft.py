"""Questions and their answers -> demonstrations of the direct answer (SFT; paper, section 4.2).

The prompt is the one that `search-r1 eval --method sft` asks, the response the gold answer alone.

Command: ``search-r1 prepare sft INPUT... --model DIR --output FILE``.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from data_prep.questions import Question
from search_r1.actions import Answer, parse_action
from search_r1.baselines import direct
from search_r1.prompts import Tag
from search_r1.tokens import HubTokenizer, PlainTokenizer, prompt_ids
from search_r1.trajectory import Budgets

MAX_TOKENS: Final = Budgets.sequence_tokens
"""Of a row; evaluation gives prompt and response no more."""


def direct_rows(questions: Iterable[Question], tokenizer: HubTokenizer) -> Iterator[dict[str, Any]]:
    """A row of `data_prep.demonstration_file.SCHEMA` for each question, in their order.

    Raises:
        ValueError: a row cannot be learnt from; the message names the question, field and fix.
    """
    for question in questions:
        try:
            yield direct_row(question, tokenizer)
        except ValueError as error:
            raise ValueError(f"question {question.id}: {error}; drop the row") from error


def direct_row(question: Question, tokenizer: HubTokenizer) -> dict[str, Any]:
    """The row of one question. Of several gold answers the first is the one to learn.

    Raises:
        ValueError: the answer cannot be read back from its block, or the row is too long.
    """
    gold = question.golden_answers[0].strip()
    text = Tag.ANSWER.wrap(f" {gold} ")
    if parse_action(text) != Answer(gold):
        raise ValueError(f"golden_answers: {gold!r} holds a tag of the protocol")
    asked = [{"role": "user", "content": direct.prompt(question.question)}]
    prompt = prompt_ids(tokenizer, asked, {})
    response = PlainTokenizer(tokenizer).encode(text)
    if (tokens := len(prompt) + len(response)) > MAX_TOKENS:
        raise ValueError(f"question and answer have {tokens:,} tokens, more than {MAX_TOKENS:,}")
    return {
        "id": question.id,
        "hops": question.metadata.get("hops", 0),
        "input_ids": prompt + response,
        "mask": [0] * len(prompt) + [1] * len(response),
    }
