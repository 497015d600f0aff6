#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Runs in the virtual machine as root, with spyre_vdev.ko loaded, on behalf of
# 'scripts/test vm': every test that uses a card, as root and as a plain user
# in group render, then unload and a second load. Prints TAP.
#
# SPYRE_BASELINE: hashes of the embedded card's conformance results.
# SPYRE_TIER: the tier that runs; nightly has the longest tests too.
set -u
src=${SPYRE_SRCDIR:?} build=${SPYRE_BUILDDIR:?} python=${PYTHON:-/usr/bin/python3}
module=$build/build/kernel/spyre_vdev.ko
. "$src/tests/vm/lib.sh"

run_abi_and_api

# The same programs with another submission path.
if [ -r "$build/config.h" ] && grep -q "define HAVE_LIBURING 1" "$build/config.h"; then
	for way in uring sqpoll; do
		for name in copy errors kernel streams threads; do
			run "${users##* }" "runtime_$name by $way" env SPYRE_SUBMIT=$way \
				"$build/tests/unit/runtime_$name"
		done
		SPYRE_SUBMIT=$way "$build/tools/spyre/spyre" info | grep -q "submission *$way ("
		verdict $? "spyre info reports $way"
	done
fi

run "${users##* }" "comm_direct on one card" "$build/tests/unit/comm_direct"

