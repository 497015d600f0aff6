# SPDX-License-Identifier: MIT
"""Translates hints into splits of the builder's operations.

A split that does not divide its dim and an undeclared name raise HintError. A dim that no
operation iterates over, and a split that exceeds the cores, are left out with a warning.
"""

import os
import warnings

from ..inductor import log
from .hint import HintError, requested
from .propagate_named_dims import DECLARED
from .views import static


class Hints:
    """The divisions that hints request in a graph, and which of them were applied."""

    def __init__(self):
        self.applied, self.skipped = {}, {}

    def of(self, node):
        """Returns the DivisionRequest of a node, or None; raises HintError for a wrong one."""
        work_div, tiles = requested(node, "work_div"), requested(node, "tiles")
        if tiles:
            DivisionRequest(self, node, tiles, "tiles").check_tiles()
        return DivisionRequest(self, node, work_div) if work_div else None

    def forget(self, node):
        """Drops what was recorded for a node that is placed again."""
        self.applied.pop(node, None)

    def report(self, graph):
        """Warns of requests that were not applied."""
        applied = set().union(*self.applied.values())
        wanted = {}
        for node in graph.nodes:
            wanted.update(dict.fromkeys(requested(node, "work_div").items()))
            for dim, n in requested(node, "tiles").items():
                log.info(
                    "spyre_hint(tiles={%r: %d}): not used for %s; what an intermediate needs of "
                    "LX follows from the division over the cores",
                    dim,
                    n,
                    node,
                )
        for dim, n in wanted:
            if (dim, n) in applied:
                log.info("spyre_hint(work_div={%r: %d}): taken", dim, n)
                continue
            why = self.skipped.get((dim, n), f"no kernel under it iterates over dim {dim!r}")
            log.info("spyre_hint(work_div={%r: %d}): ignored: %s", dim, n, why)
            warnings.warn(f"spyre_hint(work_div={{{dim!r}: {n}}}) is ignored: {why}", stacklevel=2)


def cores():
    """Returns SENCORES, or 32 for other values, which the planner refuses or ignores."""
    text = os.environ.get("SENCORES", "")
    return int(text) if text.isdecimal() else 32


class DivisionRequest:
    """The division that hints request of the builder's operations of one node."""

    def __init__(self, hints, node, requested, kind="work_div"):
        value = node.meta["val"]
        value = value[0] if isinstance(value, (tuple, list)) else value
        self.hints, self.node, self.requested = hints, node, requested
        self.rank, self.size = value.dim(), static(value.shape)
        for dim, n in requested.items():
            if isinstance(dim, str) and dim not in DECLARED:
                raise HintError(
                    f"spyre_hint({kind}={{{dim!r}: {n}}}): dim {dim!r} is not declared; call "
                    f"declare_tensor_dim({dim!r}, size) and name_tensor_dims(), or give a "
                    "position in the result, as -1"
                )

    def check_tiles(self):
        """Raises HintError if a number of tiles does not divide its dim."""
        for dim, n in self.requested.items():
            if isinstance(dim, int) and not -self.rank <= dim < self.rank:
                continue
            size = DECLARED[dim] if isinstance(dim, str) else self.size[dim]
            if size % n:
                raise HintError(
                    f"spyre_hint(tiles={{{dim!r}: {n}}}): {n} tiles do not divide the dim's size "
                    f"of {size}; give a divisor of it"
                )

    def places(self, dim, walk):
        """Returns the iterated dims of a hint's dim, counted from the end; 0 is the summed dim."""
        if isinstance(dim, int):
            size, _ = walk.result()
            if size != self.size or not -self.rank <= dim < self.rank:
                return []
            place = walk.place(dim if dim < 0 else dim - self.rank)
            return [] if place is None else [place]
        named = [d - len(walk.names) for d, name in enumerate(walk.names) if name == dim]
        return named + ([0] if walk.summed == dim else [])

    def division(self, walk):
        """Returns the splits of an operation of the builder, in the order of the hint."""
        splits, product = [], 1
        for dim, n in self.requested.items():
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

    def record_applied(self, splits, walk):
        """Records the splits that the builder has accepted for an operation."""
        for dim, n in self.requested.items():
            if any((place, n) in splits for place in self.places(dim, walk)):
                self.hints.applied.setdefault(self.node, set()).add((dim, n))

    def hint_error(self, error):
        """Returns the HintError for a division that the builder refuses with @error."""
        words = ", ".join(f"{dim!r}: {n}" for dim, n in self.requested.items())
        return HintError(
            f"spyre_hint(work_div={{{words}}}): {error}; give a number that divides it "
            f"({self.node.target})"
        )
