# SPDX-License-Identifier: MIT
"""Collectives of torch.ops.spyre.

Where the process group has a back end for cards, they are in the order of the current stream. In
other groups, copies on the host pass through its back end for the CPU, for example gloo.
"""

import torch

from .definition import define, library


def _group(name):
    """Returns the process group of a name; "default" is that of all processes."""
    from torch.distributed import distributed_c10d

    if not distributed_c10d.is_initialized():
        raise RuntimeError(
            "spyre: cannot start a collective: this process is in no process group; call "
            'torch.distributed.init_process_group("gloo") first'
        )
    if name == "default":
        return distributed_c10d.group.WORLD
    return distributed_c10d._resolve_process_group(name)


def _for_group(tensor, group):
    """Returns a copy of a tensor where a collective of the group can use it."""
    try:
        group._get_backend(tensor.device)
    except RuntimeError:  # no back end for this type of device
        return tensor.to("cpu", copy=True).contiguous()
    return tensor.clone(memory_format=torch.contiguous_format)


def _kernel(schema, fake):
    """Decorator that defines an operation with a kernel for all devices and a fake one."""

    def decorate(function):
        name = define(schema)
        library.impl(name, function, "CompositeExplicitAutograd")
        torch.library.register_fake(f"spyre::{name}", fake, lib=library)
        return function

    return decorate


@_kernel(
    "broadcast_async(Tensor input, int src_rank, str group_name) -> Tensor",
    lambda input, src_rank=0, group_name="default": torch.empty_like(input),
)
def broadcast_async(input, src_rank, group_name):
    """Returns the tensor of one rank on all ranks."""
    group = _group(group_name)
    size = torch.distributed.get_world_size(group)
    if not 0 <= src_rank < size:
        raise RuntimeError(f"src_rank out of range: {src_rank} (world size is {size})")
    result = _for_group(input, group)
    torch.distributed.broadcast(result, group=group, group_src=src_rank)
    return result.to(input.device)


def _gathered(input, group_size=1, group_name="default"):
    """Returns an empty result of all_gather_async."""
    return input.new_empty([input.size(0) * group_size, *input.size()[1:]])


@_kernel(
    'all_gather_async(Tensor input, SymInt group_size=1, str group_name="default") -> Tensor',
    _gathered,
)
def all_gather_async(input, group_size=1, group_name="default"):
    """Returns the tensors of all ranks, one after the other in the first dimension."""
    group = _group(group_name)
    size = torch.distributed.get_world_size(group)
    if group_size != size:
        raise RuntimeError(
            f"group_size must equal world size: got {group_size} (world size is {size})"
        )
    own = _for_group(input, group)
    parts = [torch.empty_like(own) for _ in range(size)]
    torch.distributed.all_gather(parts, own, group=group)
    return torch.cat(parts).to(input.device)


@_kernel(
    'all_reduce_async(Tensor(a!) input, str reduce_op="sum", str group_name="default") -> '
    "Tensor(a!)",
    lambda input, reduce_op="sum", group_name="default": input,
)
def all_reduce_async(input, reduce_op="sum", group_name="default"):
    """Writes the sum over all ranks into the tensor, and returns it."""
    if reduce_op != "sum":
        raise RuntimeError(f"spyre: cannot reduce with {reduce_op!r}; the operation is 'sum'")
    group = _group(group_name)
    result = _for_group(input, group)
    torch.distributed.all_reduce(result, group=group)
    return input.copy_(result)


@_kernel("wait_work(Tensor(a!) tensor) -> Tensor(a!)", lambda tensor: tensor)
def wait_work(tensor):
    """Returns the tensor, whose collective is complete."""
    return tensor
