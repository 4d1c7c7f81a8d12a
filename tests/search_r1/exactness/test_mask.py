"""The mask, from a scripted engine through our agent loop to the batch that verl trains on.

The engine samples alias ids, which no tokenizer writes: an id tells by itself who wrote it.
"""

import asyncio
import itertools
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from search_r1.passages import Passage
from search_r1.retriever import RetrievalError

pytestmark = pytest.mark.slow

TURNS = (
    "<think>hm</think><search>who wrote it</search>",
    "<search></search>",
    "just words and no action",
    "<information>forged</information><search>who</search>",
    "<answer>Ada</answer>",
    "",
)
PASSAGES = [Passage(str(n), f"Ada {n}", "Ada wrote notes on the engine " * 4, 0.9) for n in (1, 2)]
FIRST_ALIAS = 1_000_000


class Tokenizer:
    """The conftest's tokenizer with the interface of a Hugging Face one."""

    chat_template = None
    pad_token_id = 0
    eos_token_id = 0

    def __init__(self, plain: Any) -> None:
        self.plain = plain
        plain.id_of("<pad>")

    def encode(self, text: str, *, add_special_tokens: bool = True) -> list[int]:
        ids: list[int] = self.plain.encode(text)
        return ids

    def decode(self, token_ids: list[int], *, clean_up_tokenization_spaces: bool) -> str:
        text: str = self.plain.decode(token_ids)
        return text


class Server:
    """verl's client of its engines, which says the scripted turns."""

    def __init__(self, turns: list[list[int]]) -> None:
        self.turns = itertools.chain(turns, itertools.repeat([]))

    async def generate(self, sampling_params: dict[str, Any], **_: Any) -> Any:
        from verl.workers.rollout.replica import TokenOutput

        ids = next(self.turns)[: sampling_params["max_tokens"]]
        return TokenOutput(token_ids=ids, log_probs=[-0.5 - n for n in range(len(ids))])


class Client:
    """The search client that trajectories share."""

    def __init__(self, library: Any) -> None:
        self.library = library

    async def counted_search(self, queries: list[str], top_k: int, _stats: object) -> Any:
        return await self.library.search(queries, top_k)


@pytest.fixture(scope="session")
def worker() -> Iterator[Any]:
    """verl's agent-loop worker without Ray; what it would put into the queue is `worker.put`."""
    from verl.trainer.ppo.v1 import agent_loop_tq

    worker_class = agent_loop_tq.AgentLoopWorkerTQ.__ray_metadata__.modified_class
    made = object.__new__(worker_class)
    made.processor, made.distillation_enabled = None, False
    made.reward_loop_worker_handles, made.put = None, []

    async def put(keys: list[str], fields: Any, **_: Any) -> None:
        made.put += [fields[row] for row in range(len(keys))]

    with patch.object(agent_loop_tq.tq, "async_kv_batch_put", put):
        yield made


@pytest.fixture(scope="session")
def roll_out(
    make_tokenizer: Callable[[], Any], make_library: Callable[..., Any], worker: Any
) -> Callable[..., list[Any]]:
    """The rows that verl's queue gets of scripts, one trajectory each."""
    from omegaconf import OmegaConf

    from search_r1 import agent_loop

    def run(scripts: list[list[str]], search: dict[str, Any], lengths: tuple[int, int]) -> Any:
        tokenizer = Tokenizer(make_tokenizer())
        rollout = {"prompt_length": lengths[0], "response_length": lengths[1], "seed": 0}
        config = OmegaConf.create(
            {"search": {k: v for k, v in search.items() if k != "error"}}
            | {"actor_rollout_ref": {"rollout": rollout}}
        )
        library = make_library(
            PASSAGES, RetrievalError("who", "down") if search.get("error") else None
        )
        worker.put.clear()
        for session, script in enumerate(scripts):
            loop = object.__new__(agent_loop.SearchAgentLoop)
            loop.config, loop.rollout_config = config, config.actor_rollout_ref.rollout
            loop.tokenizer, loop.apply_chat_template_kwargs = tokenizer, {}
            loop.server_manager = Server([tokenizer.plain.sampled(turn) for turn in script])
            row = {
                "raw_prompt": [{"role": "user", "content": "who wrote it ?"}],
                "extra_info": {"id": "q", "question": "who wrote it ?"},
                "global_steps": 1,
                "session_id": session,
                "uid": "q",
            }
            with patch.object(agent_loop, "_retriever", lambda _settings: Client(library)):
                output = asyncio.run(loop.run({"temperature": 1.0}, **row))
            output.reward_score = 0.5
            asyncio.run(worker._agent_loop_postprocess(output, validate=False, **row))
        return list(worker.put)

    return run


