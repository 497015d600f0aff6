# SPDX-License-Identifier: MIT
"""torch.spyre.memory.lx_stats()"""

import gc

import pytest
import torch
from support import DEVICE

from torch_spyre._inductor import lx


def test_occupied():
    """Tensors that share bytes count once; those of other steps do not count."""
    tensors = [(0, 128, 0, 2), (0, 128, 2, 3), (256, 128, 1, 1), (64, 256, 3, 3)]
    assert [lx.occupied(tensors, step) for step in range(5)] == [128, 256, 128, 320, 0]


def test_plan_in_lx():
    """Sums over an own plan: reserved, peak, average, reuse."""
    plan = {"in_lx": [(0, 256, 0, 1), (256, 256, 1, 2), (0, 256, 2, 3)],
            "steps": [None] * 4, "lx_capacity": 4096, "lx_bytes": 512}  # fmt: skip
    found = lx.usage(plan)
    assert found["by_step"] == [256, 512, 512, 256] and found["average"] == 384
    assert (found["peak"], found["reserved"], found["capacity"]) == (512, 512, 4096)
    assert found["reuse"] == 1.5 and found["fragmentation"] == 0


def test_kernels_of_the_process(said):
    """A compiled softmax keeps its intermediates in LX, and the log says how many bytes."""
    gc.collect()
    before = len(torch.spyre.memory.lx_stats())

    def f(x):
        return x.softmax(-1)

    x = torch.ones(512, 1024, dtype=torch.float16, device=DEVICE)
    compiled = torch.compile(f)
    compiled(x)
    *_, stats = torch.spyre.memory.lx_stats()
    assert len(torch.spyre.memory.lx_stats()) == before + 1
    assert stats["title"] == "aten._softmax" and len(stats["key"]) == 16
    assert 0 < stats["peak"] <= stats["reserved"] <= stats["capacity"]
    assert 0 < stats["average"] <= stats["peak"] == max(stats["by_step"])
    assert stats["reuse"] > 1
    assert f"LX {stats['reserved']} of {stats['capacity']} bytes" in said()


@pytest.mark.parametrize("size", [64, 4096])
def test_plan_of_the_library(size):
    """No step of a real plan needs more than the plan reserves."""
    from torch_spyre._inductor.emit import Program

    program = Program()
    layout = ([size, 512], [8, size, 64], [64, 512, 1], [1, 0, 1], 1)
    value = program.argument(layout, 1)
    program.op("softmax", program.op("gelu", value), dim=-1)
    plan = program.graph.plan()
    found = lx.usage(plan)
    assert found["peak"] <= found["reserved"] == plan["lx_bytes"]
    assert all(start + bytes <= plan["lx_bytes"] for start, bytes, *_ in plan["in_lx"])
