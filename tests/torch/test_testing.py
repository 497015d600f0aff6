# SPDX-License-Identifier: MIT
"""torch.testing on tensors of the card."""

import pytest
import torch
from support import DEVICE
from torch.testing import assert_close, make_tensor
from torch.testing._internal.common_utils import TestCase, freeze_rng_state


class TestTesting(TestCase):
    def test_assert_close(self):
        x = torch.tensor([1.0, 2.0, 3.0], device=DEVICE)
        assert_close(x, x.clone())
        with pytest.raises(AssertionError, match="not close|not equal"):
            assert_close(x, x + 1)
        with pytest.raises(AssertionError, match="device"):
            assert_close(x, x.cpu())
        assert_close(x, x.cpu(), check_device=False)

    def test_assert_equal(self):
        self.assertEqual(torch.ones(3, device=DEVICE), torch.ones(3))
        self.assertNotEqual(torch.ones(3, device=DEVICE), torch.zeros(3, device=DEVICE))

    def test_make_tensor(self):
        for dtype in (torch.float16, torch.float32, torch.int64, torch.bool):
            x = make_tensor((3, 5), dtype=dtype, device=DEVICE, low=0, high=2)
            assert x.device.type == DEVICE and x.dtype == dtype and x.shape == (3, 5)
        x = make_tensor((3, 5), dtype=torch.float32, device=DEVICE, noncontiguous=True)
        assert not x.is_contiguous()
        x = make_tensor((3, 5), dtype=torch.float32, device=DEVICE, requires_grad=True)
        assert x.requires_grad

    def test_freeze_rng_state(self):
        with freeze_rng_state():
            first = torch.rand(5, device=DEVICE)
        assert_close(torch.rand(5, device=DEVICE), first)

    def test_isclose_allclose(self):
        x = torch.tensor([1.0, float("nan")], device=DEVICE)
        assert torch.isclose(x, x, equal_nan=True).all().item()
        assert not torch.allclose(x, x)
