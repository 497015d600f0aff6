# SPDX-License-Identifier: MIT
"""Data formats: their values, and the host arrays of each dtype.

A module that brings a format of its own adds a Format to FORMATS, and, if a host
tensor can have it, a Host to HOSTS.
"""
import numpy as np


def to_dl16(values):
    """Values rounded to DL16: 9 fraction bits, half away from zero, no subnormals.

    The last two codes are NaN and infinity, which begins where NaN's number would be.
    """
    x = np.asarray(values, np.float64)
    with np.errstate(invalid="ignore"):
        mantissa, exponent = np.frexp(np.abs(x))
        y = np.ldexp(np.floor(mantissa * 1024 + 0.5), exponent - 10)
        y = np.where(y < 2.0 ** -31 * (1 + 1 / 512), 0, y)
        y = np.where(y >= 2.0 ** 32 * (1 + 510 / 512), np.inf, y)
    return np.where(x < 0, -y, y)


def dl16_bits(value):
    """The code of one value; NaN has no sign."""
    sign = 0x8000 if np.signbit(value) else 0
    y = abs(float(to_dl16(value)))
    if np.isnan(y):
        return 0x7FFE
    if np.isinf(y):
        return sign | 0x7FFF
    if y == 0:
        return sign
    mantissa, exponent = np.frexp(y)
    return sign | (int(exponent) - 1 + 31) << 9 | int(mantissa * 1024) - 512


