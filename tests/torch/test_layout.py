# SPDX-License-Identifier: MIT
"""SpyreTensorLayout: every vector of the public documentation, its text, equality, pickle.

The tables say "host size: device size / stride map". Where the public sources have
two answers, the tile stride of a single padded tile may be clamped to the host's
extent: such a pair describes the same bytes, as that dimension has one step.
"""

import copy
import pickle

import pytest
import torch
from support import DEVICE, assert_same, exact

from torch_spyre._C import DataFormats, SpyreTensorLayout

HALF = torch.float16

# host size, dim_order or None, dtype, device size, stride map, clamped stride map or None
CONSTRUCTED = [
    ([], None, HALF, [1, 64], [-1, -1], None),
    ([120], None, HALF, [2, 64], [64, 1], None),
    ([128], None, HALF, [2, 64], [64, 1], None),
    ([1], None, HALF, [1, 64], [-1, -1], None),
    ([33], None, HALF, [1, 64], [64, 1], [33, 1]),
    ([131072], None, HALF, [2048, 64], [64, 1], None),
    ([512, 240], None, HALF, [4, 512, 64], [64, 240, 1], None),
    ([512, 256], None, HALF, [4, 512, 64], [64, 256, 1], None),
    ([1024, 256], None, HALF, [4, 1024, 64], [64, 256, 1], None),
    ([4, 128], None, HALF, [2, 4, 64], [64, 128, 1], None),
    ([40, 60], None, HALF, [1, 40, 64], [64, 60, 1], [60, 60, 1]),
    ([1, 60], None, HALF, [1, 1, 64], [64, -1, 1], [60, -1, 1]),
    ([10, 1], None, HALF, [1, 10, 64], [-1, 1, -1], None),
    ([512, 8, 240], None, HALF, [8, 4, 512, 64], [240, 64, 1920, 1], None),
    ([512, 8, 256], None, HALF, [8, 4, 512, 64], [256, 64, 2048, 1], None),
    ([5, 100, 150], None, HALF, [100, 3, 5, 64], [150, 64, 15000, 1], None),
    ([5, 100, 150], [1, 0, 2], HALF, [5, 3, 100, 64], [15000, 64, 150, 1], None),
    ([128, 256, 512], None, HALF, [256, 8, 128, 64], [512, 64, 131072, 1], None),
    ([50, 10, 200], None, HALF, [10, 4, 50, 64], [200, 64, 2000, 1], None),
    ([5, 10, 200], None, HALF, [10, 4, 5, 64], [200, 64, 2000, 1], None),
    ([2, 3, 5, 7], None, HALF, [3, 5, 1, 2, 64], [35, 7, 64, 105, 1], [35, 7, 7, 105, 1]),
    ([2, 3, 4, 5, 130], None, HALF, [3, 4, 5, 3, 2, 64], [2600, 650, 130, 64, 7800, 1], None),
    ([1, 8, 128, 64], None, HALF, [8, 128, 1, 1, 64], [8192, 64, 64, -1, 1], None),
    ([1, 64, 32, 32], None, HALF, [64, 32, 1, 1, 64], [1024, 32, 64, -1, 1], [1024, 32, 32, -1, 1]),
    ([1, 64, 32, 32], [0, 2, 3, 1], HALF, [32, 32, 1, 1, 64], [32, 1, 65536, -1, 1024], None),
    ([512, 256], [1, 0], HALF, [8, 256, 64], [16384, 1, 256], None),
    (
        [512, 8, 256],
        [0, 2, 1],
        HALF,
        [256, 1, 512, 64],
        [1, 16384, 2048, 256],
        [1, 2048, 2048, 256],
    ),
    ([512, 8, 256], [1, 0, 2], HALF, [512, 4, 8, 64], [2048, 64, 256, 1], None),
    ([512, 8, 256], [1, 2, 0], HALF, [256, 8, 8, 64], [1, 131072, 256, 2048], None),
    (
        [512, 8, 256],
        [2, 0, 1],
        HALF,
        [512, 1, 256, 64],
        [2048, 16384, 1, 256],
        [2048, 2048, 1, 256],
    ),
    ([512, 8, 256], [2, 1, 0], HALF, [8, 8, 256, 64], [256, 131072, 1, 2048], None),
    ([512, 256], [0, 1, -1], HALF, [256, 1, 512, 64], [1, -1, 256, -1], None),
    ([512, 256], None, torch.float32, [8, 512, 32], [32, 256, 1], None),
    ([512, 256], None, torch.int8, [2, 512, 128], [128, 256, 1], None),
]

