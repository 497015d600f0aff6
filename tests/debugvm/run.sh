#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Runs in the virtual machine as root, on the debug kernel and with spyre_vdev.ko
# loaded, on behalf of 'scripts/test debugvm': KUnit suites, all ABI and API
# tests, the recorded bundles, failed allocations, kills, unload. Prints TAP.
# The kernel's own checkers write to its log.
set -u
src=${SPYRE_SRCDIR:?} build=${SPYRE_BUILDDIR:?} python=${PYTHON:-/usr/bin/python3}
module=${SPYRE_MODULE:?}
# KASAN and lockdep under an emulator slow everything down.
export CK_TIMEOUT_MULTIPLIER=20 SPYRE_TEST_TIMEOUT=${SPYRE_TEST_TIMEOUT:-400}
export ABI_SECONDS=${ABI_SECONDS:-8} ABI_ROUNDS=${ABI_ROUNDS:-2}
. "$src/tests/vm/lib.sh"

# The results of the module's suites, one line per case.
kunit_results() {
	local file suite found=0
	for file in /sys/kernel/debug/kunit/*/results; do
		[ -e "$file" ] || continue
		suite=${file%/results}
		suite=${suite##*/}
		found=1
		sed -nE "s|^ +(not )?ok [0-9]+ -? ?(.*)|\1ok - kunit $suite: \2|p" "$file"
		grep -qE '^ok ' "$file"
		verdict $? "kunit $suite: the suite passes"
	done
	[ $found = 1 ] || echo "ok - kunit # SKIP the module has no suites"
}

# leaks WHEN: checks kmemleak, which reports objects that are seconds old and did not change.
leaks() {
	local file=/sys/kernel/debug/kmemleak
	sleep 6
	echo scan >$file
	echo scan >$file
	[ -z "$(cat $file)" ]
	verdict $? "kmemleak reports no leak $1"
	sed 's/^/# /' $file | head -n 60
	echo clear >$file
}

kunit_results
echo clear >/sys/kernel/debug/kmemleak
run_abi_and_api
SPYRE_TEST_TIMEOUT=900 conformance conformance

run root abi-failnth "$build/tests/abi/abi-failnth"
ABI_ROUNDS=${ABI_KILLS:-100} run user abi-kill "$build/tests/abi/abi-kill"
run root abi-unplug "$build/tests/abi/abi-unplug"
run root abi-stress "$build/tests/abi/abi-stress"
run root abi-unload "$build/tests/abi/abi-unload"

run root fuzz-ioctl "$build/tests/fuzz/fuzz-ioctl" --seconds "${FUZZ_SECONDS:-60}"
run user fuzz-ioctl-processes "$build/tests/fuzz/fuzz-ioctl" --processes 4 \
	--seconds "${FUZZ_SECONDS:-60}"

# Before unload, while addresses of the module still have names.
leaks "while the module is loaded"
rmmod spyre_vdev
verdict $? "the module unloads"
[ ! -e "$node" ]
verdict $? "unloading removes the node"
insmod "$module" cards=2
verdict $? "the module loads again, with two cards"
run root abi-syncfile "$build/tests/abi/abi-syncfile"
run root "abi-peer of two cards" "$build/tests/abi/abi-peer"
run user "abi-peer of two cards" "$build/tests/abi/abi-peer"
rmmod spyre_vdev
insmod "$module" cards=8 cores=4 lpddr_mib=128
verdict $? "the module loads with eight cards"
for who in $users; do
	SPYRE_COMM_TIMEOUT=$SPYRE_TEST_TIMEOUT comm_tests "$who" direct formats trouble
done
rmmod spyre_vdev
verdict $? "the module unloads again"
leaks "after the module is unloaded"
