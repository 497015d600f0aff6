# SPDX-License-Identifier: MIT
"""libspyre's public API for tests in Python: many bundles in one process.

The card is that of the environment: SPYRE_BACKEND, SPYRE_UNIT, SPYRE_EMBEDDED_THREADS.
"""
import ctypes as c
import os
import subprocess

import numpy as np

MAX_RANK, MAX_DEVICE_RANK = 7, 8


class Layout(c.Structure):
    _fields_ = [("struct_size", c.c_uint32), ("device_rank", c.c_uint32),
                ("device_size", c.c_int64 * MAX_DEVICE_RANK),
                ("stride_map", c.c_int64 * MAX_DEVICE_RANK),
                ("device_format", c.c_int), ("arrangement", c.c_int),
                ("mapped", c.c_bool), ("dim_map", c.c_int8 * MAX_DEVICE_RANK)]


class HostTensor(c.Structure):
    _fields_ = [("data", c.c_void_p), ("format", c.c_int), ("rank", c.c_uint32),
                ("size", c.c_int64 * MAX_RANK), ("stride", c.c_int64 * MAX_RANK),
                ("storage_offset", c.c_int64)]


class LaunchArg(c.Structure):
    _fields_ = [("address", c.c_uint64), ("layout", c.POINTER(Layout)),
                ("host", c.POINTER(HostTensor))]


class Binding(c.Structure):
    _fields_ = [("symbol", c.c_char_p), ("value", c.c_int64)]


class LaunchParams(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("args", c.POINTER(LaunchArg)),
                ("num_args", c.c_uint32), ("num_bindings", c.c_uint32),
                ("bindings", c.POINTER(Binding))]


class KernelOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("cores", c.c_uint32), ("lx_kept", c.c_uint32)]


class CardError(Exception):
    """A status of the library with its text; status is the number."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


def library(build):
    """The shared library of a build directory."""
    return os.path.join(build, "libspyre", ".libs", "libspyre.so")


class Card:
    def __init__(self, path, index=0):
        self.lib = c.CDLL(path)
        self.lib.spyre_last_error.restype = c.c_char_p
        self.lib.spyre_layout_bytes.restype = c.c_uint64
        self.context, self.stream = c.c_void_p(), c.c_void_p()
        self.call("spyre_context_create", index, 0, c.byref(self.context))
        self.call("spyre_stream_get", self.context, 0, c.byref(self.stream))

    def close(self):
        self.call("spyre_context_destroy", self.context)

    def call(self, name, *args):
        status = getattr(self.lib, name)(*args)
        if status:
            text = self.lib.spyre_last_error()
            raise CardError(status, text.decode() if text else "%s: status %d" % (name, status))

    def format(self, name):
        return self.lib.spyre_format_from_name(name.encode())

    def layout(self, tensor):
        """The layout that an entry of case.json describes."""
        layout, rank = Layout(), len(tensor["device_size"])
        self.call("spyre_layout_init_explicit", c.byref(layout), rank,
                  (c.c_int64 * rank)(*tensor["device_size"]),
                  (c.c_int64 * rank)(*tensor["stride_map"]),
                  self.format(tensor["device_dtype"]), 0)
        return layout

    def host(self, tensor, array):
        host, shape = HostTensor(), tensor["shape"]
        self.call("spyre_host_tensor_dense", c.byref(host), c.c_void_p(array.ctypes.data),
                  self.format(tensor["dtype"]), len(shape), (c.c_int64 * len(shape))(*shape))
        return host

    def alloc(self, size):
        address = c.c_uint64()
        self.call("spyre_mem_alloc", self.context, c.c_uint64(size), c.byref(address))
        return address

    def load(self, directory, lx_kept=0):
        kernel, options = c.c_void_p(), KernelOptions(c.sizeof(KernelOptions), 0, lx_kept)
        self.call("spyre_kernel_load_ex", self.context, directory.encode(), c.byref(options),
                  c.byref(kernel))
        return kernel

    def launch_kernel(self, kernel, places, values=None):
        """Runs a kernel once; @places: (address, layout or None) per argument.

        values   {symbol: value}
        """
        args = (LaunchArg * max(len(places), 1))()
        for arg, (address, layout) in zip(args, places):
            arg.address = address
            arg.layout = c.pointer(layout) if layout is not None else None
        bindings = (Binding * max(len(values or {}), 1))(
            *[Binding(name.encode(), value) for name, value in (values or {}).items()])
        params = LaunchParams(c.sizeof(LaunchParams), args, len(places), len(values or {}),
                              bindings)
        self.call("spyre_launch_ex", self.stream, kernel, c.byref(params))
        self.call("spyre_stream_synchronize", self.stream)

    def launch(self, directory, places, lx_kept=0):
        """Loads a bundle and runs it once."""
        kernel = self.load(directory, lx_kept)
        try:
            self.launch_kernel(kernel, places)
        finally:
            self.unload(kernel)

    def launch_case(self, directory, case, places):
        """Runs a case: its bundle, or one after the other if it is divided into kernels."""
        if "kernels" not in case:
            self.launch(directory, places)
        for kernel in case.get("kernels", []):
            self.launch(os.path.join(directory, kernel["directory"]),
                        [places[i] for i in kernel["arguments"]], case["lx_kept"])

    def layout_bytes(self, layout):
        return self.lib.spyre_layout_bytes(c.byref(layout))

    def free(self, address):
        self.call("spyre_mem_free", self.context, address)

    def unload(self, kernel):
        self.call("spyre_kernel_unload", kernel)

    def put(self, address, layout, tensor, array):
        """Copies an array to the card, placed as the layout says."""
        host = self.host(tensor, array)
        self.call("spyre_copy_h2d", self.context, address, c.byref(layout), c.byref(host))

    def get(self, address, layout, tensor, dtype):
        """The array that the card has there."""
        array = np.zeros(tensor["shape"], dtype)
        host = self.host(tensor, array)
        self.call("spyre_copy_d2h", self.context, c.byref(host), address, c.byref(layout))
        return array

    def fill(self, address, size, byte):
        filled = np.full(size, byte, np.uint8)
        self.call("spyre_memcpy_h2d", self.context, address, c.c_void_p(filled.ctypes.data),
                  c.c_uint64(size))

    def _outputs(self, case, places, dtype):
        outputs = []
        for tensor in case["outputs"]:
            address, layout = places[tensor["arg_index"]]
            outputs.append(self.get(address, layout, tensor, dtype(tensor["dtype"])))
        return outputs

    def _fill(self, case, places):
        """Makes unwritten elements visible."""
        for tensor in case["outputs"]:
            address, layout = places[tensor["arg_index"]]
            self.fill(address, self.layout_bytes(layout), 0x5a)

    def _each_value(self, directory, case, places, dtype):
        """The outputs as they are filled, then those of a launch for each of the case's values."""
        kernel, outputs = self.load(directory), []
        try:
            self._fill(case, places)
            outputs += self._outputs(case, places, dtype)
            for values in case["values"]:
                self._fill(case, places)
                self.launch_kernel(kernel, places, values)
                outputs += self._outputs(case, places, dtype)
        finally:
            self.unload(kernel)
        return outputs

    def run(self, directory, case, inputs, dtype):
        """The output arrays of a case; @dtype(name) is the numpy dtype of a host dtype."""
        tensors = case["inputs"] + case["outputs"]
        addresses, places = [], [None] * len(tensors)
        try:
            for i, tensor in enumerate(tensors):
                layout = self.layout(tensor)
                address = self.alloc(self.layout_bytes(layout))
                addresses.append(address)
                places[tensor["arg_index"]] = (address, layout)
                if i < len(inputs):
                    self.put(address, layout, tensor, np.ascontiguousarray(inputs[i]))
            if "values" in case:
                return self._each_value(directory, case, places, dtype)
            self._fill(case, places)
            self.launch_case(directory, case, places)
            return self._outputs(case, places, dtype)
        finally:
            for address in addresses:
                self.free(address)


