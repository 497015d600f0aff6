#!/bin/bash
# SPDX-License-Identifier: MIT
# Runs in the machine of scripts/vm, as root, with the module loaded:
#	in-guest.sh BUILDDIR MODULE
# The ABI tests as root and as a plain user in group render, with several
# shapes of card, then the unloading.
set -u
build=$1 module=$2
failed=0
render=$(stat -c %g /dev/accel/accel0)
tests="core-ioctls fields submit memory execute kill"

step() {
	local name=$1
	shift
	echo "== $name"
	"$@"
	local status=$?
	[ $status = 0 ] || { echo "== $name: status $status"; failed=1; }
}

as_user() {
	setpriv --reuid=1000 --regid=1000 --groups="$render" -- "$@"
}

as_stranger() {
	setpriv --reuid=1001 --regid=1001 --clear-groups -- "$@"
}

reload() {
	rmmod spyre_vdev || return 1
	insmod "$module" "$@" || return 1
	local i
	for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		[ ! -e /dev/accel/accel0 ] || [ "$(stat -c %g /dev/accel/accel0)" != "$render" ] || return 0
		sleep 0.05
	done
	echo "the node did not come"
	return 1
}

refused() {
	! insmod "$module" "$@" 2>/dev/null
}

for name in $tests; do
	step "$name as root" "$build/tests/abi/$name"
	step "$name as a user in group render" as_user "$build/tests/abi/$name"
done
step "the node is closed to others" sh -c '! "$@"' sh setpriv --reuid=1001 --regid=1001 \
	--clear-groups -- dd if=/dev/accel/accel0 of=/dev/null count=1 status=none

step "unplug under load" "$build/tests/abi/unplug"
step "unplug under load again" "$build/tests/abi/unplug"

# A file that stays open keeps the module.
exec 7<>/dev/accel/accel0
step "no unloading while a node is open" sh -c '! rmmod spyre_vdev 2>/dev/null'
exec 7<&-

step "load with 8 cards of 1 core and 16 MiB" reload cards=8 cores=1 lpddr_mib=16
step "eight nodes" test -e /dev/accel/accel7
step "one core" test "$(cat /sys/class/accel/accel3/device/num_cores)" = 1
step "16 MiB" test "$(cat /sys/class/accel/accel3/device/lpddr_total)" = 16777216
step "memory of a small card" as_user "$build/tests/abi/memory"
step "execute on the last card" env SPYRE_NODE=/dev/accel/accel7 "$build/tests/abi/execute"
rmmod spyre_vdev
step "cards=0 is refused" refused cards=0
step "cards=9 is refused" refused cards=9
step "cores=33 is refused" refused cores=33
step "lpddr_mib=1 is refused" refused lpddr_mib=1
step "lpddr_mib=x is refused" refused lpddr_mib=x

# Unplugged and plugged in again and again under random load.
unplug_storm() {
	local pid i
	"$build/tests/abi/stress" 10 7 tolerant &
	pid=$!
	for i in 1 2 3 4 5 6 7 8; do
		sleep 1
		echo spyre_vdev.0 >/sys/bus/platform/drivers/spyre_vdev/unbind
		sleep 0.2
		echo spyre_vdev.0 >/sys/bus/platform/drivers/spyre_vdev/bind
	done
	wait "$pid"
}

no_memory_used() {
	local used
	used=$(cat /sys/bus/platform/devices/spyre_vdev.0/lpddr_used)
	[ "$used" = 0 ] || echo "lpddr_used is $used"
	[ "$used" = 0 ]
}

insmod "$module" cores=4
sleep 1
step "random load" "$build/tests/abi/stress" 20 "$((RANDOM + 1))"
step "no device memory is left over" no_memory_used
step "unplug storm" unplug_storm
step "unload after the storm" rmmod spyre_vdev

for i in 1 2 3 4 5; do
	step "load, $i" insmod "$module"
	step "unload, $i" rmmod spyre_vdev
done
step "no BUG, WARN or driver line in the kernel log" sh -c \
	'! dmesg | grep -v "module verification failed" | grep -E "BUG|WARNING|Oops|Call Trace|leak|\*ERROR\*|hung task|spyre.*(fail|error)"'
exit $failed
