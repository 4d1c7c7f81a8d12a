"""The ``search:`` section, that the rollout is ours, and what may not stand beside it."""

import ipaddress
import re
from typing import Any
from urllib.parse import urlsplit

from omegaconf import DictConfig, OmegaConf

from search_r1.checks.findings import Findings, Note, Problem, as_list, select
from search_r1.settings import SearchSettings

_OURS = {
    "actor_rollout_ref.model.external_lib": "search_r1.agent_loop",
    "actor_rollout_ref.rollout.agent.default_agent_loop": "search_r1",
    "actor_rollout_ref.rollout.name": "vllm",
    "trainer.use_v1": True,
}
"""Settings without which no trajectory would search, or no monitor would see it."""

_CORRECTION = "algorithm.rollout_correction"
_NEEDS_THE_MASK = {"bypass_mode": "false", "rollout_is": "null", "rollout_rs": "null"}
"""What of verl takes the engine's log-probabilities for those of all trained tokens."""


def search_settings(config: DictConfig) -> SearchSettings:
    """The rollout's settings, as the agent loop will make them.

    Raises:
        TypeError: a setting is of the wrong type.
        ValueError: a setting is unknown or out of its range.
    """
    section: Any = OmegaConf.to_container(config.search, resolve=True)
    return SearchSettings.from_mapping(section)


def check_search(config: DictConfig) -> Findings:
    """The section is one that the rollout takes."""
    try:
        search_settings(config)
    except (TypeError, ValueError) as error:
        field = re.search(r"search\.\w+", str(error))
        yield Problem(field.group() if field else "search", str(error), "see configs/base.yaml")


def check_rollout(config: DictConfig) -> Findings:
    """Every node reaches a server, and verl is told to use our agent loop."""
    nodes = config.trainer.nnodes
    for url in config.search.urls:
        if (
            search_settings(config).may_search
            and nodes > 1
            and _is_loopback(urlsplit(url).hostname or "")
        ):
            message = f"{url} is each machine for itself, but the run has {nodes} nodes"
            yield Problem("search.urls", message, "an address that every node reaches")
    for field, wanted in _OURS.items():
        value = select(config, field)
        if wanted not in as_list(value):
            yield Problem(field, f"is {value!r}", str(wanted))
    if not search_settings(config).mask_retrieved:
        yield from _check_without_mask(config)


def _check_without_mask(config: DictConfig) -> Findings:
    for name, fix in _NEEDS_THE_MASK.items():
        if select(config, f"{_CORRECTION}.{name}"):
            message = (
                "needs the engine's log-probability of every trained token, and with "
                "search.mask_retrieved=false those that were inserted have none"
            )
            yield Problem(f"{_CORRECTION}.{name}", message, fix)
    text = (
        "false trains on what the searches returned as if the model had written it: an ablation; "
        "how the engine's log-probabilities differ from the trainer's is not logged then"
    )
    yield Note("search.mask_retrieved", text, warning=True)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
