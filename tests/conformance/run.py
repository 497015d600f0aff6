#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Runs SDSC bundles on a card and compares the results with numpy.

usage: run.py [--spyre PATH] [--seed N] [--hashes FILE] [--compare FILE]
              [--generated DIR] [--serve PROGRAM] [CASE...]

CASE: names or directories of bundles, default all in bundles/; each is run by
"spyre launch". --generated adds the directories in DIR, which 'python3 -m gen'
created: all of them on one card, through the library, or through the PROGRAM of
--serve, which may be one for another architecture. The card is that of the
environment: SPYRE_BACKEND, SPYRE_UNIT, SPYRE_EMBEDDED_THREADS. Output is TAP.
--hashes writes a sha256 of every case's outputs as JSON; --compare fails where
they differ from such a file, so that two configurations can be compared
bit by bit.
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

import card
from gen import formats

HERE = os.path.dirname(os.path.abspath(__file__))
def check(case, inputs, outputs):
    """The first difference as text, or None."""
    if "values" not in case:
        return check_one(case, inputs, outputs, {}, None)
    count = len(case["outputs"])
    filled = outputs[:count]
    for i, values in enumerate(case["values"], 1):
        error = check_one(case, inputs, outputs[i * count:(i + 1) * count], values, filled)
        if error:
            return "%s: %s" % (values, error)
    return None


def check_one(case, inputs, outputs, values, filled):
    """@values of the sizes; beyond them, outputs are as @filled says."""
    names = {"in%d" % t["arg_index"]: v for t, v in zip(case["inputs"], inputs)}
    with np.errstate(all="ignore"):
        want = eval(case["reference"], {"np": np, "math": math, "erf": np.vectorize(math.erf),
                                        "stored": formats.stored, **values, **names})
    want = want if isinstance(want, tuple) else (want,)
    for number, (tensor, w, got) in enumerate(zip(case["outputs"], want, outputs)):
        shape = tuple(tensor["shape"])
        if got.shape != shape:
            return "shape %s, expected %s" % (got.shape, shape)
        w = np.asarray(w, np.float64)
        if values:
            error = untouched(tensor, w.shape, got, filled[number])
            if error:
                return error
            shape = w.shape
            got = got[tuple(slice(n) for n in shape)]
        got = formats.HOSTS[tensor["dtype"]].decode(got)
        w = np.broadcast_to(w, shape) if w.size != got.size else w.reshape(shape)
        bad = ~(np.abs(got - w) <= case["atol"] + case["rtol"] * np.abs(w))
        if bad.any():
            at = tuple(int(i) for i in np.argwhere(bad)[0])
            return "%d of %d elements differ; first %s is %g, expected %g" % (
                bad.sum(), bad.size, list(at), got[at], w[at])
    return None


def untouched(tensor, shape, got, filled):
    """Text if an element beyond the sizes was written; sticks are written whole."""
    outside = np.ones(got.shape, bool)
    stick = tensor["device_size"][-1]
    whole = [n if tensor["stride_map"][-1] < 1 or axis + 1 < len(shape) else -(-n // stick) * stick
             for axis, n in enumerate(shape)]
    outside[tuple(slice(n) for n in whole)] = False
    bad = outside & (got.view(np.uint8).reshape(got.shape + (-1,)) !=
                     filled.view(np.uint8).reshape(got.shape + (-1,))).any(-1)
    return "element %s beyond the size is written" % list(np.argwhere(bad)[0]) if bad.any() else None


def by_tool(spyre, directory, case, arrays):
    """The outputs of a case, by "spyre launch"; raises RuntimeError with its text."""
    with tempfile.TemporaryDirectory(prefix="spyre-conf-") as tmp:
        for i, array in enumerate(arrays):
            np.save(os.path.join(tmp, "in%d.npy" % i), array)
        done = subprocess.run(
            [spyre, "launch", "--case", os.path.join(directory, "case.json"),
             "--inputs", tmp, "--outputs", tmp, directory],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600)
        if done.returncode:
            raise RuntimeError("exit status %d: %s" % (done.returncode, done.stdout.strip()[-400:]))
        return [np.load(os.path.join(tmp, "out%d.npy" % i)) for i in range(len(case["outputs"]))]


def run(execute, directory, seed):
    """(error or None, sha256 of the outputs); execute(directory, case, arrays): the outputs"""
    with open(os.path.join(directory, "case.json")) as f:
        case = json.load(f)
    rng = np.random.default_rng(seed)
    drawn = [formats.draw(tensor, rng) for tensor in case["inputs"]]
    try:
        outputs = execute(directory, case, [array for array, _ in drawn])
    except (RuntimeError, card.CardError) as error:
        return str(error), None
    digest = hashlib.sha256(b"".join(np.ascontiguousarray(o).tobytes() for o in outputs))
    return check(case, [value for _, value in drawn], outputs), digest.hexdigest()


def on_card(opened):
    """Runs cases on one open card."""
    return lambda directory, case, arrays: opened.run(
        directory, case, arrays, lambda name: formats.HOSTS[name].dtype)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    # Compiled bundles would be stored next to their sources.
    os.environ.setdefault("SPYRE_KERNEL_CACHE", "0")
    build = os.environ.get("SPYRE_BUILDDIR", os.path.join(HERE, "..", ".."))
    parser.add_argument("--spyre", default=os.path.join(build, "tools", "spyre", "spyre"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--hashes")
    parser.add_argument("--compare")
    parser.add_argument("--generated")
    parser.add_argument("--serve")
    parser.add_argument("cases", nargs="*")
    args = parser.parse_args()

    root = os.path.join(HERE, "bundles")
    cases = args.cases or sorted(d for d in os.listdir(root)
                                 if os.path.isfile(os.path.join(root, d, "case.json")))
    cases = [c if os.path.isdir(c) else os.path.join(root, c) for c in cases]

    def tool(*arguments):
        return by_tool(args.spyre, *arguments)

    work = [(os.path.abspath(c), tool) for c in cases]
    if args.generated:
        opened = card.PipeCard(args.serve) if args.serve else card.Card(card.library(build))
        work += [(os.path.join(os.path.abspath(args.generated), d), on_card(opened))
                 for d in sorted(os.listdir(args.generated))]
    other = {}
    if args.compare:
        with open(args.compare) as f:
            other = json.load(f)
    hashes, failed = {}, 0
    print("1..%d" % len(work))
    for number, (directory, execute) in enumerate(work, 1):
        name = os.path.basename(directory)
        error, digest = run(execute, directory, args.seed)
        hashes[name] = digest
        if not error and args.compare and other.get(name) != digest:
            error = "results differ in bits from those of %s" % args.compare
        failed += bool(error)
        print("%s %d - %s" % ("not ok" if error else "ok", number, name), flush=True)
        if error:
            print("# " + error.replace("\n", "\n# "), flush=True)
    if args.generated:
        opened.close()
    if args.hashes:
        with open(args.hashes, "w") as f:
            json.dump(hashes, f, indent=1, sort_keys=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
