# SPDX-License-Identifier: MIT
include tests/build/build.mk
include tests/unit/tools.mk
include tests/unit/sdsc.mk
