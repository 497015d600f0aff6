# SPDX-License-Identifier: MIT
"""Groups, views and eager operations as nodes of Inductor's IR."""

import sympy
import torch
from torch._guards import detect_fake_mode
from torch._inductor import ir
from torch._inductor.debug import set_kernel_post_grad_provenance_tracing
from torch._inductor.ir import FixedLayout, MultiOutput, MultiOutputLayout, TensorBox
from torch._inductor.graph import GraphLowering
from torch._inductor.lowering import fallback_handler
from torch._inductor.virtualized import V
from torch.utils import _pytree as pytree
from torch.utils._ordered_set import OrderedSet

from .kernel import group
from .origins import aten_ops, source_names, stack_traces


def expressions(sizes):
    """Returns sizes as Inductor's symbolic expressions."""
    return [s.node.expr if isinstance(s, torch.SymInt) else sympy.Integer(s) for s in sizes]


class Target:
    """A callee of the graph that lowers itself, or computes if its arguments are tensors.

    PyTorch calls it with fake tensors if the graph is the body of a control flow operation.
    """

    _inductor_lowering_function = True
    __module__ = __name__

    def __init__(self, name):
        self.__name__ = self.__qualname__ = name

    def __repr__(self):
        return self.__name__

    def __call__(self, *args, **kwargs):
        """Runs on tensors; lowers on nodes of the IR and during lowering."""
        leaves = pytree.tree_leaves((args, kwargs))
        if any(isinstance(leaf, torch.Tensor) for leaf in leaves):
            return self.run(*args, **kwargs)
        if any(isinstance(leaf, ir.IRNode) for leaf in leaves):
            return self.lower(*args, **kwargs)
        lowering = isinstance(V.graph, GraphLowering)
        return (self.lower if lowering else self.run)(*args, **kwargs)


class GroupKernel(ir.ExternKernel):
    """A group as a node of Inductor's IR: one call, which makes all of its results."""

    def __init__(self, target, inputs, parameters):
        layout = MultiOutputLayout(device=target.outputs[0][0])
        super().__init__(None, layout, inputs, parameters)
        self.name = V.graph.register_buffer(self)
        V.graph.register_operation(self)
        self.target = target

    def should_allocate(self):
        """Returns False: the kernel allocates its results."""
        return False

    def codegen(self, wrapper):
        """Writes the call of the group."""
        wrapper.generate_group(self)

    def get_stack_traces(self):
        """Returns the stack traces of all operations of the group."""
        return OrderedSet(self.target.traces) or super().get_stack_traces()

    def codegen_comment(self, wrapper, kernel_name=None):
        """Writes the origins of the group; registers @kernel_name for provenance tracking."""
        target = self.target
        wrapper.make_comment(
            f"{wrapper.comment} Topologically Sorted Source Nodes: [{', '.join(target.sources)}], "
            f"Original ATen: [{', '.join(target.aten)}]"
        )
        handle = set_kernel_post_grad_provenance_tracing(self, kernel_name, is_extern=True)
        wrapper.write_provenance_debug_handle(kernel_name, handle)


class GroupTarget(Target):
    """A group as a callee; its arguments are the tensors that it reads."""

    def __init__(self, kernel, outputs):
        super().__init__(kernel.name)
        self.specification, self.outputs = kernel.specification, outputs
        self.parameters = kernel.parameters
        self.traces, self.aten = stack_traces(kernel.nodes), aten_ops(kernel.nodes)
        self.sources = source_names(kernel.nodes)
        self.directory, self.origin = kernel.directory, kernel.origin

    def run(self, *tensors):
        """Runs the kernel, or makes fake results for fake tensors."""
        if detect_fake_mode(tensors) is None:
            return group(self.specification)(*tensors)
        return [
            torch.empty_strided(size, stride, dtype=dtype, device=device)
            for device, dtype, size, stride in self.outputs
        ]

    def lower(self, *tensors):
        """Adds the IR node of the group and returns its results."""
        inputs = [ir.ExternKernel.realize_input(t) for t in tensors]
        kernel = GroupKernel(self, inputs, expressions(self.parameters))
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
    """A view, given by size, stride and offset (in elements) in the tensor that holds it."""

    def __init__(self, size, stride, offset):
        super().__init__("spyre_view")
        self.size, self.stride, self.offset = size, stride, offset

    def run(self, tensor):
        """Returns the view of a tensor."""
        return tensor.as_strided(self.size, self.stride, tensor.storage_offset() + self.offset)

    def lower(self, tensor):
        """Returns the IR node of the view."""
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
    """An operation that PyTorch runs eagerly."""

    def __init__(self, op):
        super().__init__(str(op).replace(".", "_"))
        self.op = op

    def run(self, *args, **kwargs):
        """Runs the operation."""
        return self.op(*args, **kwargs)

    def lower(self, *args, **kwargs):
        """Adds the operation as a fallback kernel, which is not decomposed."""
        if self.op is torch.ops.aten.copy_.default:
            ir.InplaceCopyFallback.create(*args[:2], non_blocking=False)
            return args[0]
        return fallback_handler(self.op, add_to_fallback_set=False)(*args, **kwargs)


class InPlaceTarget(Target):
    """A collective that writes its results over its operands."""

    def __init__(self, op):
        super().__init__(str(op).replace(".", "_"))
        self.op = op

    def run(self, *args):
        """Runs the operation."""
        return self.op(*args)

    def lower(self, operands, *args):
        """Adds the collective; its results are the operands."""
        ir._CollectiveKernel.create_inplace(self.op, operands, *args)
        return operands


class ConstantTarget(Target):
    """A constant tensor on the card, which Inductor would otherwise compute by a loop."""

    def __init__(self, name, tensor, fake):
        super().__init__(name)
        self.tensor, self.fake = tensor, fake

    def run(self):
        """Returns the tensor, or the fake one during fake propagation."""
        return self.tensor if detect_fake_mode() is None else self.fake

    def lower(self):
        """Adds the tensor to the constants of the compiled graph."""
        return V.graph.add_tensor_constant(self.tensor, self.__name__)
