# SPDX-License-Identifier: MIT
"""Work divisions: the number of cores along each dimension."""


def factors(n, limit):
    return [f for f in range(1, min(n, limit) + 1) if n % f == 0]


def random(rng, space, unit=None, cores=32, fixed=()):
    """A random division of @space over at most @cores; dims in @fixed stay whole.

    unit  {dim: elements that stay together}, the lanes of stick dims
    """
    unit, left, out = unit or {}, cores, {dim: 1 for dim in space}
    dims = [dim for dim in space if dim not in fixed]
    for i in rng.permutation(len(dims)):
        dim = dims[i]
        choices = factors(space[dim] // unit.get(dim, 1), left)
        out[dim] = int(choices[rng.integers(len(choices))])
        left //= out[dim]
    return out


def sticks(operands):
    """{dim: elements that stay together} for a list of operands: the widest stick."""
    out = {}
    for operand in operands:
        if operand.scale.get(operand.stick, 1) > 0:
            out[operand.stick] = max(out.get(operand.stick, 1), operand.lanes)
    return out
