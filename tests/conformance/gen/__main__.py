# SPDX-License-Identifier: MIT
"""python3 -m gen: writes generated bundles into a directory."""
import argparse
import os

import numpy as np

from . import load


def names(families, only):
    return [name for name in families if not only or name in only]


def size(bundle):
    return sum(argument.bytes() for argument in bundle.inputs + bundle.outputs)


def fixed(families, only, smallest):
    """(directory name, Bundle) of the fixed set, or the smallest one of each variant."""
    for name in names(families, only):
        make, variants, _, count = families[name]
        for v, variant in enumerate(variants):
            made = []
            for k in range(count):
                rng = np.random.default_rng([ord(c) for c in name] + [v, k])
                made.append(("%s-%s-%d" % (name, "-".join(str(x) for x in variant), k),
                             make(rng, variant)))
            yield from [min(made, key=lambda m: size(m[1]))] if smallest else made


def random(families, only, seed, count):
    """(directory name, Bundle) of @count random bundles, one seed each."""
    table = names(families, only)
    weights = np.array([families[n][2] * len(families[n][1]) for n in table], float)
    for i in range(seed, seed + count):
        rng = np.random.default_rng(i)
        name = table[int(rng.choice(len(table), p=weights / weights.sum()))]
        make, variants, _, _ = families[name]
        variant = variants[int(rng.integers(len(variants)))]
        yield "%06d-%s-%s" % (i, name, "-".join(str(x) for x in variant)), make(rng, variant)


def main():
    parser = argparse.ArgumentParser(prog="gen", description=__doc__)
    parser.add_argument("--out", required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--fixed", action="store_true", help="the fixed set instead")
    parser.add_argument("--smallest", action="store_true",
                        help="of the fixed set, the smallest bundle of each variant")
    parser.add_argument("--family", action="append", help="only this one (may be repeated)")
    args = parser.parse_args()
    families = load()
    made = fixed(families, args.family, args.smallest) if args.fixed else \
        random(families, args.family, args.seed, args.count)
    for number, (name, bundle) in enumerate(made):
        bundle.name = name
        strange = np.random.default_rng(number) if number % 5 == 4 else None
        bundle.write(os.path.join(args.out, name), strange)


if __name__ == "__main__":
    main()
