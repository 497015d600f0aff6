#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Runs in the virtual machine as root, with spyre_vdev.ko loaded, on behalf of
# 'scripts/test smoke': a test of each layer, as root and as a plain user. Prints TAP.
set -u
src=${SPYRE_SRCDIR:?} build=${SPYRE_BUILDDIR:?}
. "$src/tests/vm/lib.sh"

for who in $users; do
	for program in abi/abi-core abi/abi-sched unit/runtime_copy unit/runtime_kernel; do
		run "$who" "${program##*/}" "$build/tests/$program"
	done
done
SPYRE_TIMEOUT_MS=60000 run user tools_digits.sh "$src/tests/unit/tools_digits.sh"
rmmod spyre_vdev
verdict $? "the module unloads"
