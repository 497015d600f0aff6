# SPDX-License-Identifier: MIT
"""torch's own device-generic test machinery takes "spyre"."""

import torch
from torch.testing import make_tensor
from torch.testing._internal.common_device_type import (
    dtypes,
    instantiate_device_type_tests,
    onlyCPU,
    onlyNativeDeviceTypes,
    onlyPRIVATEUSE1,
    skipPRIVATEUSE1If,
)
from torch.testing._internal.common_utils import TestCase


class TestDeviceTransfer(TestCase):
    def test_to_device(self, device):
        host = torch.randn(3, 4)
        there = host.to(device=device)
        self.assertEqual(there.device.type, "spyre")
        self.assertEqual(there.cpu(), host)
        self.assertEqual(there.to(device=device).data_ptr(), there.data_ptr())
        self.assertNotEqual(there.to(device=device, copy=True).data_ptr(), there.data_ptr())

    def test_copy_(self, device):
        host = torch.randn(3, 4)
        there = torch.empty(3, 4, device=device)
        there.copy_(host)
        back = torch.empty(3, 4)
        back.copy_(there)
        self.assertEqual(back, host)

    @dtypes(torch.float16, torch.float32, torch.bfloat16, torch.int32, torch.int64, torch.bool)
    def test_round_trip(self, device, dtype):
        host = make_tensor((5, 7), dtype=dtype, device="cpu", low=0, high=2)
        atol = 2.0**-9 if dtype == torch.float16 else 0
        self.assertEqual(host.to(device).cpu(), host, rtol=atol, atol=atol)


class TestDecorators(TestCase):
    ran = []

    @onlyCPU
    def test_cpu_only(self, device):
        self.fail("this class is for spyre only")

    @onlyPRIVATEUSE1
    def test_privateuse1_only(self, device):
        self.assertEqual(torch.device(device).type, "spyre")

    @skipPRIVATEUSE1If(True, "an example")
    def test_skipped(self, device):
        self.fail("is skipped")

    @onlyNativeDeviceTypes
    def test_native(self, device):
        self.assertEqual(make_tensor((2, 2), device=device, dtype=torch.float32).shape, (2, 2))


class TestArithmetic(TestCase):
    @dtypes(torch.float32)
    def test_operations(self, device, dtype):
        a, b = (make_tensor((3, 4), dtype=dtype, device="cpu", low=1, high=3) for _ in range(2))
        x, y = a.to(device), b.to(device)
        self.assertEqual((x + y).cpu(), a + b)
        self.assertEqual((x * y).cpu(), a * b)
        self.assertEqual((x - y).cpu(), a - b)
        self.assertEqual((x / y).cpu(), a / b)


for case in (TestDeviceTransfer, TestDecorators, TestArithmetic):
    instantiate_device_type_tests(case, globals(), only_for=("privateuse1",))
