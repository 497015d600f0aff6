# SPDX-License-Identifier: MIT
"""Spyre cards from Python and numpy, over libspyre, without PyTorch.

    import numpy as np, spyre

    x = np.ones((64, 128), np.float16)
    spyre.build("add", [x, x, x], "add.bundle")
    with spyre.Context() as card:
        a, b, total = card.array(x), card.array(x), card.empty(x.shape, x.dtype)
        card.load("add.bundle")(a, b, total)
        print(total.numpy())

Functions raise spyre.Error, with libspyre's text, if a call fails. `spyre.lib` and `spyre.ffi` have
all functions, types and constants of the C library, including those that this module does not wrap.
"""

import operator

import numpy as np

try:
    from ._library import ffi, lib
except ImportError as error:
    # The loader's text names the library, the symbol or the version that it could not find.
    if "undefined symbol" in str(error) or "version `" in str(error):
        _remedy = ("libspyre.so.0 is older than this package: install both from one version, or name the "
                   "folder of the newer one in LD_LIBRARY_PATH")
    else:
        _remedy = ("install it (docs/install.md), run ldconfig, or name the folder of libspyre.so.0 in "
                   "LD_LIBRARY_PATH")
    raise ImportError(f"cannot load libspyre: {error}; {_remedy}") from error

# The version of the headers that the binding was built with; version() is that of the library in use.
__version__ = f"{lib.SPYRE_VERSION_MAJOR}.{lib.SPYRE_VERSION_MINOR}.{lib.SPYRE_VERSION_PATCH}"

_FORMATS = {
    "float16": lib.SPYRE_FORMAT_IEEE_FP16, "float32": lib.SPYRE_FORMAT_IEEE_FP32,
    "bfloat16": lib.SPYRE_FORMAT_BFLOAT16, "int8": lib.SPYRE_FORMAT_SENINT8,
    "uint8": lib.SPYRE_FORMAT_UINT8, "int32": lib.SPYRE_FORMAT_IEEE_INT32,
    "int64": lib.SPYRE_FORMAT_IEEE_INT64, "bool": lib.SPYRE_FORMAT_BOOL,
}


def _text(pointer):
    """Returns a C string as str."""
    return ffi.string(pointer).decode("utf-8", "replace")


class Error(RuntimeError):
    """A call of libspyre failed. `status` is the spyre_status."""

    def __init__(self, status):
        self.status = status
        super().__init__(f"{_text(lib.spyre_status_name(status))}: {_text(lib.spyre_last_error())}")


def _check(status):
    """Raises Error unless a call succeeded."""
    if status != lib.SPYRE_SUCCESS:
        raise Error(status)


def _new(kind, function, *args):
    """Calls a function that returns an object through its last argument."""
    result = ffi.new(kind + " *")
    _check(function(*args, result))
    return result[0]


def _read(kind, function, owner):
    """Calls a function that fills a struct; returns it as a dict, texts as str."""
    value = ffi.new(kind + " *")
    value.struct_size = ffi.sizeof(kind)
    _check(function(owner, value))
    items = {name: getattr(value, name) for name, _ in ffi.typeof(kind).fields[1:]}
    return {name: _text(item) if isinstance(item, ffi.CData) else item for name, item in items.items()}


def _format(dtype):
    """Returns the spyre_format of a numpy dtype; TypeError if the card has none."""
    name = np.dtype(dtype).name
    if name not in _FORMATS:
        raise TypeError(f"cannot use dtype {name} on a card: it has {', '.join(_FORMATS)}")
    return _FORMATS[name]


def _require(value, kind, name):
    """Returns @value, an argument called @name; TypeError unless it is of this type."""
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        raise TypeError(f"{name} is of type {type(value).__name__}: pass "
                        f"{' or '.join(k.__name__ for k in kinds)}")
    return value


