"""The inference baselines of the paper (section 4.2), each a `search_r1.evaluation.method.Method`.

All of them use the engine, the retriever, the budgets and the scoring of Search-R1 itself, and
leave the same record, so that only the way to answer differs.
"""

from search_r1.baselines import cot, direct, ircot, rag, react, search_o1
from search_r1.evaluation.method import Method

METHODS: dict[str, Method] = {
    "direct": direct.answer,
    "cot": cot.answer,
    "rag": rag.answer,
    "ircot": ircot.answer,
    "search_o1": search_o1.answer,
    "react": react.answer,
}
"""By the name that a person gives."""
