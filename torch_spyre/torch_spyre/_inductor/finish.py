# SPDX-License-Identifier: MIT
"""From a group to its kernel: the program with its results as arguments."""

import dataclasses
import json
import operator

from .bundle import bundle, settings
from .dynamic import written
from .emit import Number, Permuted, Program, Refused, format_of
from .hint import HintError
from .partition import UNKNOWN
from .placement import operand_in, placement_of
from .rules.base import held
from .views import static, tensor_of, view_of


@dataclasses.dataclass
class Kernel:
    """A group that the builder took, with a bundle on disk."""

    name: str
    group: object
    program: object
    inputs: list
    outputs: list
    specification: str
    parameters: list
    directory: str


def results(group):
    """The nodes whose values others read: (node, index of the result, or None)."""
    found = []
    for node in group.nodes:
        if isinstance(group.values[node], tuple):
            for user in node.users:
                if user.target is operator.getitem and read_outside(group, user):
                    found.append((user, group.values[node][user.args[1]]))
        elif read_outside(group, node):
            found.append((node, group.values[node]))
    return found


def read_outside(group, node):
    for user in node.users:
        if user in group.values:
            continue
        if tensor_of(user) is None or view_of(user).base is user:
            return True
        if read_outside(group, user):
            return True
    return False


def place(node, value):
    """How a result lies: (placement, operand) with the dims of the value."""
    placement = placement_of(node)
    operand = operand_in(placement, view_of(node))
    if operand is None:
        raise Refused("its result does not lie in whole sticks", node)
    size, device_size, stride_map, dim_map, form = operand
    extra = len(value.size) - len(size)
    if extra > 0:
        size = [1] * extra + list(size)
        dim_map = [d + extra if d >= 0 else d for d in dim_map]
    if isinstance(value, Permuted):
        size = [size[value.dims.index(d)] for d in range(len(size))]
        dim_map = [value.dims[d] if d >= 0 else d for d in dim_map]
    return placement, (size, device_size, stride_map, dim_map, form)


def store(program, value, out):
    """Writes a value to an argument, whatever format it is in."""
    if isinstance(value, Number):
        program.op("fill", value=held(value.value, out.format), out=out)
    elif value.format == out.format:
        program.op("identity", value, out=out)
    else:
        program.op("cast", value, format=out.format, out=out)


def direct(records, place):
    """Whether the operation at @place may write its result where it is wanted."""
    return records[place][0] == "op" and records[place][4] is None


def aims(records, wanted):
    """Which result each operation may write itself: its place in the program to the result's."""
    aim = {}
    for i, (_, value) in enumerate(wanted):
        if not isinstance(value, Number) and value.place not in aim:
            if direct(records, value.place) and value.format == format_of(value.dtype):
                aim[value.place] = i
    return aim


class Unwritten(Exception):
    """An operation does not write its result as it is wanted; args[0] is its place."""


def finish(group, name):
    """The kernel of a group; Refused if the builder does not take it as a whole."""
    wanted = results(group)
    placed = [place(node, value) for node, value in wanted]
    arguments = [("argument", operand, UNKNOWN) for _, operand in placed]
    aim = aims(group.program.records, wanted)
    while True:
        program = Program(arguments)
        try:
            rewrite(program, group.program.records, len(wanted), aim)
            break
        except Unwritten as unwritten:
            del aim[unwritten.args[0]]
        except RuntimeError as error:
            raise Refused(str(error)) from None
    for i, (node, value) in enumerate(wanted):
        if isinstance(value, Number) or aim.get(value.place) != i:
            if not isinstance(value, Number):
                value = program.value(aim.get(value.place, value.place + len(wanted)))
            try:
                store(program, value, program.value(i))
            except Refused as refusal:
                raise Refused(str(refusal), node) from None
    outputs = [(node, placement) for (node, _), (placement, _) in zip(wanted, placed)]
    return described(group, name, program, outputs)


def rewrite(program, records, shift, aim):
    """The records behind @shift arguments, with some results written straight to them."""
    for place, record in enumerate(records):
        if record[0] == "op":
            _, op, attributes, inputs, _, *division = record
            inputs = [aim.get(i, i + shift) for i in inputs]
            record = ("op", op, attributes, inputs, aim.get(place), *division)
        try:
            program._do(record)
        except RuntimeError:
            if place in aim:
                raise Unwritten(place) from None
            raise


def blame_hints(records, error):
    """Raises if a program is refused for the divisions that hints ask for."""
    if all(record[0] != "op" or len(record) == 5 for record in records):
        return
    try:
        Program([record[:5] for record in records]).graph.plan()
    except RuntimeError:
        return
    raise HintError(
        f"spyre_hint(work_div=): {error}; ask for a division that fits, or for none"
    ) from None


def described(group, name, program, outputs):
    """The kernel's text, and its bundle."""
    spec = {
        "name": name,
        "settings": settings(),
        "records": program.records,
        "inputs": [
            {
                "size": list(i.view.size),
                "stride": list(i.view.stride),
                "offset": i.view.offset,
                "operand": group.program.records[i.place][1],
            }
            for i in group.inputs
        ],
        "outputs": [
            {
                "size": list(static(tensor_of(node).shape)),
                "stride": list(static(tensor_of(node).stride())),
                "dtype": str(placement[2]).removeprefix("torch."),
                "placed_size": placement[0],
                "placed_stride": placement[1],
            }
            for node, placement in outputs
        ],
    }
    try:
        where = bundle(program.records, program)
    except RuntimeError as error:
        blame_hints(program.records, error)
        raise Refused(str(error)) from None
    inputs, nodes = [i.view.base for i in group.inputs], [node for node, _ in outputs]
    dynamic = written(group, name, nodes)
    text, parameters, inputs = dynamic or (json.dumps(spec), [], inputs)
    return Kernel(name, group, program, inputs, nodes, text, parameters, where)
