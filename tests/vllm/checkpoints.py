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


def _special(names):
    """Returns a tokenizer of words, in which the last ones of the vocabulary have names."""
    words = {f"word{number}": number for number in range(models.VOCABULARY)}
    for number, name in names.items():
        del words[f"word{number}"]
        words[name] = number
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="word3"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(list(names.values()))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", bos_token="<s>", eos_token="</s>"
    )


def save_processor(name, path):
    """Saves and returns the processor of a family's images, with a tokenizer of words."""
    names = {0: "<pad>", 1: "<s>", 2: "</s>"}
    ids = models.IMAGE, models.IMAGE_START, models.IMAGE_END, models.VOCABULARY - 4
    if name == "qwen2_5_vl":
        texts = "<|image_pad|>", "<|vision_start|>", "<|vision_end|>", "<|video_pad|>"
        size = {"shortest_edge": 28 * 28, "longest_edge": 112 * 112}
        processor = transformers.Qwen2_5_VLProcessor(
            transformers.Qwen2VLImageProcessor(size=size, patch_size=14, merge_size=2),
            _special(names | dict(zip(ids, texts, strict=True))),
            transformers.Qwen2VLVideoProcessor(size=size, patch_size=14, merge_size=2),
        )
    else:
        texts = "[IMG]", "[IMG_BREAK]", "[IMG_END]"
        processor = transformers.PixtralProcessor(
            transformers.PixtralImageProcessor(
                size={"longest_edge": 112}, patch_size={"height": 28, "width": 28}
            ),
            _special(names | dict(zip(ids[:3], texts, strict=True))),
            patch_size=14, spatial_merge_size=2,
        )  # fmt: skip
    processor.save_pretrained(path)
    return processor


def prompts(lengths, seed=0):
    """Random prompts of these lengths."""
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.randint(3, models.VOCABULARY - 4, (length,), generator=generator).tolist()
        for length in lengths
    ]
