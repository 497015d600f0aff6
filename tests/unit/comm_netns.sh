#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Two "machines" that share nothing but a cable: network namespaces with a pair of veth devices.
# Everything belongs to namespaces of this test and disappears with its processes.
set -u
perf=${SPYRE_BUILDDIR:?}/tools/spyre-perf
export PATH="$PATH:/usr/sbin:/sbin"

if [ "${1-}" != inside ]; then
	skip_all() {
		echo "1..0 # SKIP $*"
		exit 0
	}
	grep -q '^#define HAVE_LIBFABRIC' "$SPYRE_BUILDDIR/config.h" || skip_all "built without libfabric"
	for program in ip unshare nsenter; do
		command -v $program >/dev/null || skip_all "no $program"
	done
	for options in -n -Urn; do
		unshare $options ip link add one type veth peer name two 2>/dev/null &&
			exec unshare $options --mount-proc --fork --pid --kill-child sh "$0" inside
	done
	skip_all "no permission to make network namespaces and veth devices"
fi

. "${SPYRE_SRCDIR:?}/tests/tap.sh"
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"; kill "$holder" 2>/dev/null' EXIT
unshare -n sleep 600 &
holder=$!
SPYRE_EMBEDDED_CARDS=4
SPYRE_COMM_TIMEOUT_MS=60000
export SPYRE_EMBEDDED_CARDS SPYRE_COMM_TIMEOUT_MS

on_two() { nsenter --net="/proc/$holder/ns/net" "$@"; }

lay_cable() {
	# The process has a namespace of its own only once unshare has made it.
	while [ "$(readlink "/proc/$holder/ns/net")" = "$(readlink /proc/self/ns/net)" ]; do
		sleep 0.1
	done
	ip link set lo up && on_two ip link set lo up &&
		ip link add one type veth peer name two netns "$holder" &&
		ip address add 192.0.2.1/24 dev one && ip link set one up &&
		on_two ip address add 192.0.2.2/24 dev two && on_two ip link set two up
}

# ARGUMENT...: ranks 0 and 1 on one machine, 2 and 3 on the other.
run_both() {
	rm -f "$work/id"
	SPYRE_COMM_ADDRESS=192.0.2.1 "$perf" "$@" -n 4 --id="$work/id" --local=2 \
		>"$work/one" 2>&1 &
	one=$!
	on_two env ${address+"SPYRE_COMM_ADDRESS=$address"} "$perf" "$@" -n 4 --id="$work/id" \
		--local=2 --first=2 >"$work/two" 2>&1
	two=$?
	wait $one
	one=$?
	cat "$work/one" "$work/two"
}

checked() {
	run_both "$@" -b 8 -e 1M -f 64 --iters=2 -w 1
	[ $one = 0 ] && [ $two = 0 ] && grep -q 'transport shm+tcp' "$work/one" &&
		[ "$(grep -c '^ ' "$work/one")" = 3 ]
}

# Pulls the cable a second after the ranks have begun, which the header of their table shows.
pull_soon() {
	for _ in $(seq 600); do
		grep -qs '^# all_reduce' "$work/one" && break
		sleep 0.1
	done
	sleep 1
	ip link set one down
}

plug_in() {
	ip link set one up
	# The other end sees it later, and ranks that start before have no route.
	for _ in $(seq 100); do
		on_two ip link show two | grep -q 'state UP' && break
		sleep 0.1
	done
}

# A cable that is pulled ends in an error of every rank within the limit. A rank may also wait for
# another one of its machine, which is named first and waits itself.
pull() {
	rm -f "$work/one"
	pull_soon &
	SPYRE_COMM_TIMEOUT_MS=8000 run_both all_reduce -b 1M -e 1M -c 0 --iters=1000000
	plug_in
	[ $one = 1 ] && [ $two = 1 ] &&
		grep -Eq 'waiting for rank ([01] \([^)]*\), )*[23] ' "$work/one"
}

unreachable() {
	unset address
	SPYRE_COMM_TIMEOUT_MS=5000 run_both all_reduce -b 1K -e 1K
	[ $one = 1 ] && [ $two = 1 ] && grep -q 'set SPYRE_COMM_ADDRESS on every rank' "$work/one"
}

try "two namespaces with a cable" lay_cable
address=192.0.2.2
for operation in all_reduce all_gather reduce_scatter broadcast all_to_all sendrecv; do
	try "$operation has the same results" checked $operation
done
try "a cable that is pulled" pull
try "all_reduce after that" checked all_reduce
try "a machine that gives no address" unreachable
echo "1..$number"