class PipeCard(Card):
    """The card of a serve program, which may be one for another architecture.

    Layouts are words of its requests, elements are little endian on the pipe.
    """

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def close(self):
        self.process.stdin.close()
        if self.process.wait():
            raise CardError(0, "serve ended with status %d" % self.process.returncode)

    def ask(self, *words, data=b""):
        """The number that a request is answered with."""
        line = " ".join(str(word) for word in words) + "\n"
        try:
            self.process.stdin.write(line.encode() + data)
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        answer = self.process.stdout.readline().decode().rstrip("\n")
        kind, _, rest = answer.partition(" ")
        if kind == "ok":
            return int(rest)
        if kind != "error":
            raise CardError(0, "serve answered '%s' to '%s'" % (answer, line[:200]))
        status, _, text = rest.partition(" ")
        raise CardError(int(status), text)

    def layout(self, tensor):
        sizes = [tensor["device_dtype"], len(tensor["device_size"])]
        return " ".join(map(str, sizes + list(tensor["device_size"]) + list(tensor["stride_map"])))

    def layout_bytes(self, layout):
        return self.ask("bytes", layout)

    def alloc(self, size):
        return self.ask("alloc", size)

    def free(self, address):
        self.ask("free", address)

    def put(self, address, layout, tensor, array):
        little = array.astype(array.dtype.newbyteorder("<"))
        self.ask("put", address, layout, tensor["dtype"], len(tensor["shape"]), *tensor["shape"],
                 data=little.tobytes())

    def get(self, address, layout, tensor, dtype):
        dtype = np.dtype(dtype).newbyteorder("<")
        size = self.ask("get", address, layout, tensor["dtype"], len(tensor["shape"]),
                        *tensor["shape"])
        data = self.process.stdout.read(size)
        return np.frombuffer(data, dtype).reshape(tensor["shape"]).astype(dtype.newbyteorder("="))

    def fill(self, address, size, byte):
        self.ask("fill", address, size, byte)

    def load(self, directory, lx_kept=0):
        return self.ask("load", lx_kept, directory)

    def unload(self, kernel):
        self.ask("unload", kernel)

    def launch_kernel(self, kernel, places, values=None):
        values = values or {}
        places = ["%d %s" % place for place in places]
        bound = ["%s %d" % item for item in values.items()]
        self.ask("launch", kernel, len(places), len(bound), *places, *bound)
