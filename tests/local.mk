# SPDX-License-Identifier: MIT
include tests/build/build.mk
