# SPDX-License-Identifier: MIT
"""Storages: resized, shared, saved, printed."""

import copy
import io

import pytest
import torch
import torch_spyre  # noqa: F401
from torch_spyre import SpyreTensorLayout


def test_views_share_memory():
    base = torch.arange(200.0).to("spyre")
    base[10:20].copy_(torch.zeros(10))
    assert base.cpu()[10:20].abs().sum() == 0
    assert base[5:].untyped_storage().data_ptr() == base.untyped_storage().data_ptr()
    assert base.detach().data_ptr() == base.data_ptr()


def test_resize():
    card = torch.arange(6.0).view(2, 3).to("spyre")
    card.resize_(3, 2)
    assert torch.equal(card.cpu(), torch.arange(6.0).view(3, 2))
    card.resize_(50, 3)
    assert torch.equal(card.cpu().view(-1)[:6], torch.arange(6.0))
    card.resize_(2)
    assert torch.equal(card.cpu(), torch.arange(2.0))


def test_storage_resize():
    card = torch.arange(6.0).to("spyre")
    card.untyped_storage().resize_(400)
    assert card.untyped_storage().nbytes() == 400
    assert torch.equal(card.cpu(), torch.arange(6.0))
    card.untyped_storage().resize_(0)
    assert card.untyped_storage().nbytes() == 0


def test_set():
    base = torch.arange(100.0).to("spyre")
    other = torch.empty(0, device="spyre")
    other.set_(base.untyped_storage(), 10, (3, 4), (4, 1))
    assert torch.equal(other.cpu(), torch.arange(10.0, 22.0).view(3, 4))
    other.set_(base)
    assert torch.equal(other.cpu(), base.cpu())
    other.set_()
    assert other.numel() == 0
    with pytest.raises(RuntimeError):
        other.set_(torch.arange(3.0).untyped_storage(), 0, (3,), (1,))


def test_storage_of_no_dtype():
    storage = torch.UntypedStorage(600, device="spyre")
    card = torch.empty(0, dtype=torch.float16, device="spyre").set_(storage, 0, (3, 100))
    card.copy_(torch.ones(3, 100))
    assert torch.equal(card.cpu(), torch.ones(3, 100).half())
    flags = torch.empty(0, dtype=torch.bool, device="spyre").set_(
        torch.UntypedStorage(600, device="spyre"), 0, (600,)
    )
    flags.copy_(torch.ones(600))
    assert flags.cpu().all()


def test_storage_on_the_host():
    host = torch.randn(5, 9)
    storage = host.to("spyre").untyped_storage()
    assert storage.device.type == "spyre"
    assert bytes(storage.cpu()) == bytes(host.untyped_storage())


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.bool, torch.int64])
@pytest.mark.parametrize("location", [None, "cpu", "spyre:0"])
def test_save_and_load(dtype, location):
    host = torch.randint(0, 2, (4, 70)).to(dtype)
    data = io.BytesIO()
    torch.save({"a": host.to("spyre"), "b": host.to("spyre")[1:3]}, data)
    data.seek(0)
    loaded = torch.load(data, map_location=location)
    assert loaded["a"].device.type == ("cpu" if location == "cpu" else "spyre")
    assert torch.equal(loaded["a"].cpu(), host)
    assert torch.equal(loaded["b"].cpu(), host[1:3])


def test_load_host_file_to_card():
    data = io.BytesIO()
    host = torch.randn(4, 70)
    torch.save(host, data)
    data.seek(0)
    card = torch.load(data, map_location="spyre")
    assert torch.equal(card.cpu(), host)
    assert card.device_tensor_layout() == SpyreTensorLayout([4, 70], torch.float32)


def test_save_layout():
    host = torch.randn(4, 70).half()
    layout = SpyreTensorLayout([4, 70], [70, 1], torch.float16, [1, 0])
    card = host.to("spyre", device_layout=layout)
    data = io.BytesIO()
    torch.save(card, data)
    data.seek(0)
    loaded = torch.load(data)
    assert loaded.device_tensor_layout() == layout
    assert torch.equal(loaded.cpu(), card.cpu())
    data.seek(0)
    assert torch.equal(torch.load(data, map_location="cpu"), card.cpu())


def test_deepcopy():
    card = torch.randn(4, 70).to("spyre")
    twin = copy.deepcopy(card)
    assert torch.equal(twin.cpu(), card.cpu())
    twin.copy_(torch.zeros(4, 70))
    assert card.cpu().abs().sum() > 0
    module = torch.nn.Linear(3, 5).to("spyre")
    assert torch.equal(copy.deepcopy(module).weight.cpu(), module.weight.cpu())


def test_print():
    assert "device='spyre:0'" in repr(torch.arange(3.0).to("spyre"))
    assert "2.5000" in repr(torch.tensor([1.0, 2.5]).to("spyre"))
    assert repr(torch.randn(3, 4).to("spyre")).count("\n") == 2


def test_dlpack():
    card = torch.arange(70.0).to("spyre")
    twin = torch.from_dlpack(card)
    assert twin.device == card.device
    assert torch.equal(twin.cpu(), card.cpu())
    twin.copy_(torch.zeros(70))
    assert card.cpu().abs().sum() == 0


def test_dlpack_of_a_part():
    host = torch.arange(140.0).view(2, 70)
    card = host.to("spyre")
    part = torch.from_dlpack(card.t()[3:])
    assert torch.equal(part.cpu(), host.t()[3:])
    part += 1
    host.t()[3:].add_(1)
    assert torch.equal(card.cpu(), host)
