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
    parser.add_argument("--only", choices=["overhead", "minilm"])
    options = parser.parse_args()
    from report import Report

    report = Report()
    torch.manual_seed(0)
    if options.only != "minilm":
        import overhead

        overhead.run(report, options.peer, options.samples)
    if options.only != "overhead":
        import minilm

        minilm.run(report, max(3, options.samples // 3))
    report.print()
    if options.json:
        report.write(options.json)


if __name__ == "__main__":
    main()
