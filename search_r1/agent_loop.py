"""The search rollout as an agent loop of verl, and nothing else.

verl imports this module through ``actor_rollout_ref.model.external_lib`` and makes one
`SearchAgentLoop` for each trajectory, so what is costly is made once per process and config.
"""

import json
import zlib
from functools import lru_cache
from typing import Any
from uuid import uuid4

from omegaconf import DictConfig, OmegaConf
from verl.experimental.agent_loop.agent_loop import AgentLoopBase, AgentLoopOutput, register

import search_r1.policy_loss  # noqa: F401 - registers our losses wherever our agent loop is
from search_r1.prompts import STOP_STRINGS, messages_of_row
from search_r1.result import RolloutResult
from search_r1.retriever import CountedRetriever, HttpRetriever
from search_r1.rollout import Generation, run_rollout
from search_r1.settings import SearchSettings
from search_r1.tokens import PlainTokenizer, prompt_ids


@register("search_r1")
class SearchAgentLoop(AgentLoopBase):  # type: ignore[misc] # verl is not typed
    """Runs one trajectory with verl's engine and the retrieval server of the config."""

    async def run(self, sampling_params: dict[str, Any], **row: Any) -> AgentLoopOutput:
        """Roll out one row of the data set.

        Args:
            sampling_params: verl's, for training or for validation.
            row: The row's columns; ``raw_prompt`` holds the chat messages, and ``extra_info`` the
                question, which makes the prompt where no search is allowed.
        """
        settings = search_settings(self.config)
        origin = (
            f"{self.rollout_config.seed}/{row['global_steps']}/{_row_id(row)}/{row['session_id']}"
        )
        engine = _Engine(self.server_manager, sampling_params, origin)
        messages = messages_of_row(row, may_search=settings.may_search)
        retriever = CountedRetriever(_retriever(settings))
        result = await run_rollout(
            prompt_ids(self.tokenizer, messages, self.apply_chat_template_kwargs),
            generate=engine,
            retriever=retriever,
            tokenizer=PlainTokenizer(self.tokenizer),
            settings=settings,
        )
        # A trajectory without one generation has no version of its own, and verl needs one.
        versions = engine.versions or [row["global_steps"]]
        record = result.record() | {
            "session": row["session_id"],
            "search_retries": retriever.stats.retries,
        }
        return _to_output(result, record, versions, pad_id=self.tokenizer.pad_token_id)


def _row_id(row: dict[str, Any]) -> str:
    extra_info = row.get("extra_info") or {}
    return str(extra_info.get("id", row.get("index", "")))


def search_settings(config: DictConfig) -> SearchSettings:
    """The settings of the rollout: section ``search``, with the lengths that verl sets."""
    rollout = config.actor_rollout_ref.rollout
    return _search_settings(
        json.dumps(OmegaConf.to_container(config.search, resolve=True), sort_keys=True),
        rollout.prompt_length,
        rollout.response_length,
    )


@lru_cache(maxsize=8)
def _search_settings(section: str, prompt_length: int, response_length: int) -> SearchSettings:
    lengths = {
        "max_response_length": response_length,
        "sequence_tokens": prompt_length + response_length,
    }
    return SearchSettings.from_mapping(lengths | json.loads(section))


@lru_cache(maxsize=8)
def _retriever(settings: SearchSettings) -> HttpRetriever:
    return HttpRetriever(settings)


class _Engine:
    """verl's engine as `search_r1.rollout.Generate`; one request id keeps its prefix cache.

    Args:
        server: verl's client of its engines.
        sampling_params: verl's, for training or for validation.
        origin: What tells this trajectory from all others of the run. Every turn is sampled from
            a seed made of it, so a resumed run samples what the uninterrupted one would have.
    """

    def __init__(self, server: Any, sampling_params: dict[str, Any], origin: str) -> None:
        self._server = server
        self._origin = origin
        self._sampling = sampling_params | {
            "stop": list(STOP_STRINGS),
            "include_stop_str_in_output": True,
        }
        self._request_id = uuid4().hex
        self.versions: list[int] = []
        """The weights each turn was sampled from, as verl numbers them."""

    async def __call__(self, ids: list[int], max_tokens: int) -> Generation:
        seed = zlib.crc32(f"{self._origin}/{len(ids)}".encode())
        output = await self._server.generate(
            request_id=self._request_id,
            prompt_ids=ids,
            # The engine takes keys out of the mapping, so every turn gets its own.
            sampling_params=self._sampling | {"max_tokens": max_tokens, "seed": seed},
        )
        fields = output.extra_fields
        versions = (fields.get("min_global_steps"), fields.get("max_global_steps"))
        self.versions += [version for version in versions if version is not None]
        return Generation(list(output.token_ids), output.log_probs, output.stop_reason)


def _to_output(
    result: RolloutResult, record: dict[str, Any], versions: list[int], pad_id: int
) -> AgentLoopOutput:
    trajectory = result.trajectory
    # verl needs a response; an empty one becomes a single token that nothing is trained on.
    empty = not trajectory.response_ids
    logprobs = [0.0] if empty else trajectory.logprobs
    return AgentLoopOutput(
        prompt_ids=trajectory.prompt_ids,
        response_ids=[pad_id] if empty else trajectory.response_ids,
        response_mask=[0] if empty else trajectory.response_mask,
        response_logprobs=logprobs if trajectory.has_logprobs else None,
        num_turns=len(result.turns),
        metrics={
            "generate_sequences": result.generate_seconds,
            "tool_calls": result.search_seconds,
        },
        extra_fields={
            "rollout": record,
            "min_global_steps": min(versions),
            "max_global_steps": max(versions),
            "turn_scores": [],
            "tool_rewards": [],
        },
    )
