# SPDX-License-Identifier: MIT
"""Storages, and their round trips through torch.save, copy and pickle."""

import copy
import io

import pytest
import torch
from support import DEVICE, assert_same, exact


def saved(thing, **options):
    buffer = io.BytesIO()
    torch.save(thing, buffer)
    buffer.seek(0)
    return torch.load(buffer, **options)


class TestStorage:
    def test_rewrapped_storage(self):
        pinned = torch.randn(10).pin_memory()
        rewrapped = torch.tensor((), dtype=torch.float32).set_(
            pinned.untyped_storage()[2:], size=(5,), stride=(1,), storage_offset=0
        )
        assert rewrapped.is_pinned() and rewrapped.data_ptr() != pinned.data_ptr()

    def test_storage_size_is_the_hosts(self):
        """As many elements as the tensor has, however many sticks they take."""
        for dtype in (torch.float16, torch.int64, torch.bool):
            x = torch.empty(4, 4, dtype=dtype, device=DEVICE)
            assert x.storage().size() == 16
            assert x.untyped_storage().nbytes() == 16 * dtype.itemsize

    def test_set(self):
        x, y = exact(3, 4).to(DEVICE), torch.empty(3, 4, dtype=torch.float16, device=DEVICE)
        y.set_(x)
        assert y.data_ptr() == x.data_ptr()
        assert_same(y, exact(3, 4))
        z = torch.empty(0, dtype=torch.float16, device=DEVICE)
        z.set_(x.untyped_storage(), 4, (2, 2), (4, 1))
        assert_same(z, exact(3, 4)[1:, :2])

    def test_storage_to_cpu(self):
        for dtype in (torch.float16, torch.int64, torch.bool):
            host = exact(10, dtype=dtype)
            there = host.to(DEVICE).untyped_storage().cpu()
            assert there.tolist() == host.untyped_storage().tolist()

    def test_deepcopy(self):
        x = exact(5, 7).to(DEVICE)
        view = x.t()[1:]
        same, other = copy.deepcopy([x, view])
        assert same.data_ptr() != x.data_ptr()
        assert_same(same, exact(5, 7))
        assert_same(other, exact(5, 7).t()[1:])


class TestSerialization:
    def test_location_tag(self):
        for device, tag in [("spyre", "spyre:0"), ("spyre:0", "spyre:0"), ("spyre:1", "spyre:1")]:
            storage = torch.UntypedStorage(4, device=torch.device(device))
            assert torch.serialization.location_tag(storage) == tag

    def test_default_restore_location(self):
        storage = torch.empty(4, 4).storage()
        for index in (0, 1):
            there = torch.serialization.default_restore_location(storage, f"spyre:{index}")
            assert there.is_spyre and there.device.index == index

    @pytest.mark.parametrize(
        "dtype",
        [torch.float16, torch.float32, torch.bfloat16, torch.int64, torch.int32, torch.int8]
        + [torch.bool],
    )
    def test_serialization(self, dtype):
        host = exact(5, 70, dtype=dtype)
        loaded = saved(host.to(DEVICE), weights_only=True)
        assert loaded.device == torch.device("spyre", 0)
        assert_same(loaded, host)

    def test_views_share_after_loading(self):
        x = exact(6, 8).to(DEVICE)
        loaded = saved({"x": x, "row": x[2], "t": x.t()})
        assert_same(loaded["row"], exact(6, 8)[2])
        assert_same(loaded["t"], exact(6, 8).t())
        loaded["x"].zero_()
        assert loaded["row"].cpu().eq(0).all() and loaded["t"].cpu().eq(0).all()

    def test_map_location(self):
        x = exact(3, 3).to(DEVICE)
        assert saved(x, map_location="cpu").is_cpu
        assert_same(saved(x, map_location="cpu"), exact(3, 3))
        assert saved(x, map_location="spyre:1").device.index == 1
        assert_same(saved(x, map_location="spyre:1"), exact(3, 3))
        assert_same(saved(exact(3, 3), map_location="spyre"), exact(3, 3))

    def test_layout_is_kept(self):
        """A tensor with an explicit layout keeps it."""
        layout = torch_layout([512, 256], [256, 1], [1, 0])
        x = torch.empty(512, 256, dtype=torch.float16, device=DEVICE, device_layout=layout)
        x.copy_(exact(512, 256))
        loaded = saved(x)
        assert loaded.device_tensor_layout() == layout
        assert_same(loaded, exact(512, 256))
        assert_same(saved(x, map_location="cpu"), exact(512, 256))

    def test_state_dict(self):
        model = torch.nn.Sequential(torch.nn.Linear(10, 20), torch.nn.LayerNorm(20)).to(DEVICE)
        loaded = saved(model.state_dict(), weights_only=True)
        assert list(loaded) == list(model.state_dict())
        for name, value in model.state_dict().items():
            assert_same(loaded[name], value)
        other = torch.nn.Sequential(torch.nn.Linear(10, 20), torch.nn.LayerNorm(20)).to(DEVICE)
        other.load_state_dict(loaded)
        assert_same(other[0].weight, model[0].weight)


class TestBackendMeta:
    def test_fake_tensor(self):
        from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

        with FakeTensorMode() as mode:
            fake = mode.from_tensor(torch.empty(3, 3, device=DEVICE))
        assert isinstance(fake, FakeTensor) and fake.device == torch.device("spyre", 0)


def torch_layout(size, stride, order):
    from torch_spyre._C import SpyreTensorLayout

    return SpyreTensorLayout(size, stride, torch.float16, order)


@pytest.mark.parametrize("use", [
    lambda x, v: v.fill_(2), lambda x, v: v.copy_(torch.ones(1000)), lambda x, v: v.add_(1),
    lambda x, v: x.add_(1), lambda x, v: v + 1, lambda x, v: x.t() + 1, lambda x, v: v[::3].cpu(),
    lambda x, v: x.cpu(), lambda x, v: v.clone(), lambda x, v: v.sum().item(),
], ids=range(10))
def test_tensors_of_a_storage_that_became_smaller_are_refused(use):
    x = torch.ones(4000, device="spyre")
    v = x[3000:]
    x.untyped_storage().resize_(16)
    with pytest.raises(RuntimeError, match="storage of (size )?16"):
        use(x, v)
    x.untyped_storage().resize_(16000)
    assert torch.equal(x[:4].cpu(), torch.ones(4))
