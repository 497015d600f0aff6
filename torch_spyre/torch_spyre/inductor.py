# SPDX-License-Identifier: MIT
"""What torch.compile makes of a model for the card, in words.

``TORCH_LOGS="torch_spyre.inductor"`` shows the kernels and what they leave to
eager operations, ``TORCH_LOGS="+torch_spyre.inductor"`` the plan of each too.
"""

import logging

log = logging.getLogger(__name__)
