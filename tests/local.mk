# SPDX-License-Identifier: MIT
include tests/unit/model.mk
