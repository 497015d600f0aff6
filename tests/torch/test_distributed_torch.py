# SPDX-License-Identifier: MIT
"""PyTorch's own tests of process groups, with the tensors that they make on cards.

The tests are those of DistributedTest that are not for CUDA, for one named back end or for long
training; LEFT_OUT has the reasons of the others.
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

WANTED = re.compile(
    "test_(all_(reduce|gather|to_all)|reduce|broadcast|scatter|gather"
    "|isend|irecv|send_recv|batch_isend_irecv_op|coalescing_manager|average_parameters|get_"
    "|periodic_model|accumulate_gradients|new_subgroups|grads_same|compute_bucket)"
)

#: Parts of names, with the reason.
LEFT_OUT = {
    "cuda": "for CUDA",
    "_profiler": "counts events of Gloo and NCCL",
    "nccl": "for NCCL",
    "any_source": "a receive from any rank is refused",
    "test_isend": "expects the host to wait",
    "test_irecv": "expects the host to wait",
    "test_broadcast": "with float64, which cards lack; of groups: test_broadcast_group",
}


def left_out(name):
    """Returns True for tests that are not run here."""
    if name == "test_broadcast_group":
        return False
    return not WANTED.match(name) or any(part in name for part in LEFT_OUT)


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
    if _name.startswith("test_") and left_out(_name):
        setattr(TestTorch, _name, None)
