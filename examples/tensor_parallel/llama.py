#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Decodes with a Llama whose layers are divided among several Spyre cards.

    pip install torch==2.13.0 transformers==5.23.0
    torchrun --nproc-per-node 4 examples/tensor_parallel/llama.py

The model is a reduced one with random weights. transformers divides it by its own plan
(tp_plan="auto"): each card has a part of the heads and of the hidden units, and two all-reduces
for each layer add their results. Rank 0 then decodes with the whole model on its card alone and
compares. The tokens are the same unless two are so close that the order of a sum decides. At
last it computes the parts of all ranks on its card, one after the other: the bits are the same.
"""

import parallel
import torch
import transformers


def make(heads):
    """Returns the model, with random weights."""
    config = transformers.LlamaConfig(
        vocab_size=512,
        hidden_size=64 * heads,
        intermediate_size=128 * heads,
        num_hidden_layers=2,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        max_position_embeddings=256,
        initializer_range=0.1,
        bos_token_id=1,
        eos_token_id=None,
        pad_token_id=0,
        tie_word_embeddings=False,
    )
    return transformers.LlamaForCausalLM(config).to(torch.bfloat16)


def plan(size):
    """Returns the arguments of transformers' DistributedConfig."""
    return {"tp_plan": "auto", "tp_size": size}


if __name__ == "__main__":
    parallel.main(__doc__.splitlines()[0], make, plan)
