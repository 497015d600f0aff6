# SPDX-License-Identifier: MIT
"""Operations that stay whole for the card, since the builder has them by name."""

import functools

import torch
from torch.utils._pytree import tree_leaves


def _on_card(args, kwargs):
    return any(
        isinstance(leaf, torch.Tensor) and leaf.device.type == "spyre"
        for leaf in tree_leaves((args, kwargs))
    )


def _keep(decomposition):
    @functools.wraps(decomposition)
    def keep(*args, **kwargs):
        if _on_card(args, kwargs):
            return NotImplemented
        return decomposition(*args, **kwargs)

    return keep


#: What eager mode has whole, and the builder has not: runs eagerly, with the same results.
EAGER = (
    torch.ops.aten.native_layer_norm_backward.default,
    torch.ops.aten.native_dropout.default,
)


def register():
    from torch._inductor import decomposition

    from .attention import whole
    from .norm import whole as whole_norm
    from .rules import RULES

    for table in (decomposition.decompositions, decomposition.fast_random_decomps()):
        for target in (*RULES, *EAGER):
            if target in table:
                table[target] = _keep(table[target])
        table[torch.ops.aten.scaled_dot_product_attention.default] = whole
        table[torch.ops.aten.rms_norm.default] = whole_norm
