# SPDX-License-Identifier: MIT
"""Keeps graphs with changing floats out of AOTAutograd's cache.

The cache's key contains that an argument is a float, but its guards cover sizes only. So a
graph in which tracing has fixed the float's value is reused for other values (torch 2.13, on
all devices). Such graphs are traced anew; Inductor's own cache is not affected.
"""

import functools

import torch


def changing_float(graph):
    """Returns True if a float of the graph was traced as a symbol."""
    return any(isinstance(n.meta.get("example_value"), torch.SymFloat) for n in graph.nodes)


def register():
    """Wraps AOTAutograd's check, so that it bypasses its cache for such graphs."""
    from torch._functorch._aot_autograd import autograd_cache

    original = autograd_cache.check_cacheable

    @functools.wraps(original)
    def check_cacheable(gm):
        """Bypasses the cache for graphs with floats that are not in its guards."""
        if changing_float(gm.graph):
            raise autograd_cache.BypassAOTAutogradCache("floats of the call are not in its guards")
        return original(gm)

    autograd_cache.check_cacheable = check_cacheable