def _integer(value, name):
    """Returns @value, an argument called @name, as int; TypeError unless it is an integer."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is of type {type(value).__name__}: pass int") from None


def _shape(shape):
    """Returns a shape, an int or an iterable of ints, as a tuple."""
    sizes = shape if hasattr(shape, "__iter__") else (shape,)
    return tuple(_integer(size, f"size {i} of the shape") for i, size in enumerate(sizes))


def _operand(shape, dtype):
    """Returns the spyre_sdsc_operand of a tensor: its shape and its layout in device memory."""
    operand = ffi.new("spyre_sdsc_operand *")
    if len(shape) > len(operand.size):
        raise ValueError(f"cannot use a tensor of {len(shape)} dimensions: a card takes up to "
                         f"{len(operand.size)}")
    operand.rank = len(shape)
    operand.size[0:len(shape)] = shape
    _check(lib.spyre_layout_init(ffi.addressof(operand, "layout"), len(shape), operand.size,
                                 _format(dtype)))
    return operand


def version():
    """Returns the version of the library as (major, minor, patch)."""
    number = lib.spyre_version()
    return number >> 16, number >> 8 & 255, number & 255


def device_count():
    """Returns the number of cards that this process can see."""
    return _new("int", lib.spyre_device_count)


def operations():
    """Returns the names of the operations that build() and Graph.op() accept."""
    names, table = [], lib.spyre_sdsc_operations()
    while table[len(names)] != ffi.NULL:
        names.append(_text(table[len(names)]))
    return names


def build(op, operands, directory, cores=0):
    """Writes the SDSC bundle of one operation.

    operands: inputs, then the output; only their `shape` and `dtype` are used.
    directory: where the bundle is written; created if it does not exist.
    cores: number of cores to divide the operation over; 0 lets the planner choose.
    """
    _require(op, str, "op")
    cores = _integer(cores, "cores")
    for i, operand in enumerate(operands):
        if not (hasattr(operand, "shape") and hasattr(operand, "dtype")):
            raise TypeError(f"operand {i} is of type {type(operand).__name__}: pass an array, or an "
                            "object with shape and dtype")
    structs = [_operand(operand.shape, operand.dtype) for operand in operands]
    array = ffi.new("spyre_sdsc_operand[]", [struct[0] for struct in structs])
    _check(lib.spyre_sdsc_build(op.encode(), array, len(structs), cores, str(directory).encode()))


class Context:
    """One card, opened by this process until close(), the end of a `with` block or the last
    reference, which arrays and kernels hold as well."""

    def __init__(self, index=0):
        self._pointer = None
        self.index = _integer(index, "index")
        self._pointer = ffi.gc(_new("spyre_context *", lib.spyre_context_create, self.index, 0),
                               lib.spyre_context_destroy)
        self._stream = _new("spyre_stream *", lib.spyre_stream_get, self._pointer, 0)

    def __repr__(self):
        return f"spyre.Context(index={self.index}{', closed' if self._pointer is None else ''})"

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.close()

    @property
    def pointer(self):
        """The spyre_context, for functions of `spyre.lib`."""
        if self._pointer is None:
            raise ValueError("cannot use this context: it is closed")
        return self._pointer

    @property
    def stream(self):
        """The spyre_stream, number 0, that copies and kernels of this module use."""
        return self.pointer and self._stream

    def close(self):
        """Closes the card and frees its memory. Its arrays and kernels can no longer be used."""
        pointer, self._pointer = self._pointer, None
        if pointer is not None:
            ffi.gc(pointer, None)
            _check(lib.spyre_context_destroy(pointer))

    def properties(self):
        """Returns name, UUID, number of cores, sizes in bytes and clock in kHz, as a dict."""
        return _read("spyre_device_properties", lib.spyre_context_get_properties, self.pointer)

    def memory(self):
        """Returns device memory in bytes, as a dict: total, free, used, context_used, ..."""
        return _read("spyre_memory_info", lib.spyre_mem_info, self.pointer)

    def empty(self, shape, dtype=np.float16):
        """Returns an Array of this shape, an int or a tuple, whose contents are not initialised."""
        return Array(self, shape, dtype)

    def array(self, values):
        """Returns an Array with a copy of a numpy array."""
        values = np.asarray(values)
        array = Array(self, values.shape, values.dtype)
        array.write(values)
        return array

    def load(self, directory):
        """Compiles a bundle, or loads its compiled form from the cache; returns a Kernel."""
        return Kernel(self, _new("spyre_kernel *", lib.spyre_kernel_load, self.pointer,
                                 str(directory).encode()))

    def synchronize(self):
        """Waits until all queued work has finished; raises Error if any of it failed."""
        _check(lib.spyre_context_synchronize(self.pointer))


class Array:
    """A tensor in device memory, at `address`, which is freed with its last reference."""

    def __init__(self, context, shape, dtype):
        self.address = None
        self.context = _require(context, Context, "context")
        # The card takes elements in the order of this host, into which numpy converts others.
        self.shape, self.dtype = _shape(shape), np.dtype(dtype).newbyteorder("=")
        self.operand = _operand(self.shape, dtype)
        self.layout = ffi.addressof(self.operand, "layout")
        self.address = _new("spyre_devptr", lib.spyre_mem_alloc, context.pointer,
                            lib.spyre_layout_bytes(self.layout))

    def __del__(self):
        if self.address is not None and self.context._pointer is not None:
            lib.spyre_mem_free(self.context._pointer, self.address)

    def __repr__(self):
        return f"spyre.Array(shape={self.shape}, dtype={self.dtype}, address={self.address:#x})"

    def __array__(self, dtype=None, copy=None):
        """Returns numpy(), for np.asarray() and numpy's functions."""
        if copy is False:
            raise ValueError("cannot make a numpy array without a copy: the values are on the card")
        return self.numpy() if dtype is None else self.numpy().astype(dtype, copy=False)

    def _tensor(self, values):
        """Returns a spyre_host_tensor of @values, which must outlive it."""
        tensor = ffi.new("spyre_host_tensor *")
        _check(lib.spyre_host_tensor_dense(tensor, ffi.cast("void *", values.ctypes.data),
                                           _format(self.dtype), len(self.shape), self.operand.size))
        return tensor

    def write(self, values):
        """Copies a numpy array of the same shape to the card, converted to this array's dtype."""
        values = np.ascontiguousarray(values, self.dtype).reshape(np.shape(values))
        if values.shape != self.shape:
            raise ValueError(f"cannot write shape {values.shape}: the array has {self.shape}")
        _check(lib.spyre_copy_h2d(self.context.pointer, self.address, self.layout,
                                  self._tensor(values)))

    def numpy(self):
        """Returns a copy as a numpy array, after waiting for work that was queued before."""
        values = np.empty(self.shape, self.dtype)
        _check(lib.spyre_stream_synchronize(self.context.stream))
        _check(lib.spyre_copy_d2h(self.context.pointer, self._tensor(values), self.address,
                                  self.layout))
        return values


