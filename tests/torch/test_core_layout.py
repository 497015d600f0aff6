# SPDX-License-Identifier: MIT
"""SpyreTensorLayout, and tensors with an explicit one."""

import copy
import pickle

import pytest
import torch
import torch_spyre
from torch_spyre import DataFormats, ElementArrangement, SpyreTensorLayout, _C

FP16 = torch.float16

DENSE = [
    ([], [1, 64], [-1, -1]),
    ([120], [2, 64], [64, 1]),
    ([128], [2, 64], [64, 1]),
    ([512, 240], [4, 512, 64], [64, 240, 1]),
    ([512, 256], [4, 512, 64], [64, 256, 1]),
    ([1024, 256], [4, 1024, 64], [64, 256, 1]),
    ([10, 1], [1, 10, 64], [-1, 1, -1]),
    ([512, 8, 240], [8, 4, 512, 64], [240, 64, 1920, 1]),
    ([5, 100, 150], [100, 3, 5, 64], [150, 64, 15000, 1]),
    ([50, 10, 200], [10, 4, 50, 64], [200, 64, 2000, 1]),
]

ORDERED = [
    ([5, 100, 150], [1, 0, 2], [5, 3, 100, 64], [15000, 64, 150, 1]),
    ([512, 256], [1, 0], [8, 256, 64], [16384, 1, 256]),
    ([512, 8, 256], [1, 0, 2], [512, 4, 8, 64], [2048, 64, 256, 1]),
    ([512, 8, 256], [2, 1, 0], [8, 8, 256, 64], [256, 131072, 1, 2048]),
    ([512, 256], [0, 1, -1], [256, 1, 512, 64], [1, -1, 256, -1]),
]


def strides(size):
    return list(torch.empty(size, device="meta").stride())


@pytest.mark.parametrize("size,device_size,stride_map", DENSE)
def test_dense(size, device_size, stride_map):
    layout = SpyreTensorLayout(size, FP16)
    assert layout.device_size == device_size
    assert layout.stride_map == stride_map
    assert layout.device_dtype == DataFormats.SEN169_FP16
    assert layout.element_arrangement == ElementArrangement.STANDARD
    assert torch.empty(size, dtype=FP16, device="spyre").device_tensor_layout() == layout


@pytest.mark.parametrize("size,order,device_size,stride_map", ORDERED)
def test_ordered(size, order, device_size, stride_map):
    layout = SpyreTensorLayout(size, strides(size), FP16, order)
    assert layout.device_size == device_size
    assert layout.stride_map == stride_map


def test_bad_order():
    with pytest.raises(RuntimeError, match="Incompatible host_size and dim_order"):
        SpyreTensorLayout([3, 4], [4, 1], FP16, [0])


def test_text():
    assert str(SpyreTensorLayout([512, 256], FP16)) == (
        "SpyreTensorLayout(device_size=[4, 512, 64], stride_map =[64, 256, 1], "
        "device_dtype=DataFormats.SEN169_FP16)"
    )
    layout = SpyreTensorLayout([1, 64], [64, 1], DataFormats.SEN169_FP16, ElementArrangement.EXX2)
    assert str(layout).endswith(", element_arrangement=ElementArrangement.EXX2)")


def test_equality_and_hash():
    a, b = SpyreTensorLayout([512, 256], FP16), SpyreTensorLayout([512, 256], FP16)
    other = SpyreTensorLayout([512, 256], torch.float32)
    assert a == b and hash(a) == hash(b) and a != other
    assert len({a, b, other}) == 2


def test_pickle():
    layout = SpyreTensorLayout([5, 100, 150], FP16)
    assert pickle.loads(pickle.dumps(layout)) == layout
    assert copy.deepcopy(layout) == layout
    assert layout.__getstate__()[0] == 3
    fields = layout.device_size, layout.stride_map
    for state in (
        (1, fields[0], [1, 2, 0, 2], fields[1], layout.device_dtype),
        (2, *fields, layout.device_dtype),
        (3, *fields, layout.device_dtype, ElementArrangement.STANDARD),
    ):
        old = SpyreTensorLayout.__new__(SpyreTensorLayout)
        old.__setstate__(state)
        assert old == layout
    with pytest.raises(ValueError, match="version"):
        SpyreTensorLayout.__new__(SpyreTensorLayout).__setstate__((4, *fields))


ROUND_TRIPS = [
    ([60], [1, 64], [64, 1]),
    ([240], [4, 64], [64, 1]),
    ([40, 60], [1, 60, 64], [3840, 1, 60]),
    ([40, 60], [1, 40, 64], [64, 60, 1]),
    ([40, 120], [2, 512, 64], [64, 120, 1]),
    ([40, 60], [38, 64], [64, 1]),
    ([60], [1, 60, 64], [64, 1, 1]),
    ([60], [2, 1, 2, 64], [15, 64, 30, 1]),
    ([60], [1, 1, 1, 64], [60, 64, 60, 1]),
    ([4800], [3, 2, 14, 64], [120, 64, 360, 1]),
    ([40, 60], [24, 1, 2, 64], [60, 64, 1440, 1]),
]


