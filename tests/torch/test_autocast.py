# SPDX-License-Identifier: MIT
"""torch.autocast("spyre")."""

import warnings

import pytest
import torch
from support import DEVICE


def ones(*size, dtype=torch.float32):
    return torch.ones(size, dtype=dtype, device=DEVICE)


class TestAutocast:
    def test_autocast_error_message(self):
        with pytest.warns(UserWarning, match="In spyre autocast, but the target dtype.*not supported"):
            with torch.autocast(device_type=DEVICE, dtype=torch.float32):
                torch.ones(10)

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
    def test_lower_precision(self, dtype):
        assert dtype in torch.spyre.get_amp_supported_dtype()
        with torch.autocast(device_type=DEVICE, dtype=dtype):
            assert torch.mm(ones(2, 3), ones(3, 3)).dtype == dtype
            assert torch.nn.functional.linear(ones(2, 3), ones(3, 3)).dtype == dtype
            assert torch.bmm(ones(1, 2, 3), ones(1, 3, 3)).dtype == dtype

    def test_float32_list(self):
        with torch.autocast(device_type=DEVICE):
            x = ones(2, 64, dtype=torch.float16)
            assert x.softmax(-1).dtype == torch.float32
            assert torch.nn.functional.layer_norm(x, (64,)).dtype == torch.float32

    def test_promotion(self):
        with torch.autocast(device_type=DEVICE, dtype=torch.float16):
            assert torch.cat([ones(2), ones(2, dtype=torch.float16)]).dtype == torch.float32

    def test_autocast_fast_dtype(self):
        assert torch.get_autocast_dtype(device_type=DEVICE) == torch.half
        with torch.autocast(DEVICE, dtype=torch.bfloat16):
            assert torch.is_autocast_enabled(DEVICE)
            assert torch.get_autocast_dtype(DEVICE) == torch.bfloat16
        assert not torch.is_autocast_enabled(DEVICE)

    def test_switched_off_inside(self):
        with torch.autocast(DEVICE), torch.autocast(DEVICE, enabled=False):
            assert torch.mm(ones(2, 3), ones(3, 3)).dtype == torch.float32

    def test_gradients(self):
        model = torch.nn.Linear(8, 4).to(DEVICE)
        with torch.autocast(DEVICE, dtype=torch.float16):
            loss = model(ones(2, 8)).float().sum()
        loss.backward()
        assert model.weight.grad.dtype == torch.float32

    def test_grad_scaler(self):
        model = torch.nn.Linear(8, 4).to(DEVICE)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler(DEVICE)
        before = model.weight.detach().cpu().clone()
        with torch.autocast(DEVICE, dtype=torch.float16):
            loss = model(ones(2, 8)).float().sum()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
        assert not torch.equal(model.weight.cpu(), before)
