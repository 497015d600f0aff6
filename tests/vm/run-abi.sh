#!/bin/bash
# SPDX-License-Identifier: MIT
# The ABI tests in the virtual machine, against the module of this build:
#	tests/vm/run-abi.sh [BUILDDIR] [LOG]
# Builds what is missing. Status 0 if every test passed and the kernel log is
# clean.
set -eu
src=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "${1:-$src}" && pwd)
log=${2:-$build/build/abi-kernel.log}

make -s -C "$build" module abi-programs
module=$build/build/kernel/spyre_vdev.ko
status=0
"$src/scripts/vm" --log "$log" --module "$module" --timeout 900 -- \
	"$src/tests/vm/in-guest.sh" "$build" "$module" | tee "$build/build/abi.tap" || status=$?
status=${PIPESTATUS[0]}

passed=$(grep -c '^ok ' "$build/build/abi.tap" || true)
failed=$(grep -c '^not ok ' "$build/build/abi.tap" || true)
echo "ABI tests: $passed passed, $failed failed; kernel log in $log"
grep '^not ok \|^Bail out' "$build/build/abi.tap" || true
exit "$status"
