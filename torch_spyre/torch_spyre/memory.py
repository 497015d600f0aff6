# SPDX-License-Identifier: MIT
"""torch.spyre.memory: what torch.accelerator says of the cards' memory."""

from torch.accelerator.memory import (  # noqa: F401
    empty_cache,
    empty_host_cache,
    get_memory_info,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_stats,
    reset_accumulated_memory_stats,
    reset_peak_memory_stats,
)

mem_get_info = get_memory_info
