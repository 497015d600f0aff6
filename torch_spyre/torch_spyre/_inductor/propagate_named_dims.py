# SPDX-License-Identifier: MIT
"""Names of dims, for hints: who has which, and what operations make of them.

Names are given to tensors before they are read by a compiled function. An
operation's result has the name of the dim that it iterates over; where two
inputs disagree there is none, and none behind operations that run eagerly.
"""

import dataclasses

import torch

#: Sizes by name.
DECLARED = {}
#: Where a tensor keeps the names of its dims, and where a node does.
NAMES, DIMS = "_spyre_named_dims", "spyre_named_dims"
#: Under which a name given in a compiled function is noted on a node.
NOTE = "spyre.named_dims"


def declare_tensor_dim(name, size):
    """Makes the name of a dim known, with its size; a later declaration takes its place."""
    if not isinstance(name, str) or not name:
        raise TypeError(f"a dim is named by a string that is not empty, not {name!r}")
    if not isinstance(size, int) or isinstance(size, bool):
        raise TypeError(f"the size of dim {name!r} is an int, not {size!r}")
    if size < 1:
        raise ValueError(f"dim {name!r} has a size of 1 or more, not {size}")
    DECLARED[name] = size


def check(names, size):
    """Whether names fit a tensor's size; says what to do if not."""
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
                f"name_tensor_dims: nobody declared dim {name!r}; "
                f"call declare_tensor_dim({name!r}, {n}) first"
            )
        if DECLARED[name] != n:
            raise ValueError(
                f"name_tensor_dims: dim {name!r} was declared with size {DECLARED[name]}, the "
                f"tensor has {n}; declare another name, or this one anew"
            )


def name_tensor_dims(tensor, names):
    """Names the dims of a tensor, for the functions that are compiled for it; returns it."""
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
    """Names of the last dims of a tensor of @rank dims."""
    names = tuple(names or ())[-rank:] if rank else ()
    return (None,) * (rank - len(names)) + names


@dataclasses.dataclass(frozen=True)
class Walk:
    """What an operation of the builder iterates over: sizes and names of dims, those that
    its result keeps, and the name of what a product sums over."""

    size: tuple
    names: tuple
    kept: tuple
    keeps_all: bool = True
    summed: str = None
    #: A reduced dim along sticks, counted from the end: no step is divided along it.
    whole: int = None

    def result(self):
        """Size and names of the result."""
        size, names = [], []
        for n, name, kept in zip(self.size, self.names, self.kept):
            if kept or self.keeps_all:
                size.append(n if kept else 1)
                names.append(name if kept else None)
        return tuple(size), tuple(names)

    def place(self, dim):
        """The iterated dim, counted from the end, of a result's dim, counted so too."""
        stay = [d for d, kept in enumerate(self.kept) if kept or self.keeps_all]
        place = stay[dim] if -len(stay) <= dim else None
        return None if place is None or not self.kept[place] else place - len(self.size)


def agreed(names):
    """The one name that is given, None if there is none or several."""
    found = {name for name in names if name is not None}
    return found.pop() if len(found) == 1 else None


def broadcast(values):
    """Size and names of what operands broadcast to."""
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
#: They have dims of their own.
OTHERS = frozenset(
    "topk topk_indices argmax argmin conv2d depthwise_conv2d max_pool2d avg_pool2d transpose "
    "restickify".split()
)


def reduction(value, attributes, stick):
    rank = len(value.size)
    given = attributes.get("dim", -1)
    dims = given if isinstance(given, (list, tuple)) else [given]
    gone = {int(d) % rank for d in dims} if rank else set()
    kept = tuple(d not in gone for d in range(rank))
    names = fitted(value.names, rank)
    whole = stick - rank if stick in gone else None
    return Walk(value.size, names, kept, bool(attributes.get("keepdim", 0)), whole=whole)


def product(a, b, attributes):
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
    """What an operation iterates over; None if it has no dims that can be named.

    @stick: the dim of the first input that lies along sticks.
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