run ${users##* } "runtime_copy without pins" bash -c 'ulimit -l 0; exec "$0"' \
	"$build/tests/unit/runtime_copy"
run ${users##* } "runtime_boxes without pins" bash -c 'ulimit -l 0; exec "$0"' \
	"$build/tests/unit/runtime_boxes"

for program in "$src"/tests/unit/tools_launch.sh "$src"/tests/unit/tools_digits.sh; do
	# The emulated processor takes seconds for a product of 1,024 x 1,024.
	SPYRE_TIMEOUT_MS=60000 run user "${program##*/}" "$program"
done

bundles=()
[ ! -d "$build/generated" ] || bundles+=(--generated "$build/generated")
[ -z "${SPYRE_BASELINE-}" ] || bundles+=(--compare "$SPYRE_BASELINE")
SPYRE_TEST_TIMEOUT=2400 conformance conformance "${bundles[@]}"

# sensor NAME LOW HIGH: one of the card's hwmon attributes is a number in a range.
sensor() {
	local value
	value=$(cat /sys/devices/platform/spyre_vdev.0/hwmon/hwmon*/"$1")
	[ "${value:-0}" -ge "$2" ] && [ "$value" -le "$3" ]
	verdict $? "hwmon: $1 is between $2 and $3 (${value:-no value})"
}
sensor temp1_input 35000 85000
sensor power1_average 20000000 75000000
sensor power1_cap 75000000 75000000
sensor energy1_input 1 999999999999

mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
echo 1 >/sys/kernel/tracing/events/spyre/enable
"$build/tests/abi/abi-sched" >/dev/null 2>&1
echo 0 >/sys/kernel/tracing/events/spyre/enable
for event in spyre_submit spyre_run spyre_done spyre_queue_dead; do
	grep -q " $event: card=0 client=[1-9]" /sys/kernel/tracing/trace
	verdict $? "tracepoint $event fires"
done

used=$("$build/tools/spyre-smi" --query-device=memory.used --format=csv,noheader,nounits)
[ "$used" = 0 ]
verdict $? "no device memory is in use once all programs have ended (${used:-?} MiB)"

# A plain user may not see the totals of others; spyre-smi must not fail for that.
[ "$("${user[@]}" "$build/tools/spyre-smi" --query-device=jobs.completed,memory.used \
	--format=csv,noheader,nounits)" = "[N/A], 0" ]
verdict $? "spyre-smi of an unprivileged user shows permitted values, [N/A] for the others"

setpriv --reuid=1001 --regid=1001 --clear-groups -- test ! -r "$node"
verdict $? "the node is closed to users outside its group"

exec 7<>"$node"
! rmmod spyre_vdev 2>/dev/null
verdict $? "the module cannot be unloaded while a node is open"
"$build/tools/spyre-smi" reset --yes >/tmp/output 2>&1
[ $? = 19 ] && grep -q "run-all.sh" /tmp/output
verdict $? "spyre-smi reset refuses a card that is in use and names its users"
"$build/tools/spyre-smi" reset --yes --force -i 0 | grep -q "was reset: generation [1-9]"
verdict $? "spyre-smi reset --force resets it"
exec 7<&-
if [ "$users" != root ]; then
	"${user[@]}" "$build/tools/spyre-smi" reset --yes 2>/dev/null
	[ $? = 4 ]
	verdict $? "spyre-smi reset requires root"
fi

run_last_and_unload
[ ! -e "$node" ]
verdict $? "unloading removes the node"

for parameter in cards=0 cards=9 cores=0 cores=33 lpddr_mib=0 lpddr_mib=x vfs=17 vfs=-1 vfs=x \
	"vfs=4 cores=3" "vfs=5 lpddr_mib=79"; do
	# shellcheck disable=SC2086
	! insmod "$module" $parameter 2>/dev/null
	verdict $? "loading with $parameter is refused"
	rmmod spyre_vdev 2>/dev/null
done

cards() { "$build/tools/spyre-smi" -L | grep -c spyre_vdev; }
for number in 1 3 8; do
	insmod "$module" cards=$number cores=4 lpddr_mib=64 && [ "$(cards)" = $number ] &&
		rmmod spyre_vdev
	verdict $? "the module loads with cards=$number, spyre-smi lists them, it unloads"
done

insmod "$module" cores=4 lpddr_mib=64 counters_paranoid=0
for who in $users; do
	run "$who" "abi-counters with counters_paranoid=0" "$build/tests/abi/abi-counters"
done
rmmod spyre_vdev

insmod "$module" cards=2 lpddr_mib=1024
run root abi-syncfile "$build/tests/abi/abi-syncfile"
for who in $users; do
	run "$who" "abi-peer of two cards" "$build/tests/abi/abi-peer"
done
rmmod spyre_vdev

insmod "$module" cards=1 vfs=2 cores=4 lpddr_mib=128
for who in $users; do
	run "$who" "abi-peer of two VFs" "$build/tests/abi/abi-peer"
done
rmmod spyre_vdev

# Cards 0 to 3 and 4 to 7 are below two switches.
insmod "$module" cards=8 cores=4 lpddr_mib=128
run root "runtime_peer on eight cards" "$build/tests/unit/runtime_peer"
run root "abi-peer on eight cards" "$build/tests/abi/abi-peer"
# Ranks on a card each. Each rank is killed in each phase of each collective on the embedded card.
comm_tests "${users##* }" collective direct formats kills trouble
comm_tests "${users##* }" hostile random rogue
# comm_unbind takes minutes: the cards of a rank are probed again for each collective.
if [ "${SPYRE_TIER-}" = nightly ]; then
	comm_tests root hostile random rogue unbind
fi
rmmod spyre_vdev

# sum FILE...: of the numbers in them
sum() { echo $(($(cat "$@" | paste -sd+))); }
vf='/sys/devices/platform/spyre_vdev.*/spyre_vdev_vf.*'
# shellcheck disable=SC2086
insmod "$module" cards=2 cores=30 lpddr_mib=1026 vfs=4 &&
	[ "$(sum $vf/num_cores)" = 60 ] && [ "$(sum $vf/lpddr_total)" = $((2 * 1026 << 20)) ] &&
	[ "$(cat $vf/uuid | sort -u | wc -l)" = 8 ]
verdict $? "cards=2 vfs=4: eight VFs that add up to two cards"
exec 7<>/dev/accel/accel1
! rmmod spyre_vdev 2>/dev/null
verdict $? "the module cannot be unloaded while a node of a VF is open"
exec 7<&-
rmmod spyre_vdev && [ -z "$(ls /dev/accel 2>/dev/null)" ]
verdict $? "unloading removes the VFs and their nodes"
