"""The ``search:`` section, and that the rollout is ours."""

import ipaddress
import re
from typing import Any
from urllib.parse import urlsplit

from omegaconf import DictConfig, OmegaConf

from search_r1.checks.findings import Findings, Problem, as_list, select
from search_r1.settings import SearchSettings

_OURS = {
    "actor_rollout_ref.model.external_lib": "search_r1.agent_loop",
    "actor_rollout_ref.rollout.agent.default_agent_loop": "search_r1",
    "actor_rollout_ref.rollout.name": "vllm",
    "trainer.use_v1": True,
}
"""Settings without which no trajectory would search, or no monitor would see it."""


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


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
