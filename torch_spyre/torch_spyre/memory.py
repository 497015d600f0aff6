# SPDX-License-Identifier: MIT
"""torch.spyre.memory: the functions of torch.accelerator.memory for cards."""

from torch.accelerator import memory as _memory
from torch.accelerator.memory import *  # noqa: F401, F403
from torch.accelerator.memory import get_memory_info as mem_get_info

__all__ = [*_memory.__all__, "mem_get_info"]
