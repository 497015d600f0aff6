# SPDX-License-Identifier: MIT
"""Tensors: kernel arguments with their layout, and operands of an SDSC."""
from .formats import FORMATS, HOSTS


class Argument:
    """A kernel argument.

    shape    host shape
    dtype    host dtype, a key of HOSTS; fmt: device format
    order    host axes as they lie on the device outside the stick, inner to outer;
             the stick axis stands for its tile index
    stick    the axis in the lanes; None: one element per stick (sparse)
    padded   {axis: extent on the device} where it is more than the host's
    """

    def __init__(self, shape, dtype="fp16", fmt=None, order=None, stick=-1, padded=None,
                 init="randn", pad="poison"):
        rank = len(shape)
        self.shape, self.dtype, self.init, self.pad = tuple(shape), dtype, init, pad
        self.fmt = fmt or HOSTS[dtype].device
        self.word, self.lanes = FORMATS[self.fmt].word, FORMATS[self.fmt].lanes
        self.stick = stick if stick is None or not rank else stick % rank
        if not rank:
            self.stick = None
        self.order = list(order) if order is not None else self.default_order(rank)
        self.padded = padded or {}
        self.index = None

    @staticmethod
    def default_order(rank):
        """PyTorch's generic stick layout for the order 0, 1, ...: first axis innermost."""
        return list(range(1))[:rank] + list(range(rank - 1, 0, -1))

    def extent(self, axis):
        """Steps of an axis on the device; tiles for the stick axis."""
        n = max(self.padded.get(axis, 0), self.shape[axis])
        return -(-n // self.lanes) if axis == self.stick else n

    def host_stride(self, axis):
        n = 1
        for size in self.shape[axis + 1:]:
            n *= size
        return n

    def device(self):
        """device_size and stride_map."""
        size, stride = [], []
        if self.stick is None:
            size.append(1)
            stride.append(-1)
        for axis in reversed(self.order):
            one = self.shape[axis] == 1
            size.append(self.extent(axis))
            step = self.host_stride(axis) * (self.lanes if axis == self.stick else 1)
            stride.append(-1 if one else step)
        size.append(self.lanes)
        one = self.stick is None or self.shape[self.stick] == 1
        stride.append(-1 if one else self.host_stride(self.stick))
        return size, stride

    def bytes(self):
        n = 128
        for size in self.device()[0][:-1]:
            n *= size
        return n

    def describe(self, name):
        """Its entry in case.json."""
        size, stride = self.device()
        return {"name": name, "arg_index": self.index, "shape": list(self.shape),
                "dtype": self.dtype, "device_dtype": self.fmt, "device_size": size,
                "stride_map": stride, "device_bytes": self.bytes(), "pad": self.pad,
                "init": self.init}

    def operand(self, dims, space, start=None, broadcast=(), lane=None, at=None, loop_stride=None):
        """This argument as an operand of an SDSC.

        dims         iteration dim of each axis (None: the axis has one element here, at start)
        space        {dim: size}, the SDSC's iteration space
        start        {axis: first element}: a slice; a multiple of the lanes for the stick axis
        broadcast    dims that the tensor does not vary along, listed outermost, scale -1
        lane         sparse tensors: the dim that stands for the lanes, scale -2
        at           operand elsewhere than in the argument (Pool, Lx), of the same layout
        loop_stride  {loop: bytes per iteration}
        """
        start = start or {}
        order, gap, scale, offset = [], {}, {}, 0
        step = self.lanes
        for axis in self.order:
            dim, extent = dims[axis], self.extent(axis)
            unit = self.lanes if axis == self.stick else 1
            offset += start.get(axis, 0) // unit * step
            step *= extent
            if dim is None:
                if extent != 1 and order:
                    raise ValueError("an axis left out must be the innermost or of one element")
                continue
            used = -(-space[dim] // unit)
            order.append(dim)
            scale[dim] = 1
            if extent != used:
                gap[dim] = (extent - used) * unit
        stick = dims[self.stick] if self.stick is not None else lane
        if self.stick is None:
            order.append(stick)
            scale[stick] = -2
        for dim in broadcast:
            order.append(dim)
            scale[dim] = -1
        return Operand(at or self, self.fmt, order, stick, scale, gap, offset * self.word,
                       loop_stride)


class Image(Argument):
    """An argument whose host tensor is the device's own image: sticks in their order."""

    def __init__(self, shape, dtype, init="randn"):
        super().__init__(shape, dtype, None, None, -1, None, init)

    def device(self):
        return list(self.shape), [self.host_stride(axis) for axis in range(len(self.shape))]


class Pool:
    """Device memory for intermediates, at a byte offset in the pool."""

    def __init__(self, offset):
        self.offset = offset


class Lx:
    """A core's scratchpad, at a byte address."""

    def __init__(self, address):
        self.address = address


class Operand:
    """The view of a tensor in one SDSC.

    where   Argument, Pool or Lx
    order   dims outside the stick, inner to outer; scale {dim: 1, -1, -2}
    gap     {dim: elements of memory beyond the iteration's extent}
    offset  bytes before the first element; loop_stride {loop: bytes per iteration}
    parts   [(dim, elements)] of a stick from the inside out, where it has several dims
    """

    def __init__(self, where, fmt, order, stick, scale=None, gap=None, offset=0, loop_stride=None,
                 parts=None):
        self.where, self.fmt, self.order, self.stick = where, fmt, list(order), stick
        self.scale = scale or {dim: 1 for dim in order}
        self.gap, self.offset, self.loop_stride = dict(gap or {}), offset, dict(loop_stride or {})
        self.word, self.lanes = FORMATS[fmt].word, FORMATS[fmt].lanes
        self.parts = list(parts or [(stick, self.lanes)])

    def unit(self, dim):
        """Elements of a dim in one stick."""
        n = 1
        for part, size in self.parts:
            n *= size if part == dim else 1
        return n

    @property
    def lx(self):
        return isinstance(self.where, Lx)

    def moved(self, where, offset=0):
        """The same tensor, dense, in another place."""
        return Operand(where, self.fmt, self.order, self.stick, self.scale, None, offset,
                       parts=self.parts)

    def extents(self, space, slices):
        """{dim: steps in memory}, tiles for the stick dim."""
        out = {}
        for dim in self.order:
            unit = self.unit(dim)
            n = 1
            if self.scale[dim] > 0:
                n = space[dim] // (slices[dim] if self.lx else 1)
            out[dim] = -(-n // unit) + self.gap.get(dim, 0) // unit
        return out

    def strides(self, space, slices):
        """{dim: elements per step of memory}."""
        out, step = {}, self.lanes
        for dim, n in self.extents(space, slices).items():
            out[dim] = step
            step *= n
        return out

    def bytes(self, space, slices):
        """Bytes of the whole tensor (of one core's share in LX)."""
        n = 128
        for extent in self.extents(space, slices).values():
            n *= extent
        return n

    def start(self, space, slices, place):
        """Bytes from the base to the share of the core with slice indices @place."""
        if self.lx:
            return self.where.address + self.offset
        strides, at = self.strides(space, slices), 0
        for dim in self.order:
            if self.scale[dim] > 0:
                share = space[dim] // slices[dim]
                at += place[dim] * (share // self.unit(dim)) * strides[dim]
        at = at * 128 // self.lanes + self.offset
        return at + (self.where.offset if isinstance(self.where, Pool) else 0)
