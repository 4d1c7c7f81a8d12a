"""The model folder and the lengths: prompt, response and search budgets against its positions."""

import re
from pathlib import Path

from omegaconf import DictConfig

from search_r1.checks.findings import Findings, Note, Problem, select
from search_r1.checks.search import search_settings
from search_r1.checks.sizes import longest_trajectory
from search_r1.memory.shape import ModelShape, find_shape

PATH = "actor_rollout_ref.model.path"
_FILES = {
    "config.json": "config",
    "tokenizer*": "tokenizer",
    "*.safetensors|pytorch_model*.bin": "weights",
}


def check_model(config: DictConfig) -> Findings:
    """The model is a complete folder or can be a Hugging Face name, and sequences fit it."""
    path = str(select(config, PATH))
    if Path(path).is_dir():
        yield from _check_folder(Path(path))
    elif not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", path):
        yield Problem(PATH, f"there is no folder {path}", "a folder or a Hugging Face name")
        return
    else:
        yield Note(PATH, f"{path} is no folder here: taken as a Hugging Face name")
    try:
        shape = find_shape(path)
    except ValueError as error:
        yield Problem(PATH, str(error), "a Hugging Face model folder with a complete config.json")
        return
    yield from check_lengths(config, shape)


def _check_folder(folder: Path) -> Findings:
    for patterns, what in _FILES.items():
        if not any(any(folder.glob(pattern)) for pattern in patterns.split("|")):
            message = f"{folder} holds no {what} ({patterns.replace('|', ' or ')})"
            yield Problem(PATH, message, "a complete model: `search-r1 merge` or `prepare model`")


def check_lengths(config: DictConfig, shape: ModelShape | None) -> Findings:
    """The longest trajectory fits model and engine; a search and an answer fit the response."""
    longest = longest_trajectory(config)
    if shape and longest > shape.positions:
        message = f"prompt and response of {longest} tokens, but the model has {shape.positions}"
        fix = f"at most {shape.positions - config.data.max_prompt_length}"
        yield Problem("data.max_response_length", message, fix)
    rollout = config.actor_rollout_ref.rollout
    if rollout.max_model_len < longest:
        message = f"{rollout.max_model_len} is less than prompt and response, {longest} tokens"
        field = "actor_rollout_ref.rollout.max_model_len"
        yield Problem(field, message, f"{longest}, or null to follow them")
    if not rollout.enable_chunked_prefill and rollout.max_num_batched_tokens < longest:
        field = "actor_rollout_ref.rollout.max_num_batched_tokens"
        message = "without chunked prefill it must hold a whole trajectory"
        yield Problem(field, message, f"at least {longest}")
    yield from _check_budgets(config)


def _check_budgets(config: DictConfig) -> Findings:
    settings, response = search_settings(config), config.data.max_response_length
    if not settings.may_search:
        if response < settings.turn_tokens:
            text = (
                f"the only turn, of search.turn_tokens={settings.turn_tokens}, ends at {response}"
            )
            yield Note("data.max_response_length", text)
        return
    one_search = settings.turn_tokens + settings.observation_tokens
    least = one_search + settings.answer_reserve_tokens
    most = settings.max_searches * one_search + settings.turn_tokens
    if response < least:
        message = (
            f"{response} tokens do not hold one search and an answer: {settings.turn_tokens} for a "
            f"turn, {settings.observation_tokens} for an observation and "
            f"{settings.answer_reserve_tokens} for the answer"
        )
        yield Problem("data.max_response_length", message, f"at least {least}")
    elif response < most:
        fit = (response - settings.answer_reserve_tokens) // one_search
        text = (
            f"{settings.max_searches} searches at their full budgets need {most} of {response} "
            f"tokens; {fit} always fit, then observations are cut and the answer is asked for"
        )
        yield Note("data.max_response_length", text)
