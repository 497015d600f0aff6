# SPDX-License-Identifier: MIT
"""torch.ops.spyre: operations under the names that torch-spyre registers.

All but the collectives are composed of PyTorch's operations (:mod:`.definition`), so that they run
wherever those do: on a card, on the CPU, under autograd and in compiled functions.
"""

from . import arithmetic, collectives, copies, experts, fp8  # noqa: F401
