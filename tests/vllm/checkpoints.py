# SPDX-License-Identifier: MIT
"""Checkpoints that tests serve: the families of tests/torch/models.py at reduced size, and a
tokenizer of their vocabulary."""

import os

import models
import tokenizers
import torch
import transformers

#: The page that the tokenizer is trained on.
TEXT = os.path.join(
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "README.md"
)
TEMPLATE = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}"
    "assistant:"
)


def save_model(name, path, dtype=torch.float16):
    """Saves a family's model with weights of @dtype; returns it in fp32 as it is loaded again,
    with frequencies of positions that are not rounded."""
    made = models.FAMILIES[name].model()
    made.to(dtype).save_pretrained(path)
    model = type(made).from_pretrained(path, dtype=torch.float32)
    for module in model.modules():
        # vLLM wraps calls of transformers' classes that it serves by this switch.
        module.do_not_compile = True
    return model.eval()


def save_tokenizer(path):
    """Saves a byte-level BPE tokenizer of the families' vocabulary, with a chat template."""
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=models.VOCABULARY,
        special_tokens=["<pad>", "<s>", "</s>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train([TEXT], trainer)
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", bos_token="<s>", eos_token="</s>"
    )
    fast.chat_template = TEMPLATE
    fast.save_pretrained(path)


def prompts(lengths, seed=0):
    """Random prompts of these lengths."""
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.randint(3, models.VOCABULARY - 4, (length,), generator=generator).tolist()
        for length in lengths
    ]