@pytest.mark.parametrize("size,device_size,stride_map", ROUND_TRIPS)
def test_round_trip(size, device_size, stride_map):
    host = (torch.arange(torch.Size(size).numel()) % 251).view(size).to(FP16)
    layout = SpyreTensorLayout(device_size, stride_map, DataFormats.SEN169_FP16)
    card = host.to("spyre", device_layout=layout)
    assert card.device_tensor_layout() == layout
    assert torch.equal(card.cpu(), host)
    assert torch.equal(card.clone().cpu(), host)
    assert torch.equal(card[..., 1:].cpu(), host[..., 1:])
    card[..., :1].copy_(torch.full_like(host[..., :1], 3))
    host[..., :1] = 3
    assert torch.equal(card.cpu(), host)


@pytest.mark.parametrize("size,order,device_size,stride_map", ORDERED[:4])
def test_lies_by_its_layout(size, order, device_size, stride_map):
    layout = SpyreTensorLayout(size, strides(size), FP16, order)
    host = (torch.arange(torch.Size(size).numel()) % 509).view(size).to(FP16)
    card = host.to(device_layout=layout)
    flat = torch.Size(device_size).numel()
    run = _C.as_strided_with_layout(card, [flat], [1], 0, SpyreTensorLayout([flat], FP16)).cpu()
    index = (7 % device_size[0], 3 % device_size[1], 5)
    offset = sum(i * s for i, s in zip(index, strides(device_size)))
    if len(device_size) == 3:
        assert run[offset] == host.flatten()[sum(i * s for i, s in zip(index, stride_map))]


def test_empty_with_layout():
    layout = SpyreTensorLayout([40, 60], [60, 1], FP16, [1, 0])
    for card in (
        torch.empty(40, 60, dtype=FP16, device="spyre", device_layout=layout),
        torch.empty((40, 60), dtype=FP16, device_layout=layout),
        _C.empty_with_layout([40, 60], layout, FP16),
        _C.spyre_empty_with_layout([40, 60], [60, 1], FP16, layout),
    ):
        assert card.device_tensor_layout() == layout and card.shape == (40, 60)
    assert torch.empty(3).device_tensor_layout() is None


def test_torch_empty_is_still_torch_empty():
    assert torch.empty(2, 3).shape == (2, 3)
    with torch.device("spyre"):
        assert torch.empty(2, 3).device.type == "spyre"
    scripted = torch.jit.script(_scripted)
    assert scripted().shape == (2, 3)


def _scripted() -> torch.Tensor:
    return torch.empty([2, 3])


def test_require_layout():
    card = torch.randn(40, 60).half().to("spyre")
    same = torch_spyre.require_layout(card, [1, 40, 64], [64, 60, 1])
    assert same is card
    other = torch_spyre.require_layout(card, [1, 60, 64], [3840, 1, 60])
    assert other.device_tensor_layout().device_size == [1, 60, 64]
    assert torch.equal(other.cpu(), card.cpu())


def test_reinterpret():
    card = torch.arange(100.0).to("spyre")
    part = _C.reinterpret_tensor(card, [3, 4], [4, 1], 20)
    assert torch.equal(part.cpu(), torch.arange(20.0, 32.0).view(3, 4))
    whole = torch.arange(128.0).to("spyre")
    layout = SpyreTensorLayout([32], torch.float32)
    part = _C.reinterpret_tensor_with_layout(whole, [32], [1], 64, layout)
    assert torch.equal(part.cpu(), torch.arange(64.0, 96.0))
    with pytest.raises(RuntimeError, match="does not fit"):
        _C.reinterpret_tensor_with_layout(whole, [10**6], [1], 0, SpyreTensorLayout([10**6], FP16))


def test_formats():
    assert _C.get_device_dtype(torch.float16) == DataFormats.SEN169_FP16
    assert _C.get_device_dtype(torch.bool) == DataFormats.SEN169_FP16
    assert _C.get_device_dtype(torch.int64) == DataFormats.IEEE_INT32
    assert _C.get_elem_in_stick(torch.float16) == 64
    assert _C.get_elem_in_stick(torch.float32) == 32
    assert _C.get_elem_in_stick(torch.int8) == 128
    assert _C.get_elem_in_stick(torch.int64) == 32


def test_encode_constant():
    assert _C.encode_constant(2.0**-10, DataFormats.SEN169_FP16) == 0x2A00
    assert _C.encode_constant(18.09375, DataFormats.SEN169_FP16) == 35 << 9 | 67
    assert _C.encode_constant(1.0, DataFormats.IEEE_FP32) == 0x3F800000
    assert _C.encode_constant(-0.0, DataFormats.SEN169_FP16) == 0x8000


def test_downcast_warning():
    _C.set_downcast_warning(True)
    with pytest.warns(UserWarning, match="int64"):
        torch.tensor([1]).to("spyre")
    _C.set_downcast_warning(False)
    assert not _C.get_downcast_warning()
    torch.tensor([2]).to("spyre")
    _C.set_downcast_warning(True)
