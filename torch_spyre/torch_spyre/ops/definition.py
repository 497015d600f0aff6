# SPDX-License-Identifier: MIT
"""Definition of operations in the namespace spyre of PyTorch's dispatcher."""

import torch

library = torch.library.Library("spyre", "DEF")


def define(schema):
    """Defines an operation without a kernel; returns its name."""
    library.define(schema, tags=torch.Tag.pt2_compliant_tag)
    return schema.partition("(")[0]


def composed(schema):
    """Decorator that defines an operation as the function, which calls other operations.

    Autograd and torch.compile see those, so it needs neither derivatives nor a fake kernel.
    """

    def decorate(function):
        library.impl(define(schema), function, "CompositeImplicitAutograd")
        return function

    return decorate
