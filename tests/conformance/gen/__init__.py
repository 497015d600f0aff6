# SPDX-License-Identifier: MIT
"""Generated SDSC bundles with a numpy reference.

A family is a function that makes a Bundle from a random generator and a variant:

    from . import family
    from .bundle import Bundle
    from .frame import Frame

    @family("unary", [("exp", "fp16"), ("exp", "fp32")])
    def unary(rng, variant):
        op, dtype = variant
        frame = Frame(rng, dtype)                       shapes, layout, iteration dims
        x = frame.input(rng, dtype)                     an Argument and how it is used
        out = frame.output(rng, dtype)
        return frame.bundle(rng, op, [x], out, "np.exp(in0)")

Every variant is an opFunc in a format (or with an option); the fixed set of
'scripts/test conformance' has three bundles of each, the random runs pick at will.
Put a family into a module of its own kind, import that module in MODULES below, and
it is found. What there is to build with:

    formats.py   device formats and host dtypes; add new ones there
    tensors.py   Argument (layout of a kernel argument), Operand (in one SDSC), Pool, Lx
    sdsc.py      Sdsc: one file in the public form, from op, space, slices, operands
    bundle.py    Bundle: steps and loops, bundle.mlir, case.json
    divide.py    work divisions
    frame.py     random shapes and layouts for operations over one box of dims

The reference is an expression over in0, in1, ... (float64, the values as stored on the
device), with np, math, erf, and stored(x, format): x as a tensor of that device format
holds it. It says what the operation means, independently of how the bundle says it.
Tolerances are those of one rounding at the store unless a family says why not.

    python3 -m gen --out DIR [--seed N] [--count N | --fixed [--smallest]] [--family NAME]
"""
import importlib

MODULES = ["pointwise", "reduce", "matmul", "move", "chain", "loops", "edge", "quant", "packed",
           "window", "places", "shuffle", "indirect", "padded", "kept", "symbolic",
           "apart", "integer"]
FAMILIES = {}


def family(name, variants, weight=1, fixed=3):
    """Registers a generator; @fixed: bundles per variant in the fixed set."""
    def register(make):
        FAMILIES[name] = (make, list(variants), weight, fixed)
        return make
    return register


def load():
    """All families, by name."""
    for module in MODULES:
        importlib.import_module("." + module, __name__)
    return FAMILIES
