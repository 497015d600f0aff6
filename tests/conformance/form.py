#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""The generator writes the public form: files of bundles/ come out again, key by key.

Every value of the SDSC files and every line of bundle.mlir has to be the same, for
bundles that show each kind of field: symbols, shared symbols, baked addresses, masks,
constants, gaps, LX, loops. Output is TAP.
"""
import json
import os
import sys

from gen.bundle import Bundle, Loop
from gen.sdsc import Sdsc
from gen.tensors import Argument, Lx

HERE = os.path.dirname(os.path.abspath(__file__))
DL16 = "SEN169_FP16"


def box(**sizes):
    return sizes


def add():
    a, b, c = (Argument((512, 1024)) for _ in range(3))
    space = box(mb=512, out=1024)
    uses = [t.operand({0: "mb", 1: "out"}, space) for t in (a, b, c)]
    return Bundle("add", [a, b], [c], [Sdsc("add", space, {"mb": 2, "out": 16}, uses)], "in0+in1")


def add_bcast1d():
    a, b, c = Argument((512, 1024)), Argument((1024,)), Argument((512, 1024))
    space = box(mb=512, out=1024)
    uses = [a.operand({0: "mb", 1: "out"}, space),
            b.operand({0: "out"}, space, broadcast=["mb"]),
            c.operand({0: "mb", 1: "out"}, space)]
    return Bundle("", [a, b], [c], [Sdsc("add", space, {"mb": 32}, uses)], "in0+in1")


def mm():
    a, b, c = Argument((512, 1024)), Argument((1024, 256)), Argument((512, 256))
    space = box(mb=512, out=256, **{"in": 1024})
    uses = [a.operand({0: "mb", 1: "in"}, space), b.operand({0: "in", 1: "out"}, space),
            c.operand({0: "mb", 1: "out"}, space)]
    return Bundle("", [a, b], [c], [Sdsc("batchmatmul", space, {"mb": 8, "out": 4}, uses,
                                         unit="pt")], "in0@in1")


def mean_last_pad():
    a, b = Argument((100, 150)), Argument((100,), stick=None)
    space = box(mb=100, out=192)
    uses = [a.operand({0: "mb", 1: "out"}, space), b.operand({0: "mb"}, space, lane="out")]
    step = Sdsc("mean", space, {"mb": 25}, uses,
                [("scaling_factor", DL16, 12138), ("samv-maskvalue", DL16, 0.0)],
                {"out": [[150, 42]]}, accumulate=True)
    return Bundle("", [a], [b], [step], "in0.mean(1)")


def sum_first():
    a, b = Argument((512, 1024)), Argument((1024,))
    space = box(mb=1024, out=512)
    uses = [a.operand({0: "out", 1: "mb"}, space),
            b.operand({0: "mb"}, space, broadcast=["out"])]
    step = Sdsc("sumnonstick", space, {"mb": 16, "out": 2}, uses, accumulate=True)
    return Bundle("", [a], [b], [step], "in0.sum(0)")


def clone_slice():
    a, b = Argument((512, 1024)), Argument((512, 256))
    space = box(mb=512, out=256)
    uses = [a.operand({0: "mb", 1: "out"}, space, {1: 128}), b.operand({0: "mb", 1: "out"}, space)]
    return Bundle("", [a], [b], [Sdsc("identity", space, {"mb": 32}, uses)], "in0[:,128:384]",
                  symbolic=False)


def softmax():
    a, b = Argument((512, 1024)), Argument((512, 1024))
    space = box(mb=512, out=1024)
    x, out = (t.operand({0: "mb", 1: "out"}, space) for t in (a, b))
    row = Argument((512,), stick=None).operand({0: "mb"}, space, lane="out")
    one, two = x.moved(Lx(2048)), x.moved(Lx(34816))
    top = row.moved(Lx(0))
    made = [("identity", [x, one]), ("max", [one, top]), ("sub", [one, top, two]),
            ("exp", [two, one]), ("sum", [one, top]), ("realdiv", [one, top, out])]
    steps = [Sdsc(op, space, {"mb": 32}, uses, accumulate=op in ("max", "sum"))
             for op, uses in made]
    return Bundle("", [a], [b], steps, "")


def loop_fma():
    args = [Argument((8, 1024)) for _ in range(4)]
    loop, space = Loop(8), box(mb=1, out=1024)
    uses = [t.operand({0: "mb", 1: "out"}, space, loop_stride={}) for t in args]
    for use in uses:
        use.loop_stride[loop] = 128
    return args, loop, space, uses


def whole_loop():
    args, loop, space, (a, b, c, d) = loop_fma()
    with open(os.path.join(HERE, "bundles", "loop_fma", "sdsc_0.json")) as f:
        root = next(iter(json.load(f).values()))
    nodes = root["dscs_"][0]["mul"]["scheduleTree_"]
    middle = a.moved(Lx(int(nodes[2]["startAddressCoreCorelet_"]["data_"]["[0, 0, 0]"])))
    middle.gap = dict(a.gap)
    slices = root["numWkSlicesPerDim_"]
    loop.body = [Sdsc("mul", space, slices, [a, b, middle]),
                 Sdsc("add", space, slices, [middle, c, d])]
    return Bundle("", args[:3], args[3:], [loop], "in0*in1+in2")


CASES = {"add": add, "add_bcast1d": add_bcast1d, "mm": mm, "mean_last_pad": mean_last_pad,
         "sum_first": sum_first, "clone_slice": clone_slice, "softmax": softmax,
         "loop_fma": whole_loop}


def difference(want, got, path="$"):
    """The first difference as text, or None; the order of keys counts."""
    if isinstance(want, dict) and isinstance(got, dict):
        if list(want) != list(got):
            return "%s: keys %s, written %s" % (path, list(want), list(got))
        pairs = [("%s.%s" % (path, k), want[k], got[k]) for k in want]
    elif isinstance(want, list) and isinstance(got, list):
        if len(want) != len(got):
            return "%s: %d elements, written %d" % (path, len(want), len(got))
        pairs = [("%s[%d]" % (path, i), w, g) for i, (w, g) in enumerate(zip(want, got))]
    else:
        return None if want == got and type(want) is type(got) else \
            "%s: %r, written %r" % (path, want, got)
    for name, w, g in pairs:
        text = difference(w, g, name)
        if text:
            return text
    return None


def compare(name, bundle):
    from gen.bundle import Writer
    folder = os.path.join(HERE, "bundles", name)
    writer = Writer(bundle)
    files = sorted(f for f in os.listdir(folder) if f.startswith("sdsc_"))
    if files != sorted(writer.files):
        return "files %s, written %s" % (files, sorted(writer.files))
    for file in files:
        with open(os.path.join(folder, file)) as f:
            text = difference(json.load(f), writer.files[file])
        if text:
            return "%s: %s" % (file, text)
    with open(os.path.join(folder, "bundle.mlir")) as f:
        want, got = f.read().splitlines(), writer.text().splitlines()
    for number, (w, g) in enumerate(zip(want + [None], got + [None]), 1):
        if w != g:
            return "bundle.mlir:%d: %r, written %r" % (number, w, g)
    return None


def main():
    print("1..%d" % len(CASES))
    failed = 0
    for number, (name, make) in enumerate(CASES.items(), 1):
        error = compare(name, make())
        failed += bool(error)
        print("%s %d - the generator writes %s as the front-end does" % (
            "not ok" if error else "ok", number, name))
        if error:
            print("# " + error[:400])
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
