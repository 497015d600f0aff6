#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Runs in the virtual machine as root, with spyre_vdev.ko loaded, on behalf of
# 'scripts/test preempt' and 'kcsan': the ABI tests alone, and unload. Prints TAP.
set -u
build=${SPYRE_BUILDDIR:?} src=${SPYRE_SRCDIR:?}
export SPYRE_TEST_TIMEOUT=${SPYRE_TEST_TIMEOUT:-400}
. "$src/tests/vm/lib.sh"

# shellcheck disable=SC2046
run_as_everyone $(abi_tests)
run_last_and_unload