SCRIPTS = st.lists(st.lists(st.sampled_from(TURNS), max_size=6), min_size=1, max_size=4)
SEARCH = st.fixed_dictionaries(
    {
        "max_searches": st.integers(0, 4),
        "turn_tokens": st.integers(1, 40),
        "observation_tokens": st.integers(1, 80),
        "answer_reserve_tokens": st.integers(0, 10),
        "top_k": st.integers(1, 2),
        "error": st.booleans(),
    }
)


def test_zero_is_exactly_what_the_system_wrote(roll_out: Any, verl: Any) -> None:
    seen = set[int]()

    @settings(max_examples=60, suppress_health_check=list(HealthCheck))
    @given(SCRIPTS, SEARCH, st.integers(1, 200))
    def holds(scripts: Any, search: dict[str, Any], response_length: int) -> None:
        rows = roll_out(scripts, search, (40, response_length))
        for row in rows:
            responses, mask = row["responses"], row["response_mask"]
            assert len(responses) == len(mask) == len(row["rollout_log_probs"]) <= response_length
            by_model = (responses >= FIRST_ALIAS).long()
            assert verl.torch.equal(mask, by_model)
            assert verl.torch.equal(row["loss_mask"], by_model)
            assert ((row["rollout_log_probs"] != 0).long() == by_model).all()
            assert row["input_ids"].tolist() == row["prompts"].tolist() + responses.tolist()
            assert (row["prompts"] < FIRST_ALIAS).all()
            # The reward is on the last token, which is a trained one unless nothing was said.
            assert row["rm_scores"].nonzero().flatten().tolist() == [len(mask) - 1]
            assert mask[-1] == 1 or mask.tolist() == [0]
            seen.update(mask.tolist())

    holds()
    assert seen == {0, 1}


def test_a_padded_batch_is_zero_behind_each_row(roll_out: Any, verl: Any) -> None:
    scripts = [[TURNS[0], TURNS[4]], [TURNS[4]], [TURNS[5]], [TURNS[2], TURNS[0], TURNS[4]]]
    rows = roll_out(scripts, {"max_searches": 3}, (40, 300))
    lengths = [len(row["response_mask"]) for row in rows]
    assert len(set(lengths)) == 4
    assert lengths[2] == 1  # nothing was said: one token, and no part of any loss
    nested = verl.torch.nested.as_nested_tensor(
        [row["response_mask"] for row in rows], layout=verl.torch.jagged
    )
    padded = verl.padded(nested)
    for row, length, line in zip(rows, lengths, padded, strict=True):
        assert line[:length].tolist() == row["response_mask"].tolist()
        assert (line[length:] == 0).all()
    assert padded[2].sum() == 0


def test_a_whole_trajectory_by_hand(roll_out: Any, make_tokenizer: Any) -> None:
    [row] = roll_out([[TURNS[0], TURNS[4]]], {"top_k": 1, "max_searches": 1}, (40, 300))
    count = make_tokenizer().encode
    observation = f'\n\n<information>Doc 1(Title: "Ada 1") {PASSAGES[0].text}</information>\n\n'
    sizes = [len(count(text)) for text in (TURNS[0], observation.replace(" <", "<"), TURNS[4])]
    runs = [(key, len(list(run))) for key, run in itertools.groupby(row["response_mask"].tolist())]
    assert runs == [(1, sizes[0]), (0, sizes[1]), (1, sizes[2])]
