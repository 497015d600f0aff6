# SPDX-License-Identifier: MIT
"""Groups, views and eager operations as nodes of Inductor's IR."""

import sympy
import torch
from torch._guards import detect_fake_mode
from torch._inductor import ir
from torch._inductor.ir import FixedLayout, MultiOutput, MultiOutputLayout, TensorBox
from torch._inductor.graph import GraphLowering
from torch._inductor.lowering import fallback_handler
from torch._inductor.virtualized import V
from torch.utils import _pytree as pytree


def expressions(sizes):
    """Sizes as Inductor has them."""
    return [s.node.expr if isinstance(s, torch.SymInt) else sympy.Integer(s) for s in sizes]


class Target:
    """A callee of the graph that lowers itself; with tensors it computes.

    PyTorch calls it with fake tensors where the graph is the body of a control flow operation.
    """

    _inductor_lowering_function = True
    __module__ = __name__

    def __init__(self, name):
        self.__name__ = self.__qualname__ = name

    def __repr__(self):
        return self.__name__

    def __call__(self, *args, **kwargs):
        leaves = pytree.tree_leaves((args, kwargs))
        if any(isinstance(leaf, torch.Tensor) for leaf in leaves):
            return self.run(*args, **kwargs)
        if any(isinstance(leaf, ir.IRNode) for leaf in leaves):
            return self.lower(*args, **kwargs)
        lowering = isinstance(V.graph, GraphLowering)
        return (self.lower if lowering else self.run)(*args, **kwargs)


class GroupKernel(ir.ExternKernel):
    """A group: one call, which makes all of its results."""

    def __init__(self, device, inputs, parameters, name, specification):
        super().__init__(None, MultiOutputLayout(device=device), inputs, parameters)
        self.name = V.graph.register_buffer(self)
        V.graph.register_operation(self)
        self.kernel_name, self.specification = name, specification

    def should_allocate(self):
        return False

    def codegen(self, wrapper):
        wrapper.generate_group(self)


class GroupTarget(Target):
    """The results of a group; its arguments are the tensors that it reads."""

    def __init__(self, kernel, outputs):
        super().__init__(kernel.name)
        self.specification, self.outputs = kernel.specification, outputs
        self.parameters = kernel.parameters

    def run(self, *tensors):
        from .kernel import group

        if detect_fake_mode(tensors) is None:
            return group(self.specification)(*tensors)
        return [
            torch.empty_strided(size, stride, dtype=dtype, device=device)
            for device, dtype, size, stride in self.outputs
        ]

    def lower(self, *tensors):
        inputs = [ir.ExternKernel.realize_input(t) for t in tensors]
        device = self.outputs[0][0]
        parameters = expressions(self.parameters)
        kernel = GroupKernel(device, inputs, parameters, self.__name__, self.specification)
        return [
            TensorBox.create(
                MultiOutput(
                    FixedLayout(device, dtype, expressions(size), expressions(stride)),
                    kernel,
                    [(tuple, i)],
                    skip_size_stride_alignment_checks=True,
                )
            )
            for i, (device, dtype, size, stride) in enumerate(self.outputs)
        ]


class ViewTarget(Target):
    """A view, as size, stride and offset in the tensor that holds it."""

    def __init__(self, size, stride, offset):
        super().__init__("spyre_view")
        self.size, self.stride, self.offset = size, stride, offset

    def run(self, tensor):
        return tensor.as_strided(self.size, self.stride, tensor.storage_offset() + self.offset)

    def lower(self, tensor):
        tensor.realize()
        storage, layout = ir.as_storage_and_layout(tensor)
        (offset,) = expressions([self.offset])
        return TensorBox(
            ir.ReinterpretView(
                data=storage,
                layout=FixedLayout(
                    layout.device,
                    layout.dtype,
                    expressions(self.size),
                    expressions(self.stride),
                    layout.offset + offset,
                ),
            )
        )


class EagerTarget(Target):
    """An operation as PyTorch runs it eagerly."""

    def __init__(self, op):
        super().__init__(str(op).replace(".", "_"))
        self.op = op

    def run(self, *args, **kwargs):
        return self.op(*args, **kwargs)

    def lower(self, *args, **kwargs):
        if self.op is torch.ops.aten.copy_.default:
            ir.InplaceCopyFallback.create(*args[:2], non_blocking=False)
            return args[0]
        return fallback_handler(self.op, add_to_fallback_set=False)(*args, **kwargs)


class ConstantTarget(Target):
    """A tensor of the card that the graph holds; Inductor would write its numbers as a loop."""

    def __init__(self, name, tensor, fake):
        super().__init__(name)
        self.tensor, self.fake = tensor, fake

    def run(self):
        return self.tensor if detect_fake_mode() is None else self.fake

    def lower(self):
        return V.graph.add_tensor_constant(self.tensor, self.__name__)
