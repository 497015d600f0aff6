#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Engines of a small model on one card, whose tokens are those of another card.

    smoke.py --make FOLDER          saves a checkpoint, and the tokens of this machine's card
    smoke.py --compare FOLDER       two engines at a time, in processes that share a card

Prints TAP. scripts/test vllm makes them on the embedded card and compares on the kernel's.
"""

import argparse
import json
import os
import subprocess
import sys

os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
os.environ.setdefault("VLLM_HOST_IP", "127.0.0.1")
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(__file__)), "torch"))

LENGTHS, NEW = (70, 5, 31), 8


def tokens(folder):
    """Returns the tokens of an engine in this process, and the number of its fallbacks."""
    import torch
    from checkpoints import prompts
    from vllm import LLM, SamplingParams

    llm = LLM(
        folder, skip_tokenizer_init=True, max_model_len=128, max_num_seqs=4,
        max_num_batched_tokens=64, seed=0,
    )  # fmt: skip
    params = SamplingParams(temperature=0, max_tokens=NEW, ignore_eos=True, detokenize=False)
    given = [{"prompt_token_ids": ids} for ids in prompts(LENGTHS, seed=60)]
    outputs = llm.generate(given, params, use_tqdm=False)
    return [list(one.outputs[0].token_ids) for one in outputs], len(torch.spyre.fallbacks())


def make(folder):
    from checkpoints import save_model

    os.makedirs(folder, exist_ok=True)
    save_model("llama3", folder)
    for entry in os.scandir(folder):
        # transformers writes weights for their owner alone; the engines may be another user's.
        os.chmod(entry.path, 0o644)
    with open(os.path.join(folder, "tokens.json"), "w", encoding="utf-8") as file:
        json.dump(tokens(folder), file)


def compare(folder):
    """Returns 0 if both engines have the tokens of the file."""
    with open(os.path.join(folder, "tokens.json"), encoding="utf-8") as file:
        want = json.load(file)
    engines = [
        subprocess.Popen(
            [sys.executable, os.path.abspath(__file__), "--print", folder],
            stdout=subprocess.PIPE, text=True,
        )
        for _ in range(2)
    ]  # fmt: skip
    failed = 0
    print(f"1..{len(engines)}")
    for number, engine in enumerate(engines, 1):
        text = engine.communicate()[0].strip().rpartition("\n")[2]
        have = json.loads(text) if engine.returncode == 0 else f"status {engine.returncode}"
        failed += have != want
        print(f"{'ok' if have == want else 'not ok'} {number} - vllm::engine {number} of two")
        if have != want:
            print(f"# {have}, expected {want}")
    return 1 if failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--make", metavar="FOLDER")
    action.add_argument("--compare", metavar="FOLDER")
    action.add_argument("--print", metavar="FOLDER", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.make:
        make(options.make)
    elif options.compare:
        sys.exit(compare(options.compare))
    else:
        print(json.dumps(tokens(options.print)))


if __name__ == "__main__":
    main()
