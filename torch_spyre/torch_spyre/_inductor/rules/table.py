# SPDX-License-Identifier: MIT
"""Rules of pointwise operations, which derive from the table of eager mode.

A row of the table (csrc/aten/table.h) names the operation or formula of the builder that computes
a schema, the promotion of its arguments, and the arguments that become attributes. A rule adds the
steps that eager mode would put into a kernel.
"""

import functools
import math

import torch

from ... import _C
from ..emit import FLOATS, INTEGERS, Number, Refused, Value, format_of, stripped
from .base import ROWS, aten, constant, last, number_of, promote, rule, size_of, storable


def target_of(schema):
    """Returns the operation of ATen that a row describes."""
    name, _, overload = schema.partition(".")
    return getattr(getattr(aten, name), overload or "default")


def computed_format(operation, given, dtype):
    """Returns the format to compute @dtype in; of bools, their common one. Raises Refused."""
    if dtype == torch.bool and (operation.bools or operation.logic):
        formats = {t.format for t in given if isinstance(t, Value) and t.dtype == torch.bool}
        return formats.pop() if len(formats) == 1 else format_of(torch.bool)
    if dtype in INTEGERS:
        form = operation.integers(dtype, len(given) > 1 and number_of(given[1]) is not None)
        if form is None:
            raise Refused(f"eager mode computes {dtype} on the CPU")
        return form
    if dtype not in FLOATS or operation.logic:
        raise Refused(f"the card does not compute in {dtype}")
    return format_of(dtype)


def converted(to, number, *place):
    """Returns @number as eager mode converts it by to.fit(); Refused if the CPU computes then."""
    fitted = to.fit(*place, number)
    if fitted is None:
        raise Refused(f"eager mode computes with {number} on the CPU")
    return fitted


def attribute_value(call, parameter, dtype):
    """Returns the value of a parameter's attribute, or None if it needs none; raises Refused."""
    kind, value = parameter.kind, call[parameter.argument]
    if kind == "off" and value or kind == "dtype" and value != call.meta.dtype:
        raise Refused(f"{parameter.argument} is {value}")
    if kind in ("off", "dtype") or kind == "bound" and value is None:
        return None
    if kind == "dim":
        if not call.meta.dim():
            raise Refused("a tensor without dims")
        return last(value, call.meta.dim())
    number = number_of(value)
    if number is None or math.isnan(number):
        raise Refused(f"{parameter.argument} is not a number that is known when compiling")
    return converted(parameter, number, dtype)


def attributes_of(call, row, dtype):
    """Returns the attributes that arguments determine, in the order of the row."""
    found = []
    for parameter in row.parameters:
        value = attribute_value(call, parameter, dtype)
        if value is not None and value != parameter.absent:
            found.append((parameter.attribute, value))
    return found


def is_scalar(thing):
    """Returns True for a number that may become an attribute."""
    return number_of(thing) is not None and not stripped(size_of(thing))


def operand(call, operation, thing, form):
    """Returns an argument as a tensor of the program; a number as eager mode makes one of it."""
    if not isinstance(thing, Value):
        number = thing if isinstance(thing, Number) else Number(thing, (), None)
        return constant(call, number, form)
    if thing.dtype not in FLOATS + INTEGERS + (torch.bool,):
        raise Refused(f"the card does not compute in {thing.dtype}")
    return call.program.cast(thing, form) if operation.logic else thing


def settle(call, operation, given, attributes, form):
    """Returns the operation, its operands, and its attributes with the numbers among @given."""
    attributes = list(attributes)
    if (
        operation.swapped
        and not attributes
        and is_scalar(given[0])
        and isinstance(given[1], Value)
    ):
        operation, given = operation.swapped, given[::-1]
    names = operation.numbers + [None] * len(given)
    has_tensor = any(isinstance(thing, Value) for thing in given)
    operands = []
    for name, thing in zip(names, given):
        if has_tensor and name and is_scalar(thing):
            attributes.append((name, storable(number_of(thing), form)))
        else:
            operands.append(operand(call, operation, thing, form))
    return operation, operands, attributes


