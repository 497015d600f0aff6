# SPDX-License-Identifier: MIT
"""Tensors sent to another process (torch.multiprocessing).

A tensor is sent as a copy in shared memory of the host and becomes a tensor on the same card
of the receiving process. Neither process sees later writes of the other.
"""

import io
from multiprocessing import context
from multiprocessing.reduction import ForkingPickler

import torch
from torch.multiprocessing import reductions

from . import _C


def _layout(tensor):
    """Returns the layout of a tensor that covers its memory; None for the default layout."""
    layout = tensor.device_tensor_layout() if tensor.numel() else None
    if layout is None or not tensor.is_contiguous() or tensor.storage_offset():
        return None
    if tensor.untyped_storage().nbytes() != tensor.nbytes:
        return None
    try:
        default = _C.SpyreTensorLayout(list(tensor.shape), tensor.dtype)
    except RuntimeError:  # the tensor has more dimensions than a layout
        return None
    return None if layout == default else layout


def _to_bytes(tensor):
    """Returns a tensor as the bytes of torch.save()."""
    buffer = io.BytesIO()
    torch.save(tensor, buffer)
    return buffer.getvalue()


def _rebuild(kind, host, device, layout, requires_grad):
    """Makes the received copy @host a tensor or parameter on @device with its layout."""
    if isinstance(host, bytes):
        host = torch.load(io.BytesIO(host), weights_only=True)
    tensor = host.to(device) if layout is None else host.to(device, device_layout=layout)
    if issubclass(kind, torch.nn.Parameter):
        return kind(tensor, requires_grad=requires_grad)
    return tensor.requires_grad_(requires_grad)


def _reduce_tensor(tensor):
    """Pickles a tensor of a card as a copy on the host; others as torch does."""
    if tensor.device.type != "spyre" or tensor.layout != torch.strided or tensor.is_nested:
        return reductions.reduce_tensor(tensor)
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "spyre: cannot send a tensor with autograd history to another process, which does not "
            "have the history; detach() it first"
        )
    torch.utils.hooks.warn_if_has_hooks(tensor)
    host = tensor.detach().cpu()
    if context.get_spawning_popen() is not None:
        # A spawned process receives descriptors after the copies have been freed.
        host = _to_bytes(host)
    return _rebuild, (type(tensor), host, tensor.device, _layout(tensor), tensor.requires_grad)


def _reduce_storage(storage):
    """Pickles storages as torch does, and rejects those of a card."""
    if storage.device.type != "spyre":
        return reductions.reduce_storage(storage)
    raise RuntimeError(
        f"spyre: cannot send a storage on {storage.device} to another process; send a tensor, "
        "which is sent as a copy"
    )


def register():
    """Registers the reductions of tensors and storages on cards with multiprocessing."""
    for kind in (torch.Tensor, torch.nn.Parameter):
        ForkingPickler.register(kind, _reduce_tensor)
    ForkingPickler.register(torch.UntypedStorage, _reduce_storage)
