#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Decodes with a Llama whose layers are divided among several Spyre cards.

    pip install torch==2.13.0 transformers==5.23.0
    torchrun --nproc-per-node 4 examples/tensor_parallel/llama.py

The model is a reduced one with random weights. transformers divides it by its own plan
(tp_plan="auto"): each card has a part of the heads and of the hidden units, and two all-reduces
for each layer add their results. Rank 0 then decodes with the whole model on its card alone and
compares. The tokens are the same unless two are so close that the order of a sum decides.
"""

import argparse
import os
import shutil
import tempfile
import time
import warnings

# Without cards of the kernel module, each process has an embedded one for each rank.
os.environ.setdefault("SPYRE_EMBEDDED_CARDS", os.environ.get("WORLD_SIZE", "1"))

import torch
import torch.distributed as dist
import transformers
from transformers.distributed import DistributedConfig

#: Logits of bfloat16 that differ by less are too close to tell which is larger.
MARGIN = 0.05


def configuration(heads):
    """Returns the sizes of the model."""
    return transformers.LlamaConfig(
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


def decode(model, prompt, new):
    """Returns the tokens and the logits of greedy decoding, and the seconds that it took."""
    begun = time.monotonic()
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=new,
            do_sample=False,
            output_logits=True,
            return_dict_in_generate=True,
        )
    tokens = result.sequences[0, prompt.shape[1] :].cpu()
    return tokens, torch.stack(result.logits)[:, 0].float().cpu(), time.monotonic() - begun


def compare(tokens, expected, logits):
    """Returns a sentence; raises SystemExit if tokens differ that are not close."""
    for i, (token, other) in enumerate(zip(tokens.tolist(), expected.tolist())):
        if token == other:
            continue
        gap = float(logits[i, other] - logits[i, token])
        if gap > MARGIN:
            raise SystemExit(f"token {i} is {token}, on one card {other}, by {gap:.3f}")
        return f"the first {i} tokens are those of one card, the next two are {gap:.4f} apart"
    return f"all {len(tokens)} tokens are those of one card"


def main():
    """Decodes on all cards, then on one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, default=16, help="number of new tokens (16)")
    parser.add_argument("--heads", type=int, default=8, help="attention heads of 64 (8)")
    options = parser.parse_args()
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.spyre.set_device(local_rank)
    dist.init_process_group(device_id=torch.device("spyre", local_rank))
    rank, size = dist.get_rank(), dist.get_world_size()
    if options.heads % size:
        raise SystemExit(f"{options.heads} heads cannot be divided among {size} cards")

    folder = [tempfile.mkdtemp(prefix="spyre-llama-") if rank == 0 else None]
    if rank == 0:
        torch.manual_seed(3)
        model = transformers.LlamaForCausalLM(configuration(options.heads)).bfloat16()
        model.save_pretrained(folder[0])
    dist.broadcast_object_list(folder, src=0)
    prompt = torch.randint(3, 500, (1, 12), generator=torch.Generator().manual_seed(5)).to("spyre")

    model = transformers.LlamaForCausalLM.from_pretrained(
        folder[0],
        dtype=torch.bfloat16,
        distributed_config=DistributedConfig(tp_plan="auto", tp_size=size),
    )
    tokens, _, seconds = decode(model.eval(), prompt, options.tokens)
    if rank == 0:
        print(f"{size} cards: {options.tokens / seconds:.1f} tokens/s: {tokens.tolist()}")
        whole = transformers.LlamaForCausalLM.from_pretrained(folder[0], dtype=torch.bfloat16)
        expected, logits, seconds = decode(whole.eval().to("spyre"), prompt, options.tokens)
        print(f"1 card: {options.tokens / seconds:.1f} tokens/s: {expected.tolist()}")
        print(compare(tokens, expected, logits))
        shutil.rmtree(folder[0])
    dist.barrier(device_ids=[local_rank])
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
