# SPDX-License-Identifier: MIT
"""How compiled kernels use LX, the scratchpads of the cores, from their plans."""

import weakref

from .emit import Program

#: Name, title, key and records of the compiled kernels that exist, by kernel.
loaded = weakref.WeakKeyDictionary()


def occupied(tensors, step):
    """Returns the bytes that tensors, (offset, bytes, first, last), occupy during a step."""
    total = end = 0
    for start, size, first, last in sorted(tensors):
        if first <= step <= last and start + size > end:
            total += start + size - max(start, end)
            end = start + size
    return total


def usage(plan):
    """Returns the use of LX by a plan, in bytes of each core."""
    tensors, steps = plan["in_lx"], len(plan["steps"])
    by_step = [occupied(tensors, step) for step in range(steps)]
    largest, written = max(by_step, default=0), sum(t[1] for t in tensors)
    return {
        "capacity": plan["lx_capacity"],
        "reserved": plan["lx_bytes"],
        "peak": largest,
        "average": sum(by_step) / steps if steps else 0.0,
        "fragmentation": 1 - largest / plan["lx_bytes"] if plan["lx_bytes"] else 0.0,
        "reuse": written / plan["lx_bytes"] if plan["lx_bytes"] else 0.0,
        "by_step": by_step,
    }


def stats():
    """Returns the use of LX of each compiled kernel of this process, in the order of loading."""
    return [
        {"name": name, "title": title, "key": key, **usage(Program(records).graph.plan())}
        for name, title, key, records in list(loaded.values())
    ]
