# SPDX-License-Identifier: MIT
include tests/unit/telemetry.mk
