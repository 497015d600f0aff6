# SPDX-License-Identifier: MIT
"""Makes the kernel of a group: its program with the results as arguments."""

import dataclasses
import json
import operator

from . import provenance
from .bundle import bundle, settings
from .emit import Number, Permuted, Program, Refused, format_of
from .hint import HintError
from .layouts import encoded
from .origins import aten_ops, taken_in, title
from .partition import UNKNOWN
from .placement import operand_in, placement_of
from .rules.base import storable
from .serialise import serialised
from .views import static, tensor_of, view_of


@dataclasses.dataclass
class CompiledGroup:
    """A group that the builder has accepted, with its bundle on disk."""

    name: str
    group: object
    program: object
    inputs: list
    outputs: list
    specification: str
    parameters: list
    directory: str
    #: Nodes of the graph before the pass that the kernel computes.
    nodes: list
    #: The provenance.Origin of its SDSCs, None without a side file.
    origin: object


def results(group):
    """Returns (node, value) of each node of a group that nodes outside of it read."""
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
    """Returns True if a node outside of the group reads @node, directly or through views."""
    for user in node.users:
        if user in group.values:
            continue
        if tensor_of(user) is None or view_of(user).base is user:
            return True
        if read_outside(group, user):
            return True
    return False


def place(node, value):
    """Returns (placement, operand) of a result, with the dims of the value; raises Refused."""
    placement = placement_of(node)
    operand = operand_in(placement, view_of(node))
    if operand is None:
        raise Refused("its result is not in whole sticks", node)
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
    """Stores a value of any format in an argument."""
    if isinstance(value, Number):
        program.op("fill", value=storable(value.value, out.format), out=out)
    elif value.format == out.format:
        program.op("identity", value, out=out)
    else:
        program.op("cast", value, format=out.format, out=out)


def can_write_directly(records, place):
    """Returns True if the operation at @place has no output yet, so that it can get one."""
    return records[place][0] == "op" and records[place][4] is None


def direct_writers(records, wanted):
    """Returns the operations that may write a result directly: {index of record: of result}."""
    writers = {}
    for i, (_, value) in enumerate(wanted):
        if not isinstance(value, Number) and value.place not in writers:
            if can_write_directly(records, value.place) and value.format == format_of(value.dtype):
                writers[value.place] = i
    return writers


class DirectWriteRefused(Exception):
    """Raised if an operation cannot write a result directly; args[0] is the index of its record."""


def finish(group, name):
    """Returns the CompiledGroup of a group; Refused if the builder does not accept all of it."""
    wanted = results(group)
    placed = [place(node, value) for node, value in wanted]
    arguments = [("argument", operand, UNKNOWN) for _, operand in placed]
    owners = [None] * len(placed) + group.owners
    writers = direct_writers(group.program.records, wanted)
    while True:
        program = Program(arguments)
        try:
            rewrite(program, group.program.records, len(wanted), writers)
            break
        except DirectWriteRefused as refused:
            del writers[refused.args[0]]
        except RuntimeError as error:
            raise Refused(str(error)) from None
    for i, (node, value) in enumerate(wanted):
        if isinstance(value, Number) or writers.get(value.place) != i:
            if not isinstance(value, Number):
                value = program.value(writers.get(value.place, value.place + len(wanted)))
            try:
                store(program, value, program.value(i))
                owners += [node] * (len(program.records) - len(owners))
            except Refused as refusal:
                raise Refused(str(refusal), node) from None
    outputs = [(node, placement) for (node, _), (placement, _) in zip(wanted, placed)]
    return described(group, name, program, outputs, owners)


def rewrite(program, records, shift, writers):
    """Adds the records after @shift arguments, to which operations in @writers write directly."""
    for place, record in enumerate(records):
        if record[0] == "op":
            _, op, attributes, inputs, _, *division = record
            inputs = [writers.get(i, i + shift) for i in inputs]
            record = ("op", op, attributes, inputs, writers.get(place), *division)
        try:
            program._do(record)
        except RuntimeError:
            if place in writers:
                raise DirectWriteRefused(place) from None
            raise


def check_hints(records, error):
    """Raises HintError if a program is refused only because of the divisions of hints."""
    if all(record[0] != "op" or len(record) == 5 for record in records):
        return
    try:
        Program([record[:5] for record in records]).graph.plan()
    except RuntimeError:
        return
    raise HintError(
        f"spyre_hint(work_div=): {error}; request a division that fits, or none"
    ) from None


def placed(placement):
    """Returns the description of a placement, by which the kernel's call makes storages."""
    size, stride, dtype, layout = placement
    return {
        "dtype": str(dtype).removeprefix("torch."),
        "placed_size": size,
        "placed_stride": stride,
        "placed_layout": encoded(layout),
    }


def described(group, name, program, outputs, owners):
    """Returns the CompiledGroup with its text and its bundle."""
    spec = {
        "name": name,
        "title": title(aten_ops(group.nodes)),
        "settings": settings(),
        "records": program.records,
        "inputs": [
            {
                "size": list(i.view.size),
                "stride": list(i.view.stride),
                "offset": i.view.offset,
                "operand": group.program.records[i.place][1],
                **placed(placement_of(i.view.base)),
            }
            for i in group.inputs
        ],
        "outputs": [
            {
                "size": list(static(tensor_of(node).shape)),
                "stride": list(static(tensor_of(node).stride())),
                **placed(placement),
            }
            for node, placement in outputs
        ],
    }
    try:
        where = bundle(program.records, program)
    except RuntimeError as error:
        check_hints(program.records, error)
        raise Refused(str(error)) from None
    inputs, nodes = [i.view.base for i in group.inputs], [node for node, _ in outputs]
    dynamic = serialised(group, name, nodes)
    text, parameters, inputs = dynamic or (json.dumps(spec), [], inputs)
    made, known = taken_in(group), provenance.wanted() and provenance.origin(program, owners)
    return CompiledGroup(name, group, program, inputs, nodes, text, parameters, where, made, known)
