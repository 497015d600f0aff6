# SPDX-License-Identifier: MIT
"""DLPack, torch.utils."""

import pytest
import torch
import torch.utils.benchmark
import torch.utils.checkpoint
from support import DEVICE, assert_same, exact


class TestDLPack:
    def test_open_device_dlpack(self):
        x = exact(2, 3).to(DEVICE)
        y = torch.from_dlpack(torch.utils.dlpack.to_dlpack(x))
        assert y.device == x.device
        assert_same(y, exact(2, 3))

    def test_dlpack_shares(self):
        x = exact(2, 3).to(DEVICE)
        y = torch.from_dlpack(torch.utils.dlpack.to_dlpack(x))
        x.zero_()
        assert y.cpu().eq(0).all()

    def test_dlpack_device(self):
        kind, index = exact(2).to("spyre:1").__dlpack_device__()
        assert index == 1 and kind == torch.utils.dlpack.DLDeviceType.kDLExtDev

    def test_dlpack_of_a_view(self):
        x = exact(4, 6).to(DEVICE)
        assert_same(torch.from_dlpack(torch.utils.dlpack.to_dlpack(x[1:, 2:])), exact(4, 6)[1:, 2:])


class TestUtils:
    def test_swap_tensors(self):
        x, y = torch.ones(2, device=DEVICE), torch.zeros(3, device=DEVICE)
        torch.utils.swap_tensors(x, y)
        assert x.shape == (3,) and y.shape == (2,)

    def test_benchmark_timer(self):
        timer = torch.utils.benchmark.Timer("x + x", globals={"x": torch.ones(4, device=DEVICE)})
        assert timer.timeit(3).mean > 0

    def test_checkpoint(self):
        x = exact(4, 4, dtype=torch.float32).to(DEVICE).requires_grad_()
        y = torch.utils.checkpoint.checkpoint(lambda t: (t * t).sum(), x, use_reentrant=False)
        y.backward()
        assert_same(x.grad, 2 * exact(4, 4, dtype=torch.float32))

    @pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.int64, torch.bool])
    def test_equal_and_allclose(self, dtype):
        x = exact(10, dtype=dtype).to(DEVICE)
        assert torch.equal(x, x.clone())
        if dtype.is_floating_point:
            assert torch.allclose(x, x.clone()) and not torch.allclose(x, x + 1)
