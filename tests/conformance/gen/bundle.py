# SPDX-License-Identifier: MIT
"""A bundle directory: bundle.mlir, the SDSC files and case.json."""
import json
import os

from .tensors import Argument, Pool

SEGMENT = 1 << 34
TYPE = "!sdscbundle.input_arg<index>"


class Loop:
    """scf.for around steps; operands name it in loop_stride={loop: bytes}."""

    def __init__(self, count, body=()):
        self.count, self.body = count, list(body)


class Bundle:
    """Arguments, steps and the expected result.

    inputs, outputs   Arguments
    steps             Sdsc and Loop, in order
    reference         numpy expression over in0, in1, ...; "stored(x, format)" rounds
    allocate          bundle.mlir allocates the pool itself, instead of taking an address
    sizes             {symbol: (granularity, maximum)}, sizes of dims that are parameters
    numbers           along them, later cores have numbers in the place of addresses
    """

    def __init__(self, name, inputs, outputs, steps, reference, rtol=0.01, atol=0.01,
                 pool=0, symbolic=True, september=False, extra=None, allocate=False,
                 sizes=None, numbers=False):
        self.name, self.inputs, self.outputs = name, list(inputs), list(outputs)
        self.steps, self.reference = list(steps), reference
        self.rtol, self.atol = rtol, atol
        self.pool, self.symbolic, self.september = pool, symbolic, september
        self.extra, self.allocate = extra or {}, allocate
        self.sizes, self.numbers = sizes or {}, numbers
        for i, argument in enumerate(self.inputs + self.outputs):
            argument.index = i

    def sdscs(self, steps=None):
        for step in self.steps if steps is None else steps:
            if isinstance(step, Loop):
                yield from self.sdscs(step.body)
            else:
                yield step

    def base(self, argument):
        """Baked addresses: one segment per argument, with the pool in the first."""
        return (argument.index + bool(self.pool)) * SEGMENT

    def case(self):
        out = {"name": self.name,
               "inputs": [a.describe("in%d" % i) for i, a in enumerate(self.inputs)],
               "outputs": [a.describe("out" if len(self.outputs) == 1 else "out%d" % i)
                           for i, a in enumerate(self.outputs)],
               "reference": self.reference, "rtol": self.rtol, "atol": self.atol,
               "symbolic": self.symbolic, "num_sdsc": len(list(self.sdscs())),
               "max_cores": 32}
        if self.pool and not self.allocate:
            out["pool_size"] = self.pool
        if not self.symbolic:
            out["base_addresses"] = [self.base(a) for a in self.inputs + self.outputs]
        out.update(self.extra)
        return out

    def write(self, directory, strange=None):
        """Writes the directory; @strange: a random generator, for unknown keys."""
        os.makedirs(directory, exist_ok=True)
        writer = Writer(self)
        if strange is not None:
            for contents in writer.files.values():
                estrange(contents, strange)
        with open(os.path.join(directory, "bundle.mlir"), "w") as f:
            f.write(writer.text())
        for name, contents in writer.files.items():
            with open(os.path.join(directory, name), "w") as f:
                json.dump(contents, f, indent=2)
        with open(os.path.join(directory, "case.json"), "w") as f:
            json.dump(self.case(), f, indent=1)


def estrange(node, rng):
    """Adds unknown keys to the objects that have fields, and puts their keys in any order."""
    if isinstance(node, list):
        for entry in node:
            estrange(entry, rng)
    if not isinstance(node, dict):
        return
    for value in node.values():
        estrange(value, rng)
    fields = "dscs_" in node or "computeOp_" in node or "ldsIdx_" in node or \
        "opFuncName" in node or "stickSize_" in node
    if not fields:
        return
    node["newer_%d_" % rng.integers(9)] = [None, {}, [], "text", -1, 2.5][int(rng.integers(6))]
    keys = list(node)
    for i in rng.permutation(len(keys)):
        node[keys[i]] = node.pop(keys[i])


