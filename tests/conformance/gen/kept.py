# SPDX-License-Identifier: MIT
"""Several kernels of one computation, which leave tensors in LX for each other."""
import json
import os

from . import family
from .bundle import Bundle
from .chain import Chain, softmax
from .frame import chance
from .shuffle import Relayout
from .tensors import Argument

# Of the 2 MiB: the default plan of the public front-end, less, and more.
KEPT = [1625344, 1625344, 2031616, 1 << 20]


class Kernels(Bundle):
    """A bundle whose steps are written as one bundle for each of @parts."""

    def __init__(self, rng, whole):
        super().__init__(whole.name, whole.inputs, whole.outputs, whole.steps, whole.reference,
                         whole.rtol, whole.atol, symbolic=True, september=whole.september,
                         extra=dict(whole.extra, lx_kept=int(rng.choice(KEPT))))
        steps, self.parts = list(self.steps), []
        while len(steps) > 1:
            cut = 1 + int(rng.integers(min(3, len(steps) - 1)))
            self.parts.append(steps[:cut])
            steps = steps[cut:]
        self.parts.append(steps)

    def arguments(self, steps):
        """The arguments that some steps use, in their order."""
        used = [o.where for step in steps for o in step.operands
                if isinstance(o.where, Argument)]
        return [a for a in self.inputs + self.outputs if any(a is u for u in used)]

    def write(self, directory, strange=None):
        os.makedirs(directory, exist_ok=True)
        kernels = []
        for i, steps in enumerate(self.parts):
            used = self.arguments(steps)
            kernels.append({"directory": "kernel_%d" % i, "arguments": [a.index for a in used]})
        self.extra["kernels"] = kernels
        with open(os.path.join(directory, "case.json"), "w") as f:
            json.dump(self.case(), f, indent=1)
        for kernel, steps in zip(kernels, self.parts):
            # Numbers the arguments anew, from 0 on.
            part = Bundle(self.name, self.arguments(steps), [], steps, "None",
                          september=self.september)
            part.write(os.path.join(directory, kernel["directory"]), strange)


def chain(rng, dtype):
    """A chain whose intermediates are all in LX: a pool belongs to one kernel."""
    while True:
        c = Chain(rng, dtype)
        for _ in range(int(rng.integers(1, 4))):
            c.input()
        for _ in range(int(rng.integers(4, 10))):
            if chance(rng, 0.3):
                c.reduce()
            else:
                c.pointwise()
        if not c.pool:
            whole = c.finish("kept")
            if len(whole.steps) > 1:
                return whole


MADE = {"chain": chain, "softmax": lambda rng, dtype: softmax(rng, ("kept", dtype)),
        "shuffle": lambda rng, dtype: Relayout(rng, dtype).bundle("kept")}


@family("kept", [(name, dtype) for name in MADE for dtype in ("fp16", "fp32")], weight=2)
def kept(rng, variant):
    name, dtype = variant
    return Kernels(rng, MADE[name](rng, dtype))
