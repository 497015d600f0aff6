# SPDX-License-Identifier: MIT
"""Groups, views and eager operations as nodes of Inductor's IR."""

import torch
from torch._inductor import ir
from torch._inductor.ir import FixedLayout, MultiOutput, MultiOutputLayout, TensorBox
from torch._inductor.lowering import fallback_handler
from torch._inductor.virtualized import V


class Target:
    """A callee of the graph that lowers itself."""

    _inductor_lowering_function = True
    __module__ = __name__

    def __init__(self, name):
        self.__name__ = self.__qualname__ = name

    def __repr__(self):
        return self.__name__


class GroupKernel(ir.ExternKernel):
    """A group: one call, which makes all of its results."""

    def __init__(self, device, inputs, name, specification):
        super().__init__(None, MultiOutputLayout(device=device), inputs, ())
        self.name = V.graph.register_buffer(self)
        V.graph.register_operation(self)
        self.kernel_name, self.specification = name, specification

    def should_allocate(self):
        return False

    def codegen(self, wrapper):
        wrapper.generate_group(self)


class GroupTarget(Target):
    """The results of a group; its arguments are the tensors that it reads."""

    def __init__(self, name, specification, outputs):
        super().__init__(name)
        self.specification, self.outputs = specification, outputs

    def __call__(self, *tensors):
        inputs = [ir.ExternKernel.realize_input(t) for t in tensors]
        device = self.outputs[0][0]
        kernel = GroupKernel(device, inputs, self.__name__, self.specification)
        return [
            TensorBox.create(
                MultiOutput(
                    FixedLayout(device, dtype, size, stride),
                    kernel,
                    [(tuple, i)],
                    skip_size_stride_alignment_checks=True,
                )
            )
            for i, (device, dtype, size, stride) in enumerate(self.outputs)
        ]


class ViewTarget(Target):
    """A view, as size, stride and offset in the tensor that holds it."""

    def __init__(self, view):
        super().__init__("spyre_view")
        self.view = view

    def __call__(self, tensor):
        tensor.realize()
        storage = tensor.data
        while not isinstance(storage, ir.StorageBox):
            storage = storage.data
        layout = storage.get_layout()
        view = self.view
        return TensorBox(
            ir.ReinterpretView(
                data=storage,
                layout=FixedLayout(
                    layout.device,
                    layout.dtype,
                    list(view.size),
                    list(view.stride),
                    layout.offset + view.offset,
                ),
            )
        )


class EagerTarget(Target):
    """An operation as PyTorch runs it eagerly."""

    def __init__(self, op):
        super().__init__(str(op).replace(".", "_"))
        self.op = op

    def __call__(self, *args, **kwargs):
        if self.op is torch.ops.aten.copy_.default:
            ir.InplaceCopyFallback.create(*args[:2], non_blocking=False)
            return args[0]
        return fallback_handler(self.op, add_to_fallback_set=False)(*args, **kwargs)
