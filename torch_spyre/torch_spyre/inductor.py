# SPDX-License-Identifier: MIT
"""The log of torch.compile for the card.

``TORCH_LOGS="torch_spyre.inductor"`` shows the kernels and the operations that run eagerly,
``TORCH_LOGS="+torch_spyre.inductor"`` the plan of each kernel as well.
"""

import logging

log = logging.getLogger(__name__)
