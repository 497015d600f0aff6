# SPDX-License-Identifier: MIT
"""Divides a model of transformers among cards, decodes with it and compares; for the examples."""

import argparse
import os
import shutil
import tempfile
import time
import warnings

# Without cards of the kernel module, each process has an embedded one for each rank.
os.environ.setdefault("SPYRE_EMBEDDED_CARDS", os.environ.get("WORLD_SIZE", "1"))

import simulated
import torch
import torch.distributed as dist
import transformers
from transformers.distributed import DistributedConfig

#: Logits of bfloat16 that differ by less are too close to tell which is larger.
MARGIN = 0.05


def decode(model, prompt, new, cache=None):
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
            past_key_values=cache,
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


def save(model):
    """Saves rank 0's model in a temporary folder; returns the folder's path on all ranks."""
    folder = [tempfile.mkdtemp(prefix="spyre-parallel-") if dist.get_rank() == 0 else None]
    if dist.get_rank() == 0:
        model.save_pretrained(folder[0])
    dist.broadcast_object_list(folder, src=0)
    return folder[0]


def load(model, folder, plan=None):
    """Returns a saved model, or this rank's part of it. @model has its class and dtype."""
    config = None if plan is None else DistributedConfig(**plan)
    loaded = type(model).from_pretrained(folder, dtype=model.dtype, distributed_config=config)
    return loaded.eval().to("spyre") if plan is None else loaded.eval()


def compare_with_one(tokens, logits, whole, plan, prompt):
    """Decodes with one card, whole and part after part; returns sentences."""
    size, new = dist.get_world_size(), len(tokens)
    expected, others, seconds = decode(whole, prompt, new)
    lines = [f"1 card: {new / seconds:.1f} tokens/s: {expected.tolist()}"]
    lines.append(compare(tokens, expected, others))
    simulated.divide(whole, plan, size)
    expected, others, seconds = decode(whole, prompt, new, simulated.cache(whole.config, size))
    if not torch.equal(logits, others):
        apart = float((logits - others).abs().max())
        raise SystemExit(f"1 card, part after part: logits differ by up to {apart:.3g}")
    lines.append(f"1 card, part after part: {new / seconds:.1f} tokens/s, the bits are equal")
    return lines


def compare_all(model, plan, prompt, new):
    """Decodes with all cards, then on rank 0 with one card; returns rank 0's sentences.

    Raises SystemExit if tokens or bits differ.
    """
    folder = save(model)
    tokens, logits, seconds = decode(load(model, folder, plan), prompt, new)
    lines = []
    if dist.get_rank() == 0:
        lines.append(
            f"{dist.get_world_size()} cards: {new / seconds:.1f} tokens/s: {tokens.tolist()}"
        )
        lines += compare_with_one(tokens, logits, load(model, folder), plan, prompt)
    dist.barrier(device_ids=[torch.spyre.current_device()])
    if dist.get_rank() == 0:
        shutil.rmtree(folder)
    return lines


def main(description, make, plan_of):
    """Runs an example: @make returns a model for a number of heads, @plan_of its division."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--tokens", type=int, default=16, help="number of new tokens (16)")
    parser.add_argument("--heads", type=int, default=8, help="attention heads of 64 (8)")
    options = parser.parse_args()
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.spyre.set_device(local_rank)
    dist.init_process_group(device_id=torch.device("spyre", local_rank))
    size = dist.get_world_size()
    if options.heads % size:
        raise SystemExit(f"{options.heads} heads cannot be divided among {size} cards")
    transformers.utils.logging.set_verbosity_error()
    torch.manual_seed(3)
    prompt = torch.randint(3, 500, (1, 12), generator=torch.Generator().manual_seed(5)).to("spyre")
    for line in compare_all(make(options.heads), plan_of(size), prompt, options.tokens):
        print(line)
    dist.destroy_process_group()