def to_bf16_bits(values):
    """Round to nearest even, as host frameworks do."""
    bits = np.asarray(values, np.float32).view(np.uint32).astype(np.int64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16_bits(bits):
    wide = np.left_shift(np.asarray(bits, np.uint16).astype(np.uint32), np.uint32(16))
    return wide.view(np.float32)


def fp8_values(fraction, bias, nan):
    """The numbers of the 256 codes of an 8-bit float; @nan: the codes of NaN."""
    code = np.arange(256)
    exponent, mantissa = (code & 0x7F) >> fraction, code & ((1 << fraction) - 1)
    value = np.where(exponent > 0, (mantissa + (1 << fraction)) * 2.0 ** (exponent - 1), mantissa)
    value = value * 2.0 ** (1 - bias - fraction) * np.where(code & 0x80, -1, 1)
    value[nan] = np.nan
    return value


FP8 = {"SEN143_FP8": fp8_values(3, 7, [0x7F, 0xFF]), "SEN152_FP8": fp8_values(2, 16, [0x80])}


def to_fp8_bits(values, name):
    """The nearest code, ties to even, saturating."""
    table = FP8[name]
    most = int(np.nanargmax(table))
    x = np.asarray(values, np.float64)
    low = np.clip(np.searchsorted(table[:most + 1], np.abs(x), "right") - 1, 0, most)
    high = np.minimum(low + 1, most)
    down, up = np.abs(x) - table[low], table[high] - np.abs(x)
    code = np.where((up < down) | ((up == down) & (low % 2 == 1)), high, low)
    code = np.where(np.abs(x) >= table[most], most, code)
    minus = np.signbit(x) & ((code > 0) | (name == "SEN143_FP8"))
    return np.where(minus, code | 0x80, code).astype(np.uint8)


class Format:
    """A device format: bytes per element, rounding of values, code of one value."""

    def __init__(self, word, stored, code):
        self.word = word
        self.lanes = 128 // word
        self.stored = stored
        self.code = code


def _fp32(values):
    with np.errstate(over="ignore"):
        return np.asarray(values, np.float64).astype(np.float32).astype(np.float64)


def _integer(bits):
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    return Format(max(bits // 8, 1), lambda v: np.clip(np.rint(v), low, high),
                  lambda v: int(v) & ((1 << bits) - 1))


FORMATS = {
    "SEN169_FP16": Format(2, to_dl16, dl16_bits),
    "IEEE_FP32": Format(4, _fp32, lambda v: int(np.float32(v).view(np.uint32))),
    "IEEE_FP16": Format(2, lambda v: np.asarray(v).astype(np.float16).astype(np.float64),
                        lambda v: int(np.float16(v).view(np.uint16))),
    "BFLOAT16": Format(2, lambda v: from_bf16_bits(to_bf16_bits(v)).astype(np.float64),
                       lambda v: int(to_bf16_bits(np.float32(v)))),
    "SENINT8": _integer(8),
    "SENINT16": _integer(16),
    "IEEE_INT32": _integer(32),
    "SENUINT32": _integer(32),
}
for _name in FP8:
    FORMATS[_name] = Format(1, lambda v, n=_name: FP8[n][to_fp8_bits(v, n)],
                            lambda v, n=_name: int(to_fp8_bits(v, n)))
FORMATS["SENINT4"] = _integer(4)
FORMATS["SENINT4"].lanes = 256


class Host:
    """A host dtype: of a .npy file, to and from float64 values, default device format."""

    def __init__(self, dtype, device, encode=None, decode=None):
        self.dtype = np.dtype(dtype)
        self.device = device
        self.encode = encode or (lambda v: np.asarray(v).astype(self.dtype))
        self.decode = decode or (lambda a: np.asarray(a, np.float64))


HOSTS = {
    "fp16": Host(np.float16, "SEN169_FP16"),
    "fp32": Host(np.float32, "IEEE_FP32"),
    "fp64": Host(np.float64, "IEEE_FP32"),
    "bf16": Host(np.uint16, "SEN169_FP16", to_bf16_bits,
                 lambda a: from_bf16_bits(a).astype(np.float64)),
    "bool": Host(np.bool_, "SEN169_FP16"),
    "int8": Host(np.int8, "SENINT8"),
    "int16": Host(np.int16, "SENINT16"),
    "int32": Host(np.int32, "IEEE_INT32"),
    "int64": Host(np.int64, "IEEE_INT32"),
    "fp8_e4m3": Host(np.uint8, "SEN143_FP8", lambda v: to_fp8_bits(v, "SEN143_FP8"),
                     lambda a: FP8["SEN143_FP8"][a]),
    "fp8_e5m2": Host(np.uint8, "SEN152_FP8", lambda v: to_fp8_bits(v, "SEN152_FP8"),
                     lambda a: FP8["SEN152_FP8"][a]),
}


def stored(values, name):
    """Values as a tensor of that device format holds them."""
    return np.asarray(FORMATS[name].stored(values), np.float64)


EDGES = [0, 1, -1, 2**24 + 1, -2**24 - 1, 2**31 - 1, -2**31]


def _whole(rng, shape):
    """32-bit integers of all magnitudes, and the ends of their range."""
    bits = rng.integers(-2**31, 2**31, shape) >> rng.integers(0, 32, shape)
    return np.where(rng.random(shape) < 0.2, rng.choice(EDGES, shape), bits)


INITS = {
    "randn": lambda rng, shape: rng.standard_normal(shape),
    "positive": lambda rng, shape: np.abs(rng.standard_normal(shape)) + 0.5,
    "small": lambda rng, shape: rng.standard_normal(shape) * 0.1,
    "factors": lambda rng, shape: np.exp(0.1 * rng.standard_normal(shape))
    * rng.choice([-1.0, 1.0], shape),
    "bool": lambda rng, shape: (rng.random(shape) > 0.5) * 1.0,
    "ints": lambda rng, shape: np.floor(rng.random(shape) * 4),
    "int32": _whole,
    "shifts": lambda rng, shape: np.where(rng.random(shape) < 0.2, rng.choice(EDGES, shape),
                                          rng.integers(-3, 36, shape)),
    "divisors": lambda rng, shape: np.where(rng.random(shape) < 0.3, rng.integers(-4, 5, shape),
                                            _whole(rng, shape)),
    "zero": lambda rng, shape: np.zeros(shape),
    "ones": lambda rng, shape: np.ones(shape),
}


def draw(tensor, rng):
    """An input of a case.json: the host array, and the values that the device holds.

    init is a name of INITS, or "below<n>": integers from 0 on that are less than n.
    """
    host, init, shape = HOSTS[tensor["dtype"]], tensor["init"], tuple(tensor["shape"])
    if init.startswith("below"):
        drawn = np.floor(rng.random(shape) * int(init[5:]))
    else:
        drawn = INITS[init](rng, shape)
    array = host.encode(drawn)
    return array, stored(host.decode(array), tensor["device_dtype"])
