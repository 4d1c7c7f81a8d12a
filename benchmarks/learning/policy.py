"""The small policy before it is trained: a tokenizer of its own, and a Llama of random weights."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import torch
from tokenizers import AddedToken, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from tokenizers.trainers import BpeTrainer
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from data_prep.demonstrator import BLIND_ANSWER_THOUGHTS, BLIND_SEARCH_THOUGHTS
from search_r1.prompts import Tag

_END: Final = "<|endoftext|>"
_VOCABULARY: Final = 1_024
_THOUGHTS: Final = " ".join([*BLIND_SEARCH_THOUGHTS, *BLIND_ANSWER_THOUGHTS])
# Of the prompt, the question: the instruction before it would be half of each sequence, and a model
# of a million parameters cannot follow it.
_QUESTION_ONLY: Final = "{{ messages[-1]['content'].split('Question: ')[-1] }}\n"


def make_tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """A byte-pair tokenizer of these texts, each tag of the protocol a token."""
    tags = [end for tag in Tag for end in (tag.opening, tag.closing)]
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = ByteLevel(add_prefix_space=False)
    tokenizer.decoder = ByteLevelDecoder()
    trainer = BpeTrainer(
        vocab_size=_VOCABULARY - len(tags),
        special_tokens=[_END],
        initial_alphabet=ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([*texts, *[_THOUGHTS] * 300], trainer)
    tokenizer.add_tokens([AddedToken(tag, normalized=False) for tag in tags])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=_END,
        eos_token=_END,
        pad_token=_END,
        clean_up_tokenization_spaces=False,
    )
    fast.chat_template = _QUESTION_ONLY
    return fast


def make_model(tokenizer: PreTrainedTokenizerFast, seed: int) -> LlamaForCausalLM:
    """A Llama of 4 layers and 1.0 million parameters, embeddings included."""
    torch.manual_seed(seed)
    end = tokenizer.eos_token_id
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=128,
            intermediate_size=384,
            num_hidden_layers=4,
            num_attention_heads=4,
            num_key_value_heads=4,
            max_position_embeddings=2048,
            tie_word_embeddings=True,
            bos_token_id=end,
            eos_token_id=end,
            pad_token_id=end,
            attn_implementation="eager",
        )
    )


def save(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Write a Hugging Face folder, which appears only once it is complete."""
    partial = folder.with_name(f".{folder.name}.partial")
    model.save_pretrained(partial)
    tokenizer.save_pretrained(partial)
    partial.replace(folder)
