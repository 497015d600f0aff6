# SPDX-License-Identifier: MIT
"""Where PyTorch has no hook: functions of its own that are wrapped."""

import functools

import torch
import torch.utils.dlpack
from torch import _tensor_str
from torch.nn.attention import flex_attention
from torch.utils import _device

from . import _C


def _print_on_host():
    """Formats numbers on the host, in float64, which the card has not."""
    original = _tensor_str._tensor_str

    @functools.wraps(original)
    def tensor_str(self, indent):
        return original(self.cpu() if self.device.type == "spyre" else self, indent)

    _tensor_str._tensor_str = tensor_str


def _device_tensor_layout(self):
    """The SpyreTensorLayout of a tensor on a card; None elsewhere.

    It is that of the memory that the tensor is a view of.
    """
    if self.device.type != "spyre" or isinstance(self, torch._subclasses.FakeTensor):
        return None
    return _C.get_spyre_tensor_layout(self)


def _to_takes_layouts():
    original = torch.Tensor.to

    @functools.wraps(original)
    def to(self, *args, **kwargs):
        if "device_layout" not in kwargs:
            return original(self, *args, **kwargs)
        device_layout = kwargs.pop("device_layout")
        if device_layout is None:
            return original(self, *args, **kwargs)
        device, dtype, _, _ = torch._C._nn._parse_to(*args, **kwargs)
        if device is not None and device.type != "spyre":
            raise ValueError(f"device_layout is for spyre devices, not {device}")
        return _C.to_with_layout(self, device_layout, dtype, device)

    torch.Tensor.to = to


def _empty_takes_layouts():
    # What `with torch.device(...)` acts on is collected once: before torch.empty changes.
    constructors = _device._device_constructors()
    original = torch.empty

    @functools.wraps(original)
    def empty(*size, device_layout=None, **kwargs):
        if device_layout is None:
            return original(*size, **kwargs)
        device = torch.device(kwargs.pop("device", None) or "spyre")
        if device.type != "spyre":
            raise ValueError(f"device_layout is for spyre devices, not {device}")
        if "size" in kwargs:
            size = kwargs.pop("size")
        elif len(size) == 1 and not isinstance(size[0], int):
            size = size[0]
        dtype = kwargs.pop("dtype", None)
        requires_grad = kwargs.pop("requires_grad", False)
        if kwargs:
            raise TypeError(f"empty() with device_layout does not take {', '.join(kwargs)}")
        tensor = _C.empty_with_layout(list(size), device_layout, dtype, device)
        return tensor.requires_grad_(requires_grad)

    # As what pickle finds it by, in processes without this package too.
    empty.__module__, empty.__qualname__ = "torch", "empty"
    torch.jit._builtins._register_builtin(empty, "aten::empty")
    torch.empty = empty
    # dynamo takes a call by the name it has in torch, and asks whether it is one of these.
    constructors.add(empty)


def _dlpack_knows_spyre():
    """DLPack has a device type for extensions, under PyTorch's name for the first of them."""
    original_device, original = torch.Tensor.__dlpack_device__, torch.Tensor.__dlpack__
    original_to, original_from = torch.utils.dlpack.to_dlpack, torch.utils.dlpack.from_dlpack

    def check_address(tensor):
        # Memory under a second layout would come back under the first.
        if tensor.device.type == "spyre" and not _C._dlpack_has_address(tensor):
            raise BufferError(
                f"a view at offset {tensor.storage_offset()} of memory on {tensor.device} has no "
                "address of its own; clone() it first"
            )

    @functools.wraps(original_device)
    def dlpack_device(self):
        if self.device.type != "spyre":
            return original_device(self)
        return torch.utils.dlpack.DLDeviceType.kDLExtDev, self.device.index

    @functools.wraps(original)
    def dlpack(self, **kwargs):
        check_address(self)
        return original(self, **kwargs)

    @functools.wraps(original_to)
    def to_dlpack(tensor):
        check_address(tensor)
        return original_to(tensor)

    @functools.wraps(original_from)
    def from_dlpack(*args, **kwargs):
        tensor = original_from(*args, **kwargs)
        return _C._dlpack_take_back(tensor) if tensor.device.type == "spyre" else tensor

    torch.Tensor.__dlpack_device__ = dlpack_device
    torch.Tensor.__dlpack__ = dlpack
    torch.to_dlpack = torch.utils.dlpack.to_dlpack = to_dlpack
    torch.from_dlpack = torch.utils.dlpack.from_dlpack = from_dlpack


def _grad_scaler_counts_on_host():
    """The scale and its growth are numbers of the host: its reciprocal is taken in float64."""
    original = torch.amp.GradScaler._lazy_init_scale_growth_tracker

    @functools.wraps(original)
    def lazy_init(self, device):
        original(self, torch.device("cpu") if device.type == "spyre" else device)

    torch.amp.GradScaler._lazy_init_scale_growth_tracker = lazy_init


def _trace_checks_on_host():
    """What torch.jit.trace compares results in, float64, the card has not."""
    original = torch.jit._trace._check_trace

    def double(self, *args, **kwargs):
        tensor = self.cpu() if self.device.type == "spyre" else self
        return torch._C.TensorBase.double(tensor, *args, **kwargs)

    @functools.wraps(original)
    def check_trace(*args, **kwargs):
        # A mode would change the graph of the second trace, which is compared with the first.
        torch.Tensor.double = double
        try:
            return original(*args, **kwargs)
        finally:
            torch.Tensor.double = torch._C.TensorBase.double

    torch.jit._trace._check_trace = check_trace


def _flex_attention_takes_spyre():
    """Of tensors on a card it runs unfused, by operations that a card has.

    Inductor would write it as one loop, which no kernel of a card is. The error that dynamo
    meets here ends its graph, and the call runs eagerly.
    """
    original = flex_attention._validate_device

    @functools.wraps(original)
    def validate_device(query, key, value):
        if query.device.type != "spyre" or torch.compiler.is_dynamo_compiling():
            original(query, key, value)

    flex_attention._validate_device = validate_device


def require_layout(tensor, device_size, stride_map):
    """`tensor` if it lies so on its card, else a copy that does."""
    layout = _C.SpyreTensorLayout(
        list(device_size), list(stride_map), _C.get_device_dtype(tensor.dtype)
    )
    if tensor.device_tensor_layout() == layout:
        return tensor
    return tensor.to(device_layout=layout)


def apply():
    _print_on_host()
    _to_takes_layouts()
    _empty_takes_layouts()
    _dlpack_knows_spyre()
    _grad_scaler_counts_on_host()
    _trace_checks_on_host()
    _flex_attention_takes_spyre()
    torch.Tensor.device_tensor_layout = _device_tensor_layout
