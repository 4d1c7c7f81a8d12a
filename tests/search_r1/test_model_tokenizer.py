from pathlib import Path

import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

from search_r1.model_tokenizer import load_tokenizer


@pytest.mark.slow
@pytest.mark.parametrize(
    "files",
    [
        {"config.json": "{}"},
        {"config.json": '{"model_type": "qwen2"}'},
        {"config.json": '{"model_type": "bert"}'},
        {"config.json": '{"model_type": "qwen2"}', "tokenizer.json": "garbage"},
        {"config.json": '{"model_type": "qwen2"}', "tokenizer.json": "{}"},
        {"config.json": '{"model_type": "qwen2"}', "tokenizer_config.json": "[]"},
    ],
)
def test_a_folder_without_a_tokenizer_is_named(tmp_path: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=rf"model: {tmp_path} holds no tokenizer.*; copy there"):
        load_tokenizer(tmp_path)


@pytest.mark.slow
def test_a_tokenizer_is_read(tmp_path: Path) -> None:
    model = Tokenizer(WordLevel({"question": 0, "?": 1}, unk_token="?"))
    PreTrainedTokenizerFast(tokenizer_object=model).save_pretrained(tmp_path)
    (tmp_path / "config.json").write_text("{}")
    assert load_tokenizer(tmp_path).encode("question") == [0]
