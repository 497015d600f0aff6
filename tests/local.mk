# SPDX-License-Identifier: MIT
include tests/abi/abi.mk
