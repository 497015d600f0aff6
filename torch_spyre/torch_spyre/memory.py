# SPDX-License-Identifier: MIT
"""torch.spyre.memory: the functions of torch.accelerator.memory for cards, and the use of LX."""

from torch.accelerator import memory as _memory
from torch.accelerator.memory import *  # noqa: F401, F403
from torch.accelerator.memory import get_memory_info as mem_get_info

__all__ = [*_memory.__all__, "lx_stats", "mem_get_info"]


def lx_stats():
    """Returns how each compiled kernel of this process uses LX, as a list of dicts.

    Each has the kernel's name, title (operations of ATen) and key, and in bytes of one core
    capacity, reserved (what the plan needs), peak and average of the steps, by_step, also the
    fragmentation (1 - peak / reserved) and the reuse (bytes of all tensors / reserved). Kernels
    are planned again for it, so that they cost nothing otherwise.
    """
    from ._inductor import lx

    return lx.stats()
