# SPDX-License-Identifier: MIT
"""Models on a card, with weights in the layouts that their operations read.

A product with a Linear's weight reads sticks along out_features, a lookup in an Embedding reads
the sticks of one row. Sizes, strides and results are those of Module.to().
"""

import functools
import threading

import torch

from . import _C
from .utils import device_index


def _linear_layout(weight, dtype):
    """Returns the layout with sticks along the first dimension."""
    return _C.SpyreTensorLayout(list(weight.shape), list(weight.stride()), dtype, [1, 0])


def _embedding_layout(weight, dtype):
    """Returns the layout with the sticks of a row side by side; None if rows end within one."""
    rows, width = weight.shape
    stick = _C.get_elem_in_stick(dtype)
    if width % stick:
        return None
    return _C.SpyreTensorLayout(
        [rows, width // stick, stick], [width, stick, 1], _C.get_device_dtype(dtype)
    )


class _Move:
    """Moves the parameters and buffers of modules to a card."""

    def __init__(self, device, dtype):
        self.device, self.dtype = device, dtype
        #: Parameters on the host, which keep their ids, and on the card: tied weights stay tied.
        self.moved = {}

    def dtype_of(self, tensor):
        """Returns the dtype on the card: as in Module.to(), integers keep theirs."""
        return self.dtype if self.dtype and tensor.is_floating_point() else tensor.dtype

    def tensor(self, tensor, layout=None):
        """Returns a tensor on the card; layout() of it and its dtype is None for the default."""
        if tensor is None or tensor.device.type == "spyre":
            return tensor
        tensor = tensor.detach()
        dtype = self.dtype_of(tensor)
        if layout and tensor.dim() == 2 and tensor.numel():
            tensor = tensor.contiguous()
            device_layout = layout(tensor, dtype)
            if device_layout is not None:
                return tensor.to(self.device, dtype, device_layout=device_layout)
        return tensor.to(self.device, dtype)

    def parameter(self, parameter, layout):
        """Returns a parameter on the card, with its gradient."""
        if parameter is None or parameter.device.type == "spyre":
            return parameter
        if id(parameter) not in self.moved:
            new = torch.nn.Parameter(self.tensor(parameter, layout), parameter.requires_grad)
            new.grad = self.tensor(parameter.grad)
            self.moved[id(parameter)] = parameter, new
        return self.moved[id(parameter)][1]

    def module(self, module):
        """Moves a module; one with its own _apply() moves itself and its children."""
        if getattr(module._apply, "__func__", None) is not torch.nn.Module._apply:
            module._apply(self.tensor)
            return
        for child in module.children():
            self.module(child)
        for name, parameter in module._parameters.items():
            layout = None
            if name == "weight" and isinstance(module, torch.nn.Linear):
                layout = _linear_layout
            elif name == "weight" and isinstance(module, torch.nn.Embedding):
                layout = _embedding_layout
            module._parameters[name] = self.parameter(parameter, layout)
        for name, buffer in module._buffers.items():
            module._buffers[name] = self.tensor(buffer)


def load_model_to_spyre(model, dtype=None, device="spyre"):
    """Moves a model to a card, with weights in the layouts that their operations read.

    Parameters are replaced, so optimisers are made afterwards. Floating-point tensors are converted
    to `dtype` if it is given. What is on a card stays as it is. Returns the model. Raises TypeError
    for a dtype that the card does not have.
    """
    if dtype is not None:
        _C.get_device_dtype(dtype)
    _Move(torch.device("spyre", device_index(device)), dtype).module(model)
    return model


def _places(module):
    """Returns the Linear modules within @module that are not in training, and their devices."""
    weights = (
        (layer, layer._parameters.get("weight"))
        for layer in module.modules()
        if isinstance(layer, torch.nn.Linear) and not layer.training
    )
    return [(layer, weight.device) for layer, weight in weights if weight is not None]


def _is_plain(weight):
    """Returns True for a weight on a card whose columns are worth sticks of their own."""
    return (
        type(weight) is torch.nn.Parameter
        and weight.device.type == "spyre"
        and weight.dim() == 2
        and weight.dtype in (torch.float16, torch.bfloat16, torch.float32)
        and weight.is_contiguous()
        and weight.shape[0] >= _C.get_elem_in_stick(weight.dtype)
        and weight.shape[1] > 1
    )


def _lay_out(layer, device):
    """Gives the weight of a Linear that has left @device the layout of products."""
    weight = layer._parameters.get("weight")
    if weight is None or weight.device == device or not _is_plain(weight):
        return
    layout = _linear_layout(weight, weight.dtype)
    if weight.device_tensor_layout() != layout:
        weight.data = weight.data.to(device_layout=layout)


def lay_out_linear_weights():
    """Makes Module.to() and its relatives move the weights of Linear in the layout of products.

    A product reads sticks along out_features, and would restickify other weights at each call.
    Modules in training keep the default layout, which is that of gradients. Parameters stay the
    same objects. Weights that are on a card already are not moved, because graphs and other
    tensors may use their memory.
    """
    original = torch.nn.Module._apply
    calls = threading.local()

    @functools.wraps(original)
    def _apply(self, function, recurse=True):
        if getattr(calls, "nested", False):
            return original(self, function, recurse)
        # A weight that a Linear shares may move before the Linear does.
        places = _places(self)
        calls.nested = True
        try:
            module = original(self, function, recurse)
        finally:
            calls.nested = False
        for layer, device in places:
            _lay_out(layer, device)
        return module

    torch.nn.Module._apply = _apply


def patch_module_to_for_spyre():
    """Makes Module.to() move models to cards as load_model_to_spyre() does."""
    original = torch.nn.Module.to
    if hasattr(original, "_spyre_original"):
        return

    @functools.wraps(original)
    def to(self, *args, **kwargs):
        device, dtype, _, memory_format = torch._C._nn._parse_to(*args, **kwargs)
        if device is None or device.type != "spyre" or memory_format is not None:
            return original(self, *args, **kwargs)
        return load_model_to_spyre(self, dtype, device)

    to._spyre_original = original
    torch.nn.Module.to = to
