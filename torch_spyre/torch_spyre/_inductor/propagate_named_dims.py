# SPDX-License-Identifier: MIT
"""Named dims for hints, and their propagation through operations.

A program names the dims of tensors before a compiled function reads them. A result's dim has
the name of the dim that the operation iterates over. It has no name if two inputs disagree, or
after an operation that runs eagerly.
"""

import dataclasses

import torch

#: Sizes by name.
DECLARED = {}
#: The attribute of tensors and the key of a node's meta for the names of dims.
NAMES, DIMS = "_spyre_named_dims", "spyre_named_dims"
#: The key of a node's note for names that a compiled function gives.
NOTE = "spyre.named_dims"


def declare_tensor_dim(name, size):
    """Declares a named dim with its size in elements; replaces an earlier declaration.

    Raises TypeError or ValueError unless @name is a string that is not empty and @size an int of
    at least 1.
    """
    if not isinstance(name, str) or not name:
        raise TypeError(f"a dim is named by a string that is not empty, not {name!r}")
    if not isinstance(size, int) or isinstance(size, bool):
        raise TypeError(f"the size of dim {name!r} is an int, not {size!r}")
    if size < 1:
        raise ValueError(f"dim {name!r} has a size of 1 or more, not {size}")
    DECLARED[name] = size


def check(names, size):
    """Raises ValueError unless the names are declared and fit a tensor's size."""
    if len(names) != len(size):
        raise ValueError(
            f"name_tensor_dims: {len(names)} names {list(names)} for a tensor of {len(size)} "
            f"dims, of size {list(size)}; give one for each, None where there is none"
        )
    for name, n in zip(names, size):
        if name is None:
            continue
        if name not in DECLARED:
            raise ValueError(
                f"name_tensor_dims: dim {name!r} is not declared; "
                f"call declare_tensor_dim({name!r}, {n}) first"
            )
        if DECLARED[name] != n:
            raise ValueError(
                f"name_tensor_dims: dim {name!r} was declared with size {DECLARED[name]}, the "
                f"tensor has {n}; declare another name, or this one anew"
            )


def name_tensor_dims(tensor, names):
    """Names the dims of a tensor for compiled functions; returns the tensor.

    @names has one name or None per dim. Raises TypeError for wrong types, ValueError for a name
    that is not declared or was declared with another size.
    """
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"name_tensor_dims takes a tensor, not {type(tensor).__name__}")
    if not isinstance(names, (list, tuple)):
        raise TypeError(f"name_tensor_dims takes a list of names, not {type(names).__name__}")
    if torch.compiler.is_dynamo_compiling():
        with torch.fx.traceback.annotate({NOTE: tuple(names)}):
            return torch.ops.aten.alias(tensor)
    check(names, tensor.shape)
    setattr(tensor, NAMES, tuple(names))
    return tensor


def fitted(names, rank):
    """Returns @names, cut or filled with None at the front, for a tensor of @rank dims."""
    names = tuple(names or ())[-rank:] if rank else ()
    return (None,) * (rank - len(names)) + names


@dataclasses.dataclass(frozen=True)
class Walk:
    """The iteration space of an operation of the builder: sizes and names of dims, those that
    the result keeps, and the name of the dim that a product sums over."""

    size: tuple
    names: tuple
    kept: tuple
    keeps_all: bool = True
    summed: str = None
    #: A reduced dim along sticks, counted from the end, along which no step can be divided.
    whole: int = None

    def result(self):
        """Returns size and names of the result."""
        size, names = [], []
        for n, name, kept in zip(self.size, self.names, self.kept):
            if kept or self.keeps_all:
                size.append(n if kept else 1)
                names.append(name if kept else None)
        return tuple(size), tuple(names)

    def place(self, dim):
        """Returns the iterated dim of a result's dim, or None; both count from the end."""
        stay = [d for d, kept in enumerate(self.kept) if kept or self.keeps_all]
        place = stay[dim] if -len(stay) <= dim else None
        return None if place is None or not self.kept[place] else place - len(self.size)


def agreed(names):
    """Returns the only name among @names, None if there are none or several."""
    found = {name for name in names if name is not None}
    return found.pop() if len(found) == 1 else None


def broadcast(values):
    """Returns size and names of the broadcast of operands."""
    rank = max((len(v.size) for v in values), default=0)
    size, names = [], []
    for d in range(-rank, 0):
        here = [v for v in values if len(v.size) >= -d]
        n = max((v.size[d] for v in here), default=1)
        size.append(n)
        names.append(agreed(fitted(v.names, rank)[d] for v in here if v.size[d] == n > 1))
    return tuple(size), tuple(names)


REDUCTIONS = frozenset(
    "sum mean amax amin absmax var std vector_norm exx2 exx2_zeromean".split()
)
#: Operations whose results have other dims than their inputs.
OTHERS = frozenset(
    "topk topk_indices argmax argmin conv2d depthwise_conv2d max_pool2d avg_pool2d transpose "
    "restickify".split()
)


def reduction(value, attributes, stick):
    """Returns the Walk of a reduction."""
    rank = len(value.size)
    given = attributes.get("dim", -1)
    dims = given if isinstance(given, (list, tuple)) else [given]
    gone = {int(d) % rank for d in dims} if rank else set()
    kept = tuple(d not in gone for d in range(rank))
    names = fitted(value.names, rank)
    whole = stick - rank if stick in gone else None
    return Walk(value.size, names, kept, bool(attributes.get("keepdim", 0)), whole=whole)


def product(a, b, attributes):
    """Returns the Walk of a matrix product, None if an operand is a vector."""
    if len(a.size) < 2 or len(b.size) < 2:
        return None
    b_size, b_names = list(b.size), list(fitted(b.names, len(b.size)))
    if attributes.get("transpose_b"):
        b_size[-2:], b_names[-2:] = b_size[:-3:-1], b_names[:-3:-1]
    fronts = [
        dataclasses.replace(v, size=v.size[:-2], names=fitted(v.names, len(v.size))[:-2])
        for v in (a, b)
    ]
    size, names = broadcast(fronts)
    a_names = fitted(a.names, len(a.size))
    size, names = size + (a.size[-2], b_size[-1]), names + (a_names[-2], b_names[-1])
    summed = agreed((a_names[-1], b_names[-2]))
    return Walk(size, names, (True,) * len(size), summed=summed)


def walk(op, inputs, attributes, stick):
    """Returns the Walk of an operation; None if its dims cannot be named.

    @stick is the dim of the first input that is along sticks.
    """
    if op in OTHERS or not inputs:
        return None
    if op in REDUCTIONS:
        return reduction(inputs[0], attributes, stick)
    if op in ("matmul", "mm", "bmm"):
        return product(*inputs[:2], attributes)
    if op in ("attention", "batch_norm", "layer_norm", "rms_norm", "softmax", "log_softmax"):
        size, names = inputs[0].size, fitted(inputs[0].names, len(inputs[0].size))
        if op == "attention" and len(inputs[2].size) == len(size):
            size = size[:-1] + inputs[2].size[-1:]
            names = names[:-1] + fitted(inputs[2].names, 1)
    else:
        size, names = broadcast(inputs)
    return Walk(size, names, (True,) * len(size))
