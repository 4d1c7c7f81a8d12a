"""Says what verl and vLLM make of this machine: one JSON line a question, for `search-r1 doctor`.

Command: ``python -m search_r1.platform.probe``, in the environment of a run.
"""

import importlib
import json
import sys
from collections.abc import Callable

from search_r1.platform import is_selected


def main() -> None:
    """Answer every question; an answer that fails does not hide the others."""
    questions = (verl_platform, verl_engines, agent_loop, vllm_platform)
    answers = [_answer(question) for question in questions]
    for answer in answers:
        sys.stdout.write(json.dumps(answer) + "\n")


def verl_platform() -> str:
    """The device that verl works with."""
    from verl.plugin.platform import get_platform

    return str(get_platform().device_name)


def verl_engines() -> str:
    """The classes that verl takes for actor and critic."""
    from verl.workers.engine import EngineRegistry

    if is_selected():
        importlib.import_module("search_r1.platform.engine")
    kinds = ("language_model", "value_model")
    return ", ".join(EngineRegistry.get_engine_cls(kind, "fsdp2").__name__ for kind in kinds)


def agent_loop() -> str:
    """The class that verl finds under the name search_r1."""
    from verl.experimental.agent_loop.agent_loop import _agent_loop_registry

    importlib.import_module("search_r1.agent_loop")
    return str(_agent_loop_registry["search_r1"]["_target_"])


def vllm_platform() -> str:
    """The device that vLLM works with."""
    from vllm.platforms import current_platform

    return str(current_platform.device_type)


def _answer(question: Callable[[], str]) -> dict[str, str | bool]:
    name = question.__name__.replace("_", " ")
    # Whatever goes wrong is the answer.
    try:
        return {"name": name, "ok": True, "detail": question()}
    except Exception as error:
        return {"name": name, "ok": False, "detail": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    main()
