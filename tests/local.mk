# SPDX-License-Identifier: MIT
include tests/abi/local.mk
