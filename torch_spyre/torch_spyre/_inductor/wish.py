# SPDX-License-Identifier: MIT
"""From hints to the builder: which splits each of its operations is asked for.

What does not divide, and what nobody can know, is an error; what no operation
has and what there are no cores for is left out, with a warning.
"""

import os
import warnings

from ..inductor import log
from .hint import HintError, asked
from .propagate_named_dims import DECLARED
from .views import static


class Hints:
    """What hints ask of the operations of a graph, and what came of it."""

    def __init__(self):
        self.taken, self.skipped = set(), {}

    def of(self, node):
        """The wish for a node, or None."""
        work_div, tiles = asked(node, "work_div"), asked(node, "tiles")
        if tiles:
            Wish(self, node, tiles, "tiles").check_tiles()
        return Wish(self, node, work_div) if work_div else None

    def say(self, graph):
        """Warns of what is not followed."""
        wanted = {}
        for node in graph.nodes:
            wanted.update(dict.fromkeys(asked(node, "work_div").items()))
            for dim, n in asked(node, "tiles").items():
                log.info(
                    "spyre_hint(tiles={%r: %d}): not used for %s; what an intermediate needs of "
                    "LX follows from the division over the cores",
                    dim,
                    n,
                    node,
                )
        for dim, n in wanted:
            if (dim, n) in self.taken:
                log.info("spyre_hint(work_div={%r: %d}): taken", dim, n)
                continue
            why = self.skipped.get((dim, n), f"no kernel under it iterates over dim {dim!r}")
            log.info("spyre_hint(work_div={%r: %d}): ignored: %s", dim, n, why)
            warnings.warn(f"spyre_hint(work_div={{{dim!r}: {n}}}) is ignored: {why}", stacklevel=2)


def cores():
    """What SENCORES says; the planner refuses what is no number of cores."""
    text = os.environ.get("SENCORES", "")
    return int(text) if text.isdecimal() else 32


class Wish:
    """What is asked of the builder's operations that one node becomes."""

    def __init__(self, hints, node, asked_for, kind="work_div"):
        value = node.meta["val"]
        value = value[0] if isinstance(value, (tuple, list)) else value
        self.hints, self.node, self.asked_for = hints, node, asked_for
        self.rank, self.size = value.dim(), static(value.shape)
        for dim, n in asked_for.items():
            if isinstance(dim, str) and dim not in DECLARED:
                raise HintError(
                    f"spyre_hint({kind}={{{dim!r}: {n}}}): nobody declared dim {dim!r}; call "
                    f"declare_tensor_dim({dim!r}, size) and name_tensor_dims(), or give a "
                    "position in the result, as -1"
                )

    def check_tiles(self):
        for dim, n in self.asked_for.items():
            if isinstance(dim, int) and not -self.rank <= dim < self.rank:
                continue
            size = DECLARED[dim] if isinstance(dim, str) else self.size[dim]
            if size % n:
                raise HintError(
                    f"spyre_hint(tiles={{{dim!r}: {n}}}): {n} tiles do not divide the dim's size "
                    f"of {size}; give a divisor of it"
                )

    def places(self, dim, walk):
        """The iterated dims that a hint's dim is of, counted from the end; 0: what is summed."""
        if isinstance(dim, int):
            size, _ = walk.result()
            if size != self.size or not -self.rank <= dim < self.rank:
                return []
            place = walk.place(dim if dim < 0 else dim - self.rank)
            return [] if place is None else [place]
        named = [d - len(walk.names) for d, name in enumerate(walk.names) if name == dim]
        return named + ([0] if walk.summed == dim else [])

    def division(self, walk):
        """The splits of an operation of the builder, in the order of the hint."""
        splits, product = [], 1
        for dim, n in self.asked_for.items():
            for place in self.places(dim, walk) if walk else []:
                if any(place == other for other, _ in splits):
                    continue
                if place == walk.whole:
                    self.hints.skipped[dim, n] = "it is reduced along sticks, which are not divided"
                    continue
                if product * n > cores():
                    self.hints.skipped[dim, n] = (
                        f"with {product} slices before it, it takes more than the {cores()} cores "
                        "of SENCORES"
                    )
                    continue
                product *= n
                splits.append((place, n))
        return splits

    def took(self, splits, walk):
        for dim, n in self.asked_for.items():
            if any((place, n) in splits for place in self.places(dim, walk)):
                self.hints.taken.add((dim, n))

    def refused(self, error):
        words = ", ".join(f"{dim!r}: {n}" for dim, n in self.asked_for.items())
        return HintError(
            f"spyre_hint(work_div={{{words}}}): {error}; give a number that divides it "
            f"({self.node.target})"
        )