class Kernel:
    """A compiled bundle. Calling it with Arrays, inputs first, queues one run."""

    def __init__(self, context, pointer):
        self.context = context
        self._pointer = pointer

    def __del__(self):
        if self.context._pointer is not None:
            lib.spyre_kernel_unload(self._pointer)

    def __repr__(self):
        if self.context._pointer is None:
            return "spyre.Kernel(context closed)"
        info = self.info()
        return f"spyre.Kernel(num_args={info['num_args']}, num_cores={info['num_cores']})"

    def info(self):
        """Returns number of arguments, cores, bytes and modelled cycles, as a dict."""
        return _read("spyre_kernel_info", lib.spyre_kernel_get_info,
                     self.context.pointer and self._pointer)

    def __call__(self, *arrays):
        for i, array in enumerate(arrays):
            if _require(array, Array, f"argument {i}").context is not self.context:
                raise ValueError(f"argument {i} is of another context: copy it with array.numpy()")
        args = ffi.new("spyre_arg[]", [(array.address, array.layout) for array in arrays])
        _check(lib.spyre_launch(self.context.stream, self._pointer, args, len(arrays)))


class Graph:
    """Operations that become one kernel. Tensors are numbers, in the order of their creation."""

    def __init__(self):
        self._pointer = ffi.gc(_new("spyre_sdsc_graph *", lib.spyre_sdsc_graph_create),
                               lib.spyre_sdsc_graph_destroy)

    def argument(self, shape, dtype=np.float16):
        """A tensor that the kernel's caller provides; returns its number."""
        return _new("uint32_t", lib.spyre_sdsc_graph_add_argument, self._pointer,
                    _operand(_shape(shape), dtype))

    def op(self, name, *inputs, out=None, **attributes):
        """Adds an operation that writes to the argument `out` or a new tensor; returns its number."""
        _require(name, str, "name")
        tensor = ffi.new("uint32_t *", lib.SPYRE_SDSC_NEW if out is None else _integer(out, "out"))
        inputs = [_integer(number, f"input {i}") for i, number in enumerate(inputs)]
        for key, value in attributes.items():
            _require(value, (int, float, np.number), f"attribute {key}")
        names = [ffi.new("char[]", key.encode()) for key in attributes]
        values = ffi.new("spyre_sdsc_attribute[]", list(zip(names, attributes.values())))
        _check(lib.spyre_sdsc_graph_add_op(self._pointer, name.encode(), values, len(names),
                                           ffi.new("uint32_t[]", inputs), len(inputs), tensor))
        return tensor[0]

    def load(self, context, cores=0):
        """Plans and compiles the graph; returns a Kernel, whose arguments are the graph's."""
        _require(context, Context, "context")
        cores = _integer(cores, "cores")
        return Kernel(context, _new("spyre_kernel *", lib.spyre_sdsc_graph_load, context.pointer,
                                    self._pointer, cores))
