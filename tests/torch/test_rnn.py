# SPDX-License-Identifier: MIT
"""Recurrent modules: composed of the card's products and functions."""

import pytest
import torch
from support import DEVICE, assert_near


class TestRNN:
    @pytest.mark.parametrize("kind", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
    @pytest.mark.parametrize("options", [{}, {"num_layers": 2}, {"bidirectional": True}], ids=str)
    def test_forward(self, kind, options):
        torch.manual_seed(0)
        module = kind(10, 20, batch_first=True, **options).eval()
        x = torch.randn(3, 5, 10)
        expected, _ = module(x)
        actual, _ = module.to(DEVICE)(x.to(DEVICE))
        assert actual.device.type == DEVICE
        assert_near(actual, expected, steps=0.05, atol=1e-5)

    @pytest.mark.parametrize("kind", [torch.nn.LSTMCell, torch.nn.GRUCell, torch.nn.RNNCell])
    def test_cells(self, kind):
        torch.manual_seed(0)
        cell, x = kind(10, 20), torch.randn(3, 10)
        expected = cell(x)
        actual = cell.to(DEVICE)(x.to(DEVICE))
        for have, want in zip(
            actual if isinstance(actual, tuple) else [actual],
            expected if isinstance(expected, tuple) else [expected],
        ):
            assert_near(have, want, steps=0.05, atol=1e-5)

    @pytest.mark.parametrize("kind", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
    @pytest.mark.parametrize("bias", [True, False])
    def test_backward(self, kind, bias):
        torch.manual_seed(0)
        module, x = kind(6, 8, bias=bias), torch.randn(4, 2, 6)
        module(x)[0].sum().backward()
        expected = [p.grad.clone() for p in module.parameters()]
        module.zero_grad()
        module.to(DEVICE)
        module(x.to(DEVICE))[0].sum().backward()
        for parameter, want in zip(module.parameters(), expected):
            assert_near(parameter.grad, want, steps=0.1, atol=1e-3)
