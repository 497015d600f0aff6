# SPDX-License-Identifier: MIT
"""Collectives: cards have no process group; those of the CPU work through copies."""

import pytest
import torch
import torch.distributed as dist
from support import DEVICE, exact


@pytest.fixture
def group(tmp_path):
    dist.init_process_group(
        "gloo", store=dist.FileStore(str(tmp_path / "store"), 1), rank=0, world_size=1
    )
    yield
    dist.destroy_process_group()


class TestDistributed:
    def test_backend_of_cards(self):
        """A process group whose back end is the card's own."""
        assert dist.Backend.default_device_backend_map[DEVICE] == "spyreccl"

    def test_collective_on_a_card_says_what_is_missing(self, group):
        with pytest.raises(RuntimeError, match="(?i)spyre|backend"):
            dist.all_reduce(exact(4).to(DEVICE))

    def test_host_collectives_beside_cards(self, group):
        x = exact(4, dtype=torch.float32).to(DEVICE).cpu()
        dist.all_reduce(x)
        assert torch.equal(x, exact(4, dtype=torch.float32))
