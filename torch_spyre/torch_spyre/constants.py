# SPDX-License-Identifier: MIT
"""Names of this package in PyTorch."""

#: The device type, as in torch.device("spyre").
DEVICE_NAME = "spyre"

#: The back end of torch.distributed that PyTorch assigns to cards. This package has none of it.
DISTRIBUTED_BACKEND_NAME = "spyreccl"
