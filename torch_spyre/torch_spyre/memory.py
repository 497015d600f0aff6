# SPDX-License-Identifier: MIT
"""torch.spyre.memory: what torch.accelerator says of the cards' memory."""

from torch.accelerator import memory as _memory
from torch.accelerator.memory import *  # noqa: F401, F403
from torch.accelerator.memory import get_memory_info as mem_get_info

__all__ = [*_memory.__all__, "mem_get_info"]
