"""Write a tiny Llama with random weights into the folder given; run by the engine environment's Python.

The same weights every time: its answers mean nothing and never change. Its head size is 64, for attention on
a CPU wants at least 32; its context is long enough for the `max-model-len` of an ordinary values file.
"""

from __future__ import annotations

import string
import sys
from pathlib import Path

import torch  # type: ignore[import-not-found]
from tokenizers import Tokenizer, decoders, models, pre_tokenizers  # type: ignore[import-not-found]
from transformers import (  # type: ignore[import-not-found]
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedTokenizerFast,
)

TEMPLATE = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}assistant:"
BEGIN, END = "<s>", "</s>"
VOCABULARY = (BEGIN, END, *string.digits, *string.ascii_letters, *string.punctuation, " ", "\n")


def tokenizer() -> PreTrainedTokenizerFast:
    """Build a tokenizer with one token a printable character, so that any tokens make a text."""
    characters = Tokenizer(models.WordLevel({token: i for i, token in enumerate(VOCABULARY)}, unk_token="?"))
    characters.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    characters.decoder = decoders.Fuse()
    return PreTrainedTokenizerFast(
        tokenizer_object=characters, bos_token=BEGIN, eos_token=END, chat_template=TEMPLATE
    )


def model() -> LlamaForCausalLM:
    """Build two layers of four heads, two of them for keys and values, from one seed."""
    torch.manual_seed(0)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(VOCABULARY),
            hidden_size=256,
            intermediate_size=512,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            max_position_embeddings=131072,
            bos_token_id=VOCABULARY.index(BEGIN),
            eos_token_id=VOCABULARY.index(END),
        )
    )


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    tokenizer().save_pretrained(folder)
    model().save_pretrained(folder)
