# SPDX-License-Identifier: MIT
"""Calls that dynamo takes apart itself, kept whole for the card.

It does so because a tensor in the place of the number would end the graph. A number does not;
eager mode computes the whole and rounds once.
"""

import functools

import torch


def _whole(tensor, value):
    """Returns True if a call on this tensor with the number @value is not decomposed."""
    device = tensor.device if tensor.is_tensor() else None
    return device is not None and device.type == "spyre" and not value.is_tensor()


def keep_functions():
    """Keeps torch.addcdiv with a value whole, which Dynamo takes apart."""
    from torch._dynamo.variables.torch import TorchInGraphFunctionVariable

    original = TorchInGraphFunctionVariable._get_handlers

    @functools.cache
    def handlers():
        table = dict(original())
        taken_apart = table[torch.addcdiv]

        def addcdiv(self, tx, *args, **kwargs):
            if args and "value" in kwargs and _whole(args[0], kwargs["value"]):
                return None
            return taken_apart(self, tx, *args, **kwargs)

        table[torch.addcdiv] = addcdiv
        return table

    TorchInGraphFunctionVariable._get_handlers = staticmethod(handlers)


def keep_methods():
    """Keeps Tensor.addcdiv_() and addcmul_() with a value whole, which Dynamo takes apart."""
    from torch._dynamo.variables.tensor import TensorVariable

    def kept(original):
        """Returns @original, but None (no special case) for calls that are kept whole."""
        @functools.wraps(original)
        def method(self, tx, tensor1, tensor2, *, value=None):
            if value is not None and _whole(self, value):
                return None
            return original(self, tx, tensor1, tensor2, value=value)

        return method

    for name in "method_addcdiv_", "method_addcmul_":
        setattr(TensorVariable, name, kept(getattr(TensorVariable, name)))