@functools.lru_cache(None)
def _operand_in(rank, form):
    """Returns an operand of a format; steps do not depend on sizes."""
    dtype = {format_of(dtype): dtype for dtype in (*FLOATS, torch.int32)}[form]
    size, stride = [1] * (rank - 1) + [64], [64] * (rank - 1) + [1]
    return _C._view_operand(size, stride, dtype, size, stride, 0)[0]


def add_steps(call, operation, operands, attributes, form, result):
    """Adds the steps of an operation and returns its result in the format @result."""
    rank = max(1, *(len(value.size) for value in operands))
    places = [_operand_in(rank, f) for f in (*(value.format for value in operands), result)]
    try:
        steps = operation.steps(places, attributes, form)
    except RuntimeError as error:
        raise Refused(str(error)) from None
    values, casts = dict(enumerate(operands)), {}
    for name, inputs, numbers, place in steps:
        taken = [values[i] for i in inputs]
        if name == "cast":
            to = int(dict(numbers).get("format", result))
            if (inputs[0], to) not in casts:
                casts[inputs[0], to] = call.program.cast(taken[0], to)
            values[place] = casts[inputs[0], to]
        elif name == "identity" and place == len(operands):
            values[place] = taken[0]
        else:
            values[place] = call.op(name, *taken, **dict(numbers))
    return values[len(operands)]


def fitted_numbers(operation, given, dtype):
    """Returns the arguments with Python numbers as eager mode converts them; raises Refused.

    A Number stands for a tensor of the card, which has its value already, but is checked.
    """
    fitted = []
    for index, thing in enumerate(given):
        number = number_of(thing)
        if number is not None:
            number = converted(operation, number, index, dtype)
        fitted.append(thing if number is None or isinstance(thing, Number) else number)
    return fitted


def pointwise(call, row, *attributes, result=None):
    """Adds a call by its row of the table; @attributes precede those that the row names."""
    operation, given = row.operation, [call[name] for name in row.operands]
    if operation.condition and given[0].dtype != torch.bool:
        raise Refused("a condition that is not a bool")
    dtype = promote(given, operation)
    form = computed_format(operation, given, dtype)
    given = fitted_numbers(operation, given, dtype)
    attributes = [*attributes, *attributes_of(call, row, dtype)]
    if attributes:
        (name, number), *rest = attributes
        operation, number = row.choose(number)
        attributes = [(name, number), *rest]
    if result is None:
        # Bools stay in the format of the computation, but not in that of integers.
        stays = call.meta.dtype == torch.bool and dtype not in INTEGERS
        result = form if stays else format_of(call.meta.dtype)
    return add_steps(call, *settle(call, operation, given, attributes, form), form, result)


def chosen(rows):
    """Returns the rule of a schema, which takes the first row that applies to the arguments."""

    def take(call):
        """Lowers a call by its row; Refused if none applies."""
        for row in rows:
            if row.choice is None or call[row.choice[0]] == row.choice[1]:
                return pointwise(call, row)
        raise Refused("the table has no row for these arguments")

    return take


for _schema, _rows in ROWS.items():
    rule(target_of(_schema))(chosen(_rows))

#: Values of the argument "reduction" of losses.
NONE, MEAN = 0, 1


@rule(aten.mse_loss.default)
def mse_loss(call):
    """Lowers (a - b) squared with its reduction over all elements, which adds in fp32."""
    row, reduction = ROWS["mse_loss"][0], call["reduction"]
    rank = call.node.args[0].meta["val"].dim()
    if reduction == NONE or not rank:
        return pointwise(call, row)
    square = pointwise(call, row, result=format_of(torch.float32))
    for place in 0, 1:
        call.check_whole(square, place, list(range(-rank, 0)))
    name = "mean" if reduction == MEAN else "sum"
    total = call.op(name, square, dim=list(range(-rank, 0)), keepdim=0)
    return call.program.cast(total, format_of(call.meta.dtype))


@rule(aten.mse_loss_backward.default)
def mse_loss_backward(call):
    """Lowers (a - b) * norm * g, in which the norm is 2, or 2 / n for a mean of n."""
    count = call.count("self") if call["reduction"] == MEAN else 0
    return pointwise(call, ROWS["mse_loss_backward"][0], ("norm", 2 / count if count else 2.0))