FORMATS = [
    (torch.float16, "SEN169_FP16", 64),
    (torch.float32, "IEEE_FP32", 32),
    (torch.bfloat16, "BFLOAT16", 64),
    (torch.bool, "SEN169_FP16", 64),
    (torch.int8, "SENINT8", 128),
    (torch.int16, "SENINT16", 64),
    (torch.int32, "IEEE_INT32", 32),
    (torch.int64, "IEEE_INT32", 32),
    (torch.uint8, "SENUINT32", 32),
    (torch.float8_e4m3fn, "SEN143_FP8", 128),
    (torch.float8_e5m2fnuz, "SEN152_FP8", 128),
]

ROUND_TRIP = [
    # plain
    ([60], [1], [1, 64], [64, 1]),
    ([64], [1], [1, 64], [64, 1]),
    ([120], [1], [2, 64], [64, 1]),
    ([128], [1], [2, 64], [64, 1]),
    ([240], [1], [4, 64], [64, 1]),
    ([256], [1], [4, 64], [64, 1]),
    ([512, 512], [512, 1], [8, 512, 64], [64, 512, 1]),
    # folding: rows end within sticks
    ([40, 60], [60, 1], [38, 64], [64, 1]),
    # leading dimensions of one
    ([60], [1], [1, 1, 64], [64, 60, 1]),
    ([60], [1], [1, 1, 1, 64], [60, 64, 60, 1]),
    ([60], [1], [1, 1, 1, 1, 64], [60, 60, 64, 60, 1]),
    ([60], [1], [1, 1, 1, 1, 1, 64], [60, 60, 60, 64, 60, 1]),
    # trailing ones: one element per stick
    ([60], [1], [1, 60, 64], [64, 1, 1]),
    ([60], [1], [1, 1, 60, 64], [1, 64, 1, 1]),
    ([60], [1], [1, 1, 1, 60, 64], [1, 1, 64, 1, 1]),
    ([60], [1], [1, 1, 1, 1, 60, 64], [1, 1, 1, 64, 1, 1]),
    # viewing
    ([60], [1], [1, 2, 64], [64, 30, 1]),
    ([60], [1], [2, 1, 2, 64], [15, 64, 30, 1]),
    ([60], [1], [2, 1, 1, 2, 64], [15, 15, 64, 30, 1]),
    ([60], [1], [1, 2, 1, 2, 64], [30, 15, 64, 30, 1]),
    ([60], [1], [2, 2, 1, 1, 64], [30, 15, 64, 60, 1]),
    ([60], [1], [2, 1, 1, 1, 2, 64], [15, 15, 15, 64, 30, 1]),
    ([60], [1], [1, 2, 1, 1, 2, 64], [30, 15, 15, 64, 30, 1]),
    ([60], [1], [1, 1, 2, 1, 2, 64], [30, 30, 15, 64, 30, 1]),
    ([60], [1], [2, 2, 1, 1, 1, 64], [30, 15, 15, 64, 60, 1]),
    ([60], [1], [2, 1, 2, 1, 1, 64], [30, 30, 15, 64, 60, 1]),
    ([60], [1], [1, 2, 2, 1, 1, 64], [60, 30, 15, 64, 60, 1]),
    # tiling
    ([4800], [1], [3, 2, 14, 64], [120, 64, 360, 1]),
    ([40, 60], [60, 1], [24, 1, 2, 64], [60, 64, 1440, 1]),
    ([40, 60], [60, 1], [2, 12, 1, 2, 64], [720, 60, 64, 1200, 1]),
    ([40, 60], [60, 1], [2, 6, 2, 1, 2, 64], [720, 120, 60, 64, 1200, 1]),
    ([40, 60], [60, 1], [3, 4, 3, 1, 2, 64], [600, 180, 60, 64, 1800, 1]),
    # permuted host
    ([40, 60], [1, 40], [1, 40, 64], [2560, 1, 40]),
    ([40, 60], [1, 40], [1, 60, 64], [64, 40, 1]),
    # a matrix moved as the line that it is
    ([512, 256], [256, 1], [2048, 64], [64, 1]),
    ([512, 256, 1], [256, 1, 1], [256, 1, 512, 64], [1, -1, 256, -1]),
    # depthwise convolution: input and weight
    ([1, 64, 32, 32], [65536, 1024, 32, 1], [32, 32, 1, 1, 64], [1, 32, -1, 65536, 1024]),
    ([64, 1, 3, 3], [9, 9, 3, 1], [3, 3, 1, 1, 64], [1, 3, -1, 9, 9]),
]
for columns in (60, 64, 120, 128, 240, 256):
    tiles = -(-columns // 64)
    for rows, steps in ((40, columns), (512, 512)):
        across = [1, steps, 64], [64 * columns, 1, columns]
        along = [tiles, rows, 64], [64, columns, 1]
        ROUND_TRIP += [([40, columns], [columns, 1], *way) for way in (across, along)]


def name(value):
    return str(value).replace(" ", "")


def strides(size):
    result = [1] * len(size)
    for d in range(len(size) - 1, 0, -1):
        result[d - 1] = result[d] * size[d]
    return result


def explicit(device_size, stride_map, device_format=DataFormats.SEN169_FP16):
    return SpyreTensorLayout(device_size, stride_map, device_format)


class TestConstructors:
    @pytest.mark.parametrize("size, order, dtype, device_size, stride_map, clamped", CONSTRUCTED, ids=name)
    def test_vectors(self, size, order, dtype, device_size, stride_map, clamped):
        if order is None:
            layout = SpyreTensorLayout(size, dtype)
            again = SpyreTensorLayout(size, strides(size), dtype, list(range(len(size))))
            assert again == layout
        else:
            layout = SpyreTensorLayout(size, strides(size), dtype, order)
        assert list(layout.device_size) == device_size
        assert list(layout.stride_map) in (stride_map, clamped)

    @pytest.mark.parametrize("dtype, device_format, lanes", FORMATS, ids=name)
    def test_formats(self, dtype, device_format, lanes):
        layout = SpyreTensorLayout([3, 200], dtype)
        assert layout.device_dtype == getattr(DataFormats, device_format)
        assert list(layout.device_size) == [-(-200 // lanes), 3, lanes]
        assert layout.elems_per_stick() == lanes

    @pytest.mark.parametrize("dtype", [torch.float64, torch.complex64, torch.complex128], ids=name)
    def test_unsupported_formats(self, dtype):
        with pytest.raises((RuntimeError, TypeError), match="float32|real and imaginary"):
            SpyreTensorLayout([3], dtype)

    @pytest.mark.parametrize("order", [[0], [0, 1, 2], [0, 1, -1, -1], []], ids=name)
    def test_incompatible_dim_order(self, order):
        with pytest.raises(RuntimeError, match="Incompatible host_size and dim_order"):
            SpyreTensorLayout([512, 256], [256, 1], HALF, order)

    def test_explicit_is_taken_as_it_is(self):
        layout = explicit([1, 512, 64], [64, 0, 1])
        assert list(layout.device_size) == [1, 512, 64]
        assert list(layout.stride_map) == [64, 0, 1]


class TestObject:
    def test_string(self):
        assert str(SpyreTensorLayout([512, 256], HALF)) == (
            "SpyreTensorLayout(device_size=[4, 512, 64], stride_map =[64, 256, 1], "
            "device_dtype=DataFormats.SEN169_FP16)"
        )

    def test_equality_and_hash(self):
        a, b = SpyreTensorLayout([512, 256], HALF), SpyreTensorLayout([512, 256], HALF)
        assert a == b and hash(a) == hash(b) and len({a, b}) == 1
        assert a != SpyreTensorLayout([512, 256], torch.bfloat16)
        assert a != SpyreTensorLayout([512, 255], HALF)
        assert a == explicit([4, 512, 64], [64, 256, 1])
        assert a != 3

    def test_pickle(self):
        layout = SpyreTensorLayout([512, 256], HALF)
        assert pickle.loads(pickle.dumps(layout)) == layout
        assert copy.deepcopy(layout) == layout and copy.copy(layout) == layout

    def test_wrong_pickle(self):
        layout = SpyreTensorLayout.__new__(SpyreTensorLayout)
        with pytest.raises((RuntimeError, TypeError, ValueError)):
            layout.__setstate__((99, "nonsense"))


class TestRoundTrip:
    """To the card in an explicit layout and back: the same host tensor."""

    @pytest.mark.parametrize("size, stride, device_size, stride_map", ROUND_TRIP, ids=name)
    def test_round_trip(self, size, stride, device_size, stride_map):
        host = torch.empty_strided(size, stride, dtype=HALF).copy_(exact(*size))
        layout = explicit(device_size, stride_map)
        device = torch.empty_strided(size, stride, dtype=HALF, device=DEVICE)
        assert_same(device.copy_(host), host)
        if stride != strides(size):
            pytest.skip("an empty tensor of a layout is dense")
        device = torch.empty(size, dtype=HALF, device=DEVICE, device_layout=layout)
        device.copy_(host)
        assert device.device_tensor_layout() == layout
        assert_same(device, host)

    def test_expanded_layout(self):
        """512 identical copies on the card: whichever is read holds the numbers."""
        layout = explicit([1, 512, 64], [64, 0, 1])
        device = torch.empty([60], dtype=HALF, device=DEVICE, device_layout=layout)
        assert_same(device.copy_(exact(60)), exact(60))

    @pytest.mark.parametrize("n", [120, 128, 240, 256, 480, 512])
    def test_upper_half(self, n):
        host = exact(n)
        assert_same(host[n // 2 :].to(DEVICE), host[n // 2 :])
        assert_same(host.to(DEVICE)[n // 2 :], host[n // 2 :])

    def test_lower_rows(self):
        assert_same(exact(512, 256)[256:, :].to(DEVICE), exact(512, 256)[256:, :])

    @pytest.mark.parametrize("size, order, dtype, device_size, stride_map, clamped", CONSTRUCTED, ids=name)
    def test_constructed(self, size, order, dtype, device_size, stride_map, clamped):
        if sum(size) > 2000 and len(size) > 2:
            size = [min(extent, 70) for extent in size]
        order = order or list(range(len(size)))
        layout = SpyreTensorLayout(size, strides(size), dtype, order)
        device = torch.empty(size, dtype=dtype, device=DEVICE, device_layout=layout)
        host = exact(*size, dtype=dtype)
        assert_same(device.copy_(host), host)


class TestTensors:
    def test_default_layout(self):
        layout = exact(512, 256).to(DEVICE).device_tensor_layout()
        assert layout == SpyreTensorLayout([512, 256], HALF)

    def test_to_device_layout(self):
        layout = SpyreTensorLayout([512, 256], [256, 1], HALF, [1, 0])
        device = exact(512, 256).to(DEVICE, device_layout=layout)
        assert device.device_tensor_layout() == layout
        assert_same(device, exact(512, 256))

    def test_operations_on_other_layouts(self):
        layout = SpyreTensorLayout([128, 192], [192, 1], HALF, [1, 0])
        a, b = exact(128, 192, seed=1), exact(128, 192, seed=2)
        plain = (a.to(DEVICE) * b.to(DEVICE)).cpu()
        assert_same(a.to(DEVICE, device_layout=layout) * b.to(DEVICE), plain)
        product = (a.to(DEVICE) @ b.t().contiguous().to(DEVICE)).cpu()
        assert_same(a.to(DEVICE, device_layout=layout) @ b.t().contiguous().to(DEVICE), product)

    def test_layout_that_does_not_hold_the_tensor(self):
        layout = explicit([1, 64], [64, 1])
        with pytest.raises(RuntimeError, match="(?i)layout"):
            torch.empty([512, 256], dtype=HALF, device=DEVICE, device_layout=layout).copy_(
                exact(512, 256)
            )

    def test_cpu_tensor_has_no_layout(self):
        assert exact(3).device_tensor_layout() is None

    def test_empty_with_layout(self):
        from torch_spyre._C import spyre_empty_with_layout

        layout = SpyreTensorLayout([40, 60], HALF)
        x = spyre_empty_with_layout([40, 60], [60, 1], HALF, layout)
        assert x.shape == (40, 60) and x.device_tensor_layout() == layout
        assert_same(x.copy_(exact(40, 60)), exact(40, 60))
