# SPDX-License-Identifier: MIT
"""Wraps functions of PyTorch that have no hook for devices."""

import functools

import torch
import torch.utils.dlpack
from torch import _tensor_str
from torch.nn.attention import flex_attention
from torch.utils import _device

from . import _C, memory
from .utils import device_index


def _print_on_host():
    """Formats tensors on the host, because PyTorch formats in float64, which the card lacks."""
    original = _tensor_str._tensor_str

    @functools.wraps(original)
    def tensor_str(self, indent):
        return original(self.cpu() if self.device.type == "spyre" else self, indent)

    _tensor_str._tensor_str = tensor_str


def _device_tensor_layout(self):
    """Returns the SpyreTensorLayout of a tensor on a card, None for other tensors.

    A view has the layout of the memory that it is a view of.
    """
    if self.device.type != "spyre" or isinstance(self, torch._subclasses.FakeTensor):
        return None
    return _C.get_spyre_tensor_layout(self)


def _has_layout(tensor, layout, device, dtype):
    """Returns True if a tensor covers memory with this layout, and has this device and dtype."""
    return (
        tensor.device.type == "spyre"
        and (device is None or device_index(device) == tensor.device.index)
        and dtype in (None, tensor.dtype)
        and tensor.is_contiguous()
        and tensor.storage_offset() == 0
        and tensor.untyped_storage().nbytes() == tensor.nbytes
        and tensor.device_tensor_layout() == layout
    )


def _to_takes_layouts():
    """Gives Tensor.to() the argument device_layout."""
    original = torch.Tensor.to

    @functools.wraps(original)
    def to(self, *args, **kwargs):
        if "device_layout" not in kwargs:
            return original(self, *args, **kwargs)
        device_layout = kwargs.pop("device_layout")
        if device_layout is None:
            return original(self, *args, **kwargs)
        copy = kwargs.pop("copy", False)
        device, dtype, _, _ = torch._C._nn._parse_to(*args, **kwargs)
        if device is not None and device.type != "spyre":
            raise ValueError(f"device_layout is for spyre devices, not {device}")
        if not copy and _has_layout(self, device_layout, device, dtype):
            return self
        return _C.to_with_layout(self, device_layout, dtype, device)

    torch.Tensor.to = to


def _empty_takes_layouts():
    """Gives torch.empty() the argument device_layout."""
    # `with torch.device(...)` collects its functions once; they must include the original empty.
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
            if size:
                raise TypeError("empty() takes one size, but was given two")
            size = kwargs.pop("size")
        elif len(size) == 1 and not isinstance(size[0], int):
            size = size[0]
        dtype = kwargs.pop("dtype", None)
        requires_grad = kwargs.pop("requires_grad", False)
        memory = kwargs.pop("pin_memory", None), kwargs.pop("memory_format", None)
        if kwargs.get("layout") is torch.strided:
            del kwargs["layout"]
        given = [name for name, value in kwargs.items() if value is not None]
        if given:
            raise TypeError(f"empty() with device_layout does not take {', '.join(given)}")
        tensor = _C.empty_with_layout(list(size), device_layout, dtype, device, *memory)
        return tensor.requires_grad_(requires_grad)

    # pickle stores this name, so that processes without this package can load it.
    empty.__module__, empty.__qualname__ = "torch", "empty"
    torch.jit._builtins._register_builtin(empty, "aten::empty")
    torch.empty = empty
    # dynamo identifies a call by its name in torch and looks for it in this set.
    constructors.add(empty)


def _dlpack_knows_spyre():
    """Exports spyre tensors as kDLExtDev, DLPack's type for extension devices.

    PyTorch imports that type as its first extension device.
    """
    original_device, original = torch.Tensor.__dlpack_device__, torch.Tensor.__dlpack__
    original_to, original_from = torch.utils.dlpack.to_dlpack, torch.utils.dlpack.from_dlpack

    def check_address(tensor):
        """Raises BufferError for a view that starts inside its memory, at no address of its own."""
        # An import finds the memory's first layout by the address, so a second one would be lost.
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
    """Keeps the scale and its growth on the host: its reciprocal is computed in float64."""
    original = torch.amp.GradScaler._lazy_init_scale_growth_tracker

    @functools.wraps(original)
    def lazy_init(self, device):
        original(self, torch.device("cpu") if device.type == "spyre" else device)

    torch.amp.GradScaler._lazy_init_scale_growth_tracker = lazy_init


def _trace_checks_on_host():
    """Compares results of torch.jit.trace on the host: it uses float64, which the card lacks."""
    original = torch.jit._trace._check_trace

    def double(self, *args, **kwargs):
        tensor = self.cpu() if self.device.type == "spyre" else self
        return torch._C.TensorBase.double(tensor, *args, **kwargs)

    @functools.wraps(original)
    def check_trace(*args, **kwargs):
        # A TorchFunctionMode would appear in the second trace, which is compared with the first.
        torch.Tensor.double = double
        try:
            return original(*args, **kwargs)
        finally:
            torch.Tensor.double = torch._C.TensorBase.double

    torch.jit._trace._check_trace = check_trace


def _flex_attention_takes_spyre():
    """Lets flex_attention run unfused on a card, by operations that the card has.

    Inductor would write it as one loop, for which the card has no kernel. Under dynamo the
    original check raises, which breaks the graph, so the call runs eagerly.
    """
    original = flex_attention._validate_device

    @functools.wraps(original)
    def validate_device(query, key, value):
        if query.device.type != "spyre" or torch.compiler.is_dynamo_compiling():
            original(query, key, value)

    flex_attention._validate_device = validate_device


def _accelerator_takes_snapshots():
    """Lets torch.accelerator.memory._snapshot() ask the cards; it knows CUDA and XPU by name."""
    original = torch.accelerator.memory._snapshot

    @functools.wraps(original)
    def snapshot(device=None, augment_with_fx_traces=False):
        accelerator = torch.accelerator.current_accelerator()
        if accelerator is None or accelerator.type != "spyre":
            return original(device, augment_with_fx_traces)
        return memory._snapshot(device, augment_with_fx_traces)

    torch.accelerator.memory._snapshot = snapshot


def require_layout(tensor, device_size, stride_map):
    """Returns `tensor` if its layout has this device_size and stride_map, else a copy that has.

    Both are in elements, outermost device dimension first. Raises RuntimeError if they do not
    describe the tensor.
    """
    layout = _C.SpyreTensorLayout(
        list(device_size), list(stride_map), _C.get_device_dtype(tensor.dtype)
    )
    if tensor.device_tensor_layout() == layout:
        return tensor
    return tensor.to(device_layout=layout)


def apply():
    """Applies all wrappers of this module; called once, when the device is registered."""
    _print_on_host()
    _to_takes_layouts()
    _empty_takes_layouts()
    _dlpack_knows_spyre()
    _grad_scaler_counts_on_host()
    _trace_checks_on_host()
    _flex_attention_takes_spyre()
    _accelerator_takes_snapshots()
    torch.Tensor.device_tensor_layout = _device_tensor_layout
