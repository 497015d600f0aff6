#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Figures of the PyTorch plugin; scripts/bench torch runs it."""

import argparse

import torch

import torch_spyre  # noqa: F401


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--peer", required=True, help="bench/torch/peer.c as a shared library")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--samples", type=int, default=9)
    parser.add_argument("--only", choices=["overhead", "attention", "minilm", "llm", "observe"])
    options = parser.parse_args()
    from report import Report

    report = Report()
    torch.manual_seed(0)
    if options.only in (None, "overhead"):
        import overhead

        overhead.run(report, options.peer, options.samples)
    if options.only in (None, "attention"):
        import attention

        attention.run(report, options.samples)
    if options.only in (None, "minilm"):
        import minilm

        minilm.run(report, max(3, options.samples // 3))
    if options.only == "llm":
        import llm

        llm.run(report, options.samples)
    if options.only == "observe":
        import observe

        observe.run(report, options.samples)
    report.print()
    if options.json:
        report.write(options.json)


if __name__ == "__main__":
    main()
