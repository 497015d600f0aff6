# SPDX-License-Identifier: MIT
"""The back end "spyreccl" of torch.distributed, for collectives between cards."""

import functools
import os

import torch

from . import _C

#: Name of the back end in init_process_group().
NAME = "spyreccl"


def check_local_rank():
    """Raises RuntimeError if LOCAL_RANK is not the number of a visible card."""
    text = os.environ.get("LOCAL_RANK")
    if text is None:
        return
    count = _C._device_count()
    try:
        rank = int(text)
    except ValueError:
        raise RuntimeError(
            f"spyreccl: LOCAL_RANK is '{text}': expected a number from 0 to {count - 1}"
        ) from None
    if not 0 <= rank < count:
        raise RuntimeError(
            f"spyreccl: LOCAL_RANK {rank} is out of range: {count} "
            f"card{' is' if count == 1 else 's are'} visible (SPYRE_DEVICES, AIU_WORLD_SIZE, "
            "SPYRE_EMBEDDED_CARDS); start as many processes as there are cards"
        )


def _create(backend_options, options):
    """Creates the back end of a group; called by torch.distributed."""
    check_local_rank()
    group = process_group_class()
    if options is not None and not isinstance(options, group.Options):
        raise TypeError(
            f"spyreccl: expected pg_options of type {group.Options.__name__}, "
            f"not {type(options).__name__}"
        )
    return group(backend_options, options)


@functools.cache
def process_group_class():
    """Returns the class of the back end; its base class is that of torch.distributed."""
    return _C._define_process_group()


def flight_record(for_fr_trace=False):
    """Returns the latest collectives of this process, with the names of PyTorch's recorder.

    They are kept if TORCH_FR_BUFFER_SIZE is a number above 0. torchfrtrace reads pickled records
    of all ranks; it knows back ends by name and not this one, so that @for_fr_trace writes
    another name.
    """
    from torch.distributed import distributed_c10d as c10d

    entries = _C._flights()
    if for_fr_trace:
        for entry in entries:
            operation = entry["profiling_name"].split(":")[1]
            entry["profiling_name"] = f"xccl:{operation}"
    groups = {
        group.group_name: {
            "name": group.group_name,
            "desc": group.group_desc,
            "ranks": str(c10d.get_process_group_ranks(group)),
        }
        for group in c10d._world.pg_map
    }
    return {
        "version": "2.10",
        "pg_config": groups,
        "pg_status": {},
        "rank": c10d.get_rank(),
        "entries": entries,
    }


def _default_backend(helper):
    """Makes cards' back end the default one of a group that names it together with others.

    PyTorch 2.13 compares names of plug-ins in upper case with names in lower case, and takes
    Gloo where no back end is named.
    """
    from torch.distributed import distributed_c10d as c10d

    @functools.wraps(helper)
    def new_process_group(*args, **kwargs):
        result = helper(*args, **kwargs)
        group = result[0]
        if type(group) is c10d.ProcessGroup and _is_for_cards(c10d, group):
            group._set_default_backend(c10d.ProcessGroup.BackendType.CUSTOM)
        return result

    return new_process_group


def _is_for_cards(c10d, group):
    """Returns True if a group has this back end and not one of PyTorch's for an accelerator."""
    config = c10d._world.pg_backend_config.get(group, "")
    names = {part.split(":")[-1] for part in config.split(",")}
    return NAME in names and c10d.Backend.NCCL not in names


def register():
    """Registers the back end; called once, when the device is registered."""
    if not torch.distributed.is_available():
        return
    from torch.distributed import distributed_c10d as c10d

    c10d.Backend.register_backend(NAME, _create, extended_api=True, devices=["spyre"])
    c10d._new_process_group_helper = _default_backend(c10d._new_process_group_helper)