class Writer:
    """bundle.mlir, and the addresses or symbols that the files need."""

    def __init__(self, bundle):
        self.bundle = bundle
        self.files, self.maps, self.body = {}, {}, []
        self.constants, self.named = [], set()
        self.parameters = []
        self.next_symbol, self.next_address, self.next_loop = 1, 0, 0
        self.loops, self.bounds, self.size_names = {}, [], {}
        self._steps(bundle.steps, 2)

    def _parameter(self, name):
        if name not in self.parameters and not (name == "pool" and self.bundle.allocate):
            self.parameters.append(name)

    def _base(self, where, offset):
        """SSA name of base + offset."""
        if isinstance(where, Argument):
            base = "arg_%d" % where.index
            self._parameter(base)
            if not offset:
                return base
            constant, name = "%s_core_offset_%d", "%s_core_%d"
        else:
            base, constant, name = "pool", "%s_offset_%d", "%s_addr_%d"
            self._parameter(base)
        name, constant = name % (base, offset), constant % (base, offset)
        if name not in self.named:
            self.named.add(name)
            self.constants.append("%%%s = arith.constant %d : index" % (constant, offset))
            self.constants.append("%%%s = arith.addi %%%s, %%%s : index" % (name, base, constant))
        return name

    def _address(self, operand, offset, lines):
        """SSA name of an operand's address in the current loops."""
        name = self._base(operand.where, offset)
        strides = [(self.loops[loop], step) for loop, step in operand.loop_stride.items() if step]
        if not strides:
            return name
        strides.sort()
        ds = ["d%d" % i for i in range(len(strides))]
        terms = " + ".join("%d*%s" % (step, d) for d, (_, step) in zip(ds, strides))
        key = "(%s)[s0] -> (s0 + %s)" % (", ".join(ds), terms)
        number = self.maps.setdefault(key, len(self.maps))
        fresh = "addr_%d" % self.next_address
        self.next_address += 1
        lines.append("%%%s = affine.apply #map_%d(%s)[%%%s]" % (
            fresh, number, ", ".join("%%i_%d" % i for i, _ in strides), name))
        return fresh

    def _size(self, symbol, number, ordinal):
        """SSA name of the size of a dim, after the SDSC that uses it first."""
        return self.size_names.setdefault(symbol, "sym_%d_%d" % (number, ordinal))

    def _size_type(self, symbol):
        return TYPE[:-1] + ", granularity=%d, max_value=%d>" % self.bundle.sizes[symbol]

    def _sizes(self, sdsc, number, symbols):
        """{dim: (symbol id, granularity)} of an SDSC; a symbol has one id."""
        own = {}
        for dim, symbol in sdsc.sizes.items():
            if symbol not in symbols:
                symbols[symbol] = (-self.next_symbol, self._size(symbol, number, len(symbols) + 1))
                self.next_symbol += 1
            own[dim] = (symbols[symbol][0], self.bundle.sizes[symbol][0])
        return own

    def _number(self, operand, start):
        """SSA name of a number instead of an address: the argument's plus the offset."""
        name = "sym_%d" % self.next_symbol
        self.constants.append("%%%s = arith.constant %d : index" % (
            name, operand.where.index + start))
        return name

    def _execute(self, sdsc, depth):
        number = len(self.files)
        symbols, lines, addresses = {}, [], []
        sizes = self._sizes(sdsc, number, symbols)
        for operand in sdsc.operands:
            own = []
            starts = sdsc.starts(operand)
            numbers = self.bundle.numbers and isinstance(operand.where, Argument) and any(
                sdsc.slices[dim] > 1 and operand.scale.get(dim, -1) > 0 for dim in sizes)
            for start in starts:
                if operand.lx:
                    own.append(start)
                elif not self.bundle.symbolic:
                    pool = isinstance(operand.where, Pool)
                    own.append(start + (0 if pool else self.bundle.base(operand.where)))
                else:
                    key = (operand.where if isinstance(operand.where, Argument) else "pool",
                           start, tuple(sorted((id(k), v) for k, v in operand.loop_stride.items())))
                    if key not in symbols:
                        name = self._number(operand, start) if numbers and start != starts[0] \
                            else self._address(operand, start, lines)
                        symbols[key] = (-self.next_symbol, name)
                        self.next_symbol += 1
                    own.append(symbols[key][0])
            addresses.append(own)
        file = "sdsc_%d.json" % number
        self.files[file] = sdsc.file(number, addresses, self.bundle.september, sizes)
        names = ", ".join("%" + name for _, name in symbols.values())
        ids = ", ".join(str(i) for i, _ in symbols.values())
        tail = ', "symbol_ids"=[%s]' % ids if self.bundle.symbolic else ""
        lines.append('sdscbundle.sdsc_execute (%s) {sdsc_filename="%s"%s}' % (names, file, tail))
        self.body += ["\t" * depth + line for line in lines]

    def _steps(self, steps, depth):
        for step in steps:
            if not isinstance(step, Loop):
                self._execute(step, depth)
                continue
            number = self.next_loop
            self.next_loop += 1
            self.loops[step] = number
            self.bounds.append(step.count)
            self.body.append("\t" * depth + "scf.for %%i_%d = %%c0 to %%loop_bound_%d step %%c1 {" %
                             (number, number))
            self._steps(step.body, depth + 1)
            self.body.append("\t" * depth + "}")

    def text(self):
        names = (["pool"] if "pool" in self.parameters else []) + \
            [name for name in self.parameters if name != "pool"]
        lines = ["#map_%d = affine_map<%s>" % (n, text) for text, n in self.maps.items()]
        lines.append("module {")
        typed = [(name, name + "_base_addr", TYPE) for name in names] + \
            [(name, name + "_base", self._size_type(symbol))
             for symbol, name in self.size_names.items()]
        lines.append("\tfunc.func @sdsc_bundle(%s) {" % ", ".join(
            "%%%s: %s" % (base, kind) for _, base, kind in typed))
        head = ["%%%s = sdscbundle.input_arg_extract value from %%%s : %s -> index" % entry
                for entry in typed]
        if self.bundle.pool and self.bundle.allocate:
            head.insert(0, "%%pool = sdscbundle.device_mem_allocate %d bytes : index" %
                        self.bundle.pool)
        if self.bounds:
            head += ["%c0 = arith.constant 0 : index", "%c1 = arith.constant 1 : index"]
            head += ["%%loop_bound_%d = arith.constant %d : index" % (i, n)
                     for i, n in enumerate(self.bounds)]
        lines += ["\t\t" + line for line in head + self.constants]
        lines += self.body
        lines += ["\t\treturn", "\t}", "}", ""]
        return "\n".join(lines)
