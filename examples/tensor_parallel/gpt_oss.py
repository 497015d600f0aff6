#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Decodes with a GPT-OSS whose experts and heads are divided among several Spyre cards.

    pip install torch==2.13.0 transformers==5.23.0
    torchrun --nproc-per-node 4 examples/tensor_parallel/gpt_oss.py

The model is a reduced one with random weights. transformers' own plan for it divides the experts
(each card has some of them, and an all-reduce adds the results) and the output layer; HEADS adds
the attention. As in llama.py, rank 0 compares the tokens with those of one card, and the bits
with those of one card that computes the parts of all ranks one after the other.
"""

import parallel
import torch
import transformers

#: The division of the attention, which the own plan leaves whole. The sinks belong to heads.
HEADS = {
    "model.layers.*.self_attn": "local_params",
    "model.layers.*.self_attn.q_proj": "colwise",
    "model.layers.*.self_attn.k_proj": "colwise",
    "model.layers.*.self_attn.v_proj": "colwise",
    "model.layers.*.self_attn.sinks": "colwise",
    "model.layers.*.self_attn.o_proj": "rowwise",
}


def make(heads):
    """Returns the model, with random weights, also for biases and sinks."""
    config = transformers.GptOssConfig(
        vocab_size=512,
        hidden_size=64 * heads,
        intermediate_size=128,
        head_dim=64,
        num_hidden_layers=2,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        num_local_experts=8,
        num_experts_per_tok=2,
        sliding_window=8,
        max_position_embeddings=256,
        initializer_range=0.1,
        bos_token_id=1,
        eos_token_id=None,
        pad_token_id=0,
    )
    model = transformers.GptOssForCausalLM(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(("bias", "sinks")):
                parameter.normal_(std=0.1)
    return model.to(torch.bfloat16)


def plan(size):
    """Returns the arguments of transformers' DistributedConfig."""
    return {"tp_plan": HEADS, "tp_size": size, "ep_size": size}


if __name__ == "__main__":
    parallel.main(__doc__.splitlines()[0], make, plan)
