# SPDX-License-Identifier: MIT
"""torch.spyre.memory: torch.accelerator.memory for cards, the history of memory, the use of LX."""

import pickle
import sys

from torch._utils import _augment_memory_snapshot_stack_traces
from torch.accelerator import memory as _memory
from torch.accelerator.memory import *  # noqa: F401, F403
from torch.accelerator.memory import get_memory_info as mem_get_info

from . import _C

__all__ = [*_memory.__all__, "lx_stats", "mem_get_info", "memory_snapshot"]


def lx_stats():
    """Returns how each compiled kernel of this process uses LX, as a list of dicts.

    Each has the kernel's name, title (operations of ATen) and key, and in bytes of one core
    capacity, reserved (what the plan needs), peak and average of the steps, by_step, also the
    fragmentation (1 - peak / reserved) and the reuse (bytes of all tensors / reserved). Kernels
    are planned again for it, so that they cost nothing otherwise.
    """
    from ._inductor import lx

    return lx.stats()


def _record_memory_history(
    enabled="all",
    context="all",
    stacks="all",
    max_entries=sys.maxsize,
    device=None,
    clear_history=False,
    compile_context=False,
    global_record_annotations=False,
    skip_actions=None,
):
    """Records allocations and their stacks, as torch.cuda.memory's function of this name does.

    `enabled` is "all" for a history of the last `max_entries` events, "state" for the stacks of
    live blocks only, or None, which ends recording and clears the history. `context` says from
    which event on stacks are kept ("state", "alloc", "all", None), `stacks` whether they include
    frames of C++ ("python", "all"), `skip_actions` names actions to leave out. It applies to all
    cards, `device` changes nothing, as for CUDA. Raises ValueError for an unknown option and
    NotImplementedError for compile_context and global_record_annotations.
    """
    if compile_context or global_record_annotations:
        raise NotImplementedError(
            "spyre: the memory history has no compile contexts and annotations; "
            "torch.profiler records both"
        )
    _C._record_memory_history(
        enabled, context, stacks, max_entries, clear_history, skip_actions or []
    )


def _snapshot(device=None, augment_with_fx_traces=False):
    """Returns the segments, blocks and history of all cards, as torch.cuda.memory._snapshot().

    `device` changes nothing, as for CUDA.
    """
    snapshot = _C._memory_snapshot(None, True)
    if augment_with_fx_traces:
        return _augment_memory_snapshot_stack_traces(snapshot)
    return snapshot


def _dump_snapshot(filename="dump_snapshot.pickle", augment_with_fx_traces=False):
    """Writes _snapshot() to a file for pytorch.org/memory_viz and torch.cuda._memory_viz."""
    snapshot = _snapshot(augment_with_fx_traces=augment_with_fx_traces)
    with open(filename, "wb") as file:
        pickle.dump(snapshot, file)


def memory_snapshot(mempool_id=None, include_traces=True):
    """Returns the segments of all cards, or those of the pool of a graph."""
    return _C._memory_snapshot(mempool_id, include_traces)["segments"]


def _attach_out_of_memory_observer(observer):
    """Calls observer(device, requested, total, free) before each torch.OutOfMemoryError.

    Sizes are in bytes. The observer may call _dump_snapshot(), whose history then ends with the
    failure. Its exceptions are reported on standard error. It cannot be detached, as for CUDA.
    """
    _C._attach_out_of_memory_observer(observer)
