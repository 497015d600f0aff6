# SPDX-License-Identifier: MIT
include tests/abi/local.mk
include tests/build/build.mk
include tests/unit/tools.mk
include tests/fuzz/fuzz.mk
include tests/unit/arbiter.mk
include tests/unit/telemetry.mk
include tests/unit/sdsc.mk
include tests/unit/nn.mk
include tests/unit/sdsc_formats.mk
include tests/unit/build.mk
include tests/unit/bundle.mk
include tests/unit/model.mk
include tests/unit/base.mk
include tests/unit/runtime.mk
include tests/unit/fault.mk
include tests/unit/property.mk
include tests/torch/local.mk
