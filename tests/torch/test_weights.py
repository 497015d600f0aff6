# SPDX-License-Identifier: MIT
"""Layouts of the weights of modules that move to a card, and lookups in weights that a Linear and
an Embedding share."""

import pytest
import torch
from support import DEVICE, assert_same, exact
from torch import nn

DTYPES = [torch.float16, torch.bfloat16, torch.float32]
ROWS, WIDTH = 512, 96


def device_size(tensor):
    return tensor.device_tensor_layout().device_size


class Tied(nn.Module):
    """A table and the product with the same weight, as the ends of a language model."""

    def __init__(self, dtype=torch.float16):
        super().__init__()
        self.table = nn.Embedding(ROWS, WIDTH)
        self.head = nn.Linear(WIDTH, ROWS, bias=False)
        self.head.weight = self.table.weight
        self.table.weight.data = exact(ROWS, WIDTH, dtype=dtype)

    def forward(self, index):
        return self.head(self.table(index))


@pytest.fixture(params=DTYPES)
def tied(request):
    return Tied(request.param).eval().requires_grad_(False)


class TestLayout:
    def test_products_read_them(self):
        layer = nn.Linear(96, 128).eval()
        weight, bias = layer.weight, layer.bias
        expected = weight.detach().clone()
        layer.to(DEVICE)
        assert layer.weight is weight and layer.bias is bias and weight.requires_grad
        assert device_size(weight) == [4, 96, 32]
        assert_same(weight.detach().cpu(), expected)
        place = weight.data_ptr()
        assert layer.to(DEVICE).weight.data_ptr() == place

    def test_others_keep_the_default(self):
        in_training = nn.Linear(96, 128).to(DEVICE)
        few = nn.Linear(96, 10).eval().to(DEVICE)
        table = nn.Embedding(96, 128).eval().to(DEVICE)
        assert device_size(in_training.weight) == [3, 128, 32]
        assert device_size(few.weight) == [3, 10, 32]
        assert device_size(table.weight) == [4, 96, 32]

    def test_memory_on_the_card_stays(self):
        """Another tensor may have the same memory."""
        layer = nn.Linear(96, 128).to(DEVICE)
        alias = layer.weight.detach()
        layer.eval().to(DEVICE)
        assert alias.data_ptr() == layer.weight.data_ptr()
        assert device_size(layer.weight) == [3, 128, 32]

    @pytest.mark.parametrize("dtype", DTYPES)
    @pytest.mark.parametrize("rows", [1, 8, 70])
    def test_results(self, dtype, rows):
        """Those of weights in the default layout, bit for bit."""
        layer = nn.Linear(96, 128).to(dtype)
        x = torch.randn(rows, 96, dtype=dtype).to(DEVICE)
        default = layer.train().to(DEVICE)(x).detach()
        laid_out = layer.cpu().eval().to(DEVICE)
        assert device_size(laid_out.weight)[-2:] == [96, 128 // device_size(laid_out.weight)[0]]
        assert_same(laid_out(x).detach(), default)

    def test_state(self):
        """Copies to and from a state have the numbers of the host."""
        layer = nn.Linear(96, 128).eval()
        state = {name: value.clone() for name, value in layer.state_dict().items()}
        layer.to(DEVICE)
        for name, value in layer.state_dict().items():
            assert_same(value.cpu(), state[name])
        layer.load_state_dict({name: value + 1 for name, value in state.items()})
        assert_same(layer.weight.detach().cpu(), state["weight"] + 1)
        assert_same(layer.cpu().weight.detach(), state["weight"] + 1)


class TestLookup:
    @pytest.mark.parametrize(
        "index", [[[5]], [[0, ROWS - 1, 64]], [[63], [64], [200]], list(range(0, ROWS, 7))]
    )
    def test_rows(self, tied, index):
        """One, some and more rows than it is worth to read tiles for."""
        index = torch.tensor(index)
        expected = tied.table(index)
        tied.to(DEVICE)
        assert tied.head.weight is tied.table.weight
        assert device_size(tied.table.weight)[-2] == WIDTH
        with torch.spyre.no_fallbacks():
            result = tied.table(index.to(DEVICE))
        assert_same(result.cpu(), expected)
        assert_same(tied.table(index.to(DEVICE, torch.int32)).cpu(), expected)

    def test_special_numbers(self):
        tied = Tied().eval().requires_grad_(False)
        tied.table.weight[64:66, :4] = torch.tensor([torch.inf, -torch.inf, torch.nan, -0.0])
        expected = tied.table(torch.tensor([64, 3]))
        assert_same(tied.to(DEVICE).table(torch.tensor([64, 3]).to(DEVICE)).cpu(), expected)

    def test_replayed(self, tied):
        index = torch.tensor([[3, 100]]).to(DEVICE)
        tied.to(DEVICE)
        tied(index)
        graph = torch.accelerator.Graph()
        with torch.Stream(device=DEVICE), graph:
            result = tied(index)
        for new in ([[64, 65]], [[511, 0]]):
            index.copy_(torch.tensor(new))
            graph.replay()
            assert_same(result, tied(index))

    def test_compiled(self, tied):
        index = torch.tensor([[3, 100]]).to(DEVICE)
        tied.to(DEVICE)
        with torch.spyre.no_fallbacks():
            assert_same(torch.compile(tied)(index), tied(index))

    @pytest.mark.parametrize("wrong", [ROWS, -1])
    def test_index_out_of_range(self, tied, wrong):
        tied.to(DEVICE)
        with pytest.raises(RuntimeError, match="0_embedding"):
            tied.table(torch.tensor([1, wrong]).to(DEVICE)).cpu()
        torch.spyre.reset()
        assert_same(tied.table(torch.tensor([1]).to(DEVICE)).cpu(), tied.table.weight[1:2].cpu())
