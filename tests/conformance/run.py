#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs SDSC bundles on a card and compares the results with numpy.

usage: run.py [--spyre PATH] [--seed N] [--hashes FILE] [--compare FILE] [CASE...]

CASE: names or directories of bundles, default all in bundles/. The card is that
of the environment: SPYRE_BACKEND, SPYRE_UNIT, SPYRE_EMBEDDED_THREADS. Output is
TAP. --hashes writes a sha256 of every case's outputs as JSON; --compare fails
where they differ from such a file, so that two configurations can be held
against each other bit by bit.
"""
import argparse
import hashlib
import json
import math
import os
import subprocess
import sys
import tempfile

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
DTYPES = {"fp16": np.float16, "fp32": np.float32, "bool": np.bool_, "bf16": np.uint16}


def to_dl16(values):
    """Values rounded to DL16: 9 fraction bits, half away from zero, no subnormals."""
    x = np.asarray(values, np.float64)
    mantissa, exponent = np.frexp(np.abs(x))
    scaled = np.floor(mantissa * 1024 + 0.5)
    y = np.ldexp(scaled, exponent - 10)
    y = np.where(y < 2.0 ** -31 * (1 + 1 / 512), 0, y)
    return np.where(x < 0, -y, y)


def to_bf16_bits(values):
    """Round to nearest even, as host frameworks do."""
    bits = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bf16_bits(bits):
    return (np.asarray(bits, np.uint16).astype(np.uint32) << 16).view(np.float32)


def draw(tensor, rng):
    """What is stored in the host file, and the value that the device then holds."""
    shape = tuple(tensor["shape"])
    x = {
        "randn": lambda: rng.standard_normal(shape),
        "positive": lambda: np.abs(rng.standard_normal(shape)) + 0.5,
        "small": lambda: rng.standard_normal(shape) * 0.1,
        "bool": lambda: (rng.random(shape) > 0.5) * 1.0,
        "ints": lambda: np.floor(rng.random(shape) * 4),
        "zero": lambda: np.zeros(shape),
    }[tensor["init"]]()
    if tensor["dtype"] == "bf16":
        host = to_bf16_bits(x)
        value = from_bf16_bits(host)
    else:
        host = np.asarray(x).astype(DTYPES[tensor["dtype"]])
        value = host
    value = np.asarray(value, np.float64)
    if tensor["device_dtype"] == "SEN169_FP16":
        value = to_dl16(value)
    return host, value


def check(case, inputs, outputs):
    """The first difference as text, or None."""
    names = {"in%d" % t["arg_index"]: v for t, v in zip(case["inputs"], inputs)}
    want = eval(case["reference"], {"np": np, "math": math, "erf": np.vectorize(math.erf)}, names)
    want = want if isinstance(want, tuple) else (want,)
    for tensor, w, got in zip(case["outputs"], want, outputs):
        shape = tuple(tensor["shape"])
        if got.shape != shape:
            return "shape %s, expected %s" % (got.shape, shape)
        got = from_bf16_bits(got) if tensor["dtype"] == "bf16" else got
        got = np.asarray(got, np.float64)
        w = np.asarray(w, np.float64)
        w = np.broadcast_to(w, shape) if w.size != got.size else w.reshape(shape)
        bad = ~(np.abs(got - w) <= case["atol"] + case["rtol"] * np.abs(w))
        if bad.any():
            at = tuple(int(i) for i in np.argwhere(bad)[0])
            return "%d of %d elements differ; first %s is %g, expected %g" % (
                bad.sum(), bad.size, list(at), got[at], w[at])
    return None


def run(spyre, directory, seed):
    """(error or None, sha256 of the outputs)"""
    with open(os.path.join(directory, "case.json")) as f:
        case = json.load(f)
    rng = np.random.default_rng(seed)
    with tempfile.TemporaryDirectory(prefix="spyre-conf-") as tmp:
        values = []
        for i, tensor in enumerate(case["inputs"]):
            host, value = draw(tensor, rng)
            np.save(os.path.join(tmp, "in%d.npy" % i), host)
            values.append(value)
        done = subprocess.run(
            [spyre, "launch", "--case", os.path.join(directory, "case.json"),
             "--inputs", tmp, "--outputs", tmp, directory],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
        if done.returncode:
            return "exit status %d: %s" % (done.returncode, done.stdout.strip()[-400:]), None
        files = [os.path.join(tmp, "out%d.npy" % i) for i in range(len(case["outputs"]))]
        outputs = [np.load(f) for f in files]
        digest = hashlib.sha256(b"".join(np.ascontiguousarray(o).tobytes() for o in outputs))
        return check(case, values, outputs), digest.hexdigest()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    # Compiled bundles would be kept beside their sources.
    os.environ.setdefault("SPYRE_KERNEL_CACHE", "0")
    build = os.environ.get("SPYRE_BUILDDIR", os.path.join(HERE, "..", ".."))
    parser.add_argument("--spyre", default=os.path.join(build, "tools", "spyre", "spyre"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--hashes")
    parser.add_argument("--compare")
    parser.add_argument("cases", nargs="*")
    args = parser.parse_args()

    root = os.path.join(HERE, "bundles")
    cases = args.cases or sorted(d for d in os.listdir(root)
                                 if os.path.isfile(os.path.join(root, d, "case.json")))
    cases = [c if os.path.isdir(c) else os.path.join(root, c) for c in cases]
    other = {}
    if args.compare:
        with open(args.compare) as f:
            other = json.load(f)
    hashes, failed = {}, 0
    print("1..%d" % len(cases))
    for number, directory in enumerate(cases, 1):
        name = os.path.basename(os.path.abspath(directory))
        error, digest = run(args.spyre, os.path.abspath(directory), args.seed)
        hashes[name] = digest
        if not error and args.compare and other.get(name) != digest:
            error = "results differ in bits from those of %s" % args.compare
        failed += bool(error)
        print("%s %d - %s" % ("not ok" if error else "ok", number, name), flush=True)
        if error:
            print("# " + error.replace("\n", "\n# "), flush=True)
    if args.hashes:
        with open(args.hashes, "w") as f:
            json.dump(hashes, f, indent=1, sort_keys=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
