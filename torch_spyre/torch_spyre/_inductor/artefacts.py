# SPDX-License-Identifier: MIT
"""What may not be found again in AOTAutograd's cache.

Its key knows that a number is a float of the call, its guards know sizes only:
a graph in which the float was fixed after all to what it was is found for other
values too (torch 2.13, on every device). Such graphs are traced anew; Inductor's
cache behind it holds.
"""

import functools

import torch


def changing_float(graph):
    return any(isinstance(n.meta.get("example_value"), torch.SymFloat) for n in graph.nodes)


def register():
    from torch._functorch._aot_autograd import autograd_cache

    original = autograd_cache.check_cacheable

    @functools.wraps(original)
    def check_cacheable(gm):
        if changing_float(gm.graph):
            raise autograd_cache.BypassAOTAutogradCache("floats of the call are not in its guards")
        return original(gm)

    autograd_cache.check_cacheable = check_cacheable
