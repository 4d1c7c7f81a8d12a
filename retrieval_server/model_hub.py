"""Whether a model that is only named can be had: asked once, where its library asks for minutes."""

from pathlib import Path
from typing import Final

_SECONDS: Final = 10.0
_CONFIG: Final = "config.json"


def check_reachable(model: str) -> None:
    """Pass a folder, a model that was downloaded before, or one whose hub answers.

    Raises:
        ValueError: It is none of these; the message says how to give a folder.
    """
    import httpx
    from huggingface_hub import constants, try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    if Path(model).exists():
        return
    try:
        if isinstance(try_to_load_from_cache(model, _CONFIG), str):
            return
    except HFValidationError as error:
        raise ValueError(f"model '{model}' is no folder here, and no name of a model") from error
    reason = "HF_HUB_OFFLINE is set"
    if not constants.HF_HUB_OFFLINE:
        try:
            httpx.head(f"{constants.ENDPOINT}/{model}/resolve/main/{_CONFIG}", timeout=_SECONDS)
        except httpx.TransportError as error:
            reason = f"{constants.ENDPOINT} cannot be reached ({error})"
        else:
            return
    raise ValueError(
        f"model '{model}' is no folder here and was not downloaded before, and {reason}: give the "
        "folder of the model instead of its name (where there is a network: "
        f"`hf download {model} --local-dir FOLDER`)"
    )
