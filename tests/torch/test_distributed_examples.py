# SPDX-License-Identifier: MIT
"""Models that transformers divides, by the code of examples/tensor_parallel.

Tokens equal those of one card by the examples' margin, and logits have the bits of one card that
computes the parts of all ranks one after the other.
"""

import os
import sys
from datetime import timedelta

import torch
from ranks import DEVICE, RanksTest

sys.path.append(os.path.join(os.path.dirname(__file__), "../../examples/tensor_parallel"))

import gpt_oss  # noqa: E402
import llama  # noqa: E402
import parallel  # noqa: E402


class TestExamples(RanksTest):
    timeout = timedelta(minutes=5)  # rank 1 waits while rank 0 computes alone

    def compare(self, example, new=5):
        torch.manual_seed(3)
        generator = torch.Generator().manual_seed(5)
        prompt = torch.randint(3, 500, (1, 12), generator=generator).to(DEVICE)
        plan = example.plan(self.world_size)
        lines = parallel.compare_all(example.make(2), plan, prompt, new)
        assert len(lines) == (4 if self.rank == 0 else 0)

    def test_llama(self):
        self.compare(llama)

    def test_gpt_oss(self):
        """The prompt and the new tokens are more than the window of every other layer."""
        self.compare(gpt_oss, new=8)
