#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Runs in the virtual machine as root, with spyre_vdev.ko loaded, on behalf of
# 'scripts/test preempt' and 'kcsan': the ABI tests alone, and unload. Prints TAP.
set -u
build=${SPYRE_BUILDDIR:?} src=${SPYRE_SRCDIR:?}
export SPYRE_TEST_TIMEOUT=${SPYRE_TEST_TIMEOUT:-400}
. "$src/tests/vm/lib.sh"

for who in $users; do
	for program in $(abi_tests); do
		run "$who" "${program##*/}" "$program"
	done
done
run root abi-vf "$build/tests/abi/abi-vf"
run root abi-unplug "$build/tests/abi/abi-unplug"
run user abi-kill "$build/tests/abi/abi-kill"
run root abi-unload "$build/tests/abi/abi-unload"
run root abi-stress "$build/tests/abi/abi-stress"
rmmod spyre_vdev
verdict $? "the module unloads"
