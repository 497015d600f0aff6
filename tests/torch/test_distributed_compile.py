# SPDX-License-Identifier: MIT
"""Functional collectives in compiled functions."""

import re

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol
from ranks import DEVICE, RanksTest
from torch._inductor.utils import run_and_get_code


class TestCompiled(RanksTest):
    def compiled(self, function, *inputs):
        """The result of the compiled function, its wrapper's code; equal to the eager one."""
        torch._dynamo.reset()
        expected = function(*inputs)
        before = dict(torch.spyre.fallbacks())
        result, (code, *_) = run_and_get_code(torch.compile(function), *inputs)
        assert torch.equal(result.cpu(), expected.cpu())
        assert dict(torch.spyre.fallbacks()) == before
        return code

    def test_all_reduce(self):
        group = dist.group.WORLD

        def function(x):
            return torch.relu(funcol.all_reduce(2 * x, "sum", group)) + 1

        code = self.compiled(function, self.mine(4, 128).to(DEVICE))
        assert "all_reduce" in code and "wait_tensor" in code

    def test_all_gather_and_reduce_scatter(self):
        group = dist.group.WORLD

        def function(x):
            y = funcol.all_gather_tensor(x, 0, group)
            z = funcol.reduce_scatter_tensor(2 * y, "sum", 0, group)
            return z.softmax(-1)

        self.compiled(function, self.mine(4, 128).to(DEVICE))

    def test_all_to_all_and_broadcast(self):
        group = dist.group.WORLD

        def function(x):
            y = funcol.all_to_all_single(x + 1, [2, 2], [2, 2], group)
            return funcol.broadcast(y * 2, 1, group) - 3

        self.compiled(function, self.mine(4, 128).to(DEVICE))

    def test_computation_overlaps(self):
        """A product that does not need the sum is computed between its start and the wait."""
        group = dist.group.WORLD

        def function(x, w):
            total = funcol.all_reduce(x @ w, "sum", group)
            other = (x + 1) @ w
            return total + other.relu()

        code = self.compiled(
            function, self.mine(64, 64).to(DEVICE), self.mine(64, 64, seed=1).to(DEVICE)
        )
        start = code.index("c10d_functional.all_reduce_.default(")
        wait = code.index("wait_tensor.def")
        kernels = [match.start() for match in re.finditer(r"= spyre_\d+_\d+\(", code)]
        assert [start < i < wait for i in kernels] == [False, True, False], code
