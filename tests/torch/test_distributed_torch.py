# SPDX-License-Identifier: MIT
"""PyTorch's own tests of process groups, with the tensors that they make on cards.

The tests are those of DistributedTest. LEFT_OUT has the reason of each that is not run. Conditions
that name other back ends, or count ranks, do not apply.
"""

import atexit
import os
import re
import shutil
import tempfile

import torch
from ranks import DEVICE, RanksTest

os.environ.setdefault("BACKEND", "spyreccl")
os.environ.setdefault("WORLD_SIZE", "3")
if "TEMP_DIR" not in os.environ:  # else this is a process of a rank
    os.environ["TEMP_DIR"] = tempfile.mkdtemp(prefix="spyre-distributed-")
    atexit.register(shutil.rmtree, os.environ["TEMP_DIR"], ignore_errors=True)

from torch.testing._internal.distributed import distributed_test  # noqa: E402

#: Parts of names, with the reason.
LEFT_OUT = {
    "cuda|nccl|mixed_backend": "for CUDA or NCCL",
    "gloo|monitored_barrier|sparse_all_reduce|barrier_timeout": "for Gloo",
    "test_barrier": "with CPU tensors; test_distributed_collectives.py has barriers of cards",
    "_profil": "counts events of Gloo and NCCL",
    "any_source": "a receive from any rank is refused",
    "test_isend|test_irecv": "expects the host to wait",
    "test_broadcast": "with float64, which cards lack, and object lists, which PyTorch leaves out",
    "ddp|DDP|DistributedDataParallel|DistributedSampler|SyncBatchNorm|sync_bn|static_graph"
    "|localSGD|undefined_grad|output_unused|unused_param|verify_model|different_graph"
    "|accumulate_gradients": "trains models on CUDA or with Gloo; test_distributed_training.py has "
    "those on cards",
    "model_averager|average_parameters|get_data_parallel_params|isend_irecv_op_err"
    "|coalescing_manager|compute_bucket|new_subgroups_by_enumeration$": "moves tensors to CUDA",
    "new_subgroups$|with_group_param|not_divisible": "for numbers of ranks that three are not",
}


def left_out(name):
    """Returns True for tests that are not run here."""
    return any(re.search(part, name) for part in LEFT_OUT)


def unconditional(function):
    """Returns a test without what would skip it."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    return lambda self: function(self)


class TestTorch(RanksTest, distributed_test.DistributedTest._DistTestBase):
    world_size = 3

    @classmethod
    def backend_str(cls):
        return os.environ["BACKEND"]

    @classmethod
    def _init_pg(cls, rank, world_size, rdvz_file):
        for name in "barrier", "test_dir":
            os.makedirs(os.path.join(os.environ["TEMP_DIR"], name), exist_ok=True)
        distributed_test.Barrier.init()
        super()._init_pg(rank, world_size, rdvz_file)
        torch.set_default_device(torch.device(DEVICE, rank))


for _name in dir(distributed_test.DistributedTest._DistTestBase):
    if _name.startswith("test_"):
        _test = getattr(distributed_test.DistributedTest._DistTestBase, _name)
        setattr(TestTorch, _name, None if left_out(_name) else unconditional(_test))
