# SPDX-License-Identifier: MIT
# Shared by the scripts that run in the virtual machine as root: the node, the
# users, TAP. Sourced by bash, after $build is set; ends in /tmp.
#
# SPYRE_TEST_TIMEOUT: time limit of one program in seconds.

export CK_TAP_LOG_FILE_NAME=- CK_VERBOSITY=silent CK_DEFAULT_TIMEOUT=120 HOME=/tmp
export SPYRE_BACKEND=drm SPYRE_KERNEL_CACHE=0 PATH=$PATH:/sbin:/usr/sbin
cd /tmp || exit 99

node=/dev/accel/accel0
if [ ! -c "$node" ]; then
	echo "Bail out! no $node"
	exit 99
fi
root=()
group=$(stat -c %g "$node")
user=(setpriv --reuid=1000 --regid=1000 --groups="$group" --)

verdict() {
	if [ "$1" = 0 ]; then echo "ok - $2"; else echo "not ok - $2"; fi
}

# node_ready: waits until mdev has given the nodes to their group. A card that comes back while
# its old node is in use gets another one. mdev -d ends where a slow kernel's events overflow its
# socket, and its scan at the start does not know the rule for accel nodes.
node_ready() {
	local _
	for _ in {1..50}; do
		[ "$(stat -c %a:%g /dev/accel/* 2>/dev/null | sort -u)" != "660:$group" ] || return 0
		sleep 0.1
	done
	echo "# mdev ($(pidof mdev || echo ended)) has missed events of $(ls /dev/accel)"
	if ! pidof mdev >/dev/null; then
		busybox mdev -d
		sleep 1
	fi
	chgrp "$group" /dev/accel/* && chmod 660 /dev/accel/*
}

# run WHO NAME COMMAND...: prints its results, named after program and user. A
# program that crashes or has no result is a failure as well.
run() {
	local -n prefix=$1
	local name="$2 as $1" status start=$SECONDS
	shift 2
	[ "${#prefix[@]}" = 0 ] || node_ready
	timeout -k 5 "${SPYRE_TEST_TIMEOUT:-240}" "${prefix[@]}" "$@" >/tmp/output 2>&1
	status=$?
	sed -nE -e "s|^1\.\.0 *# *(SKIP.*)|ok - $name # \1|Ip" -e '/^#/p' \
		-e "s|^Bail out!|not ok - $name:|p" \
		-e "s|^(not )?ok\b *[0-9]* *-? *|\1ok - $name: |p" /tmp/output
	if ! grep -qE '^(not ok|ok|1\.\.0|Bail out!)' /tmp/output; then
		echo "not ok - $name: no result, exit status $status"
		tail -n 20 /tmp/output | sed 's/^/# /'
	elif [ "$status" != 0 ] && ! grep -qE '^(not ok|Bail out!)' /tmp/output; then
		echo "not ok - $name: exit status $status"
		tail -n 20 /tmp/output | sed 's/^/# /'
	fi
	echo "# $name: $((SECONDS - start)) s"
}

# Programs of tests/unit and compat/tests that take the card that SPYRE_BACKEND names.
api_tests() {
	local program
	for program in "$build"/tests/unit/runtime_* "$build"/tests/unit/drm_* \
		"$build"/tests/unit/bundle_kept "$build"/tests/unit/telemetry_metrics \
		"$build"/compat/tests/aiupti "$build"/compat/tests/boxes \
		"$build"/compat/tests/comms "$build"/compat/tests/launch \
		"$build"/compat/tests/runtime; do
		[ -f "$program" ] && [ -x "$program" ] && echo "$program"
	done
}

# comm_tests WHO NAME...: programs of collectives, whose ranks have a card each if there are enough.
comm_tests() {
	local who=$1 name cards
	cards="$(find /dev/accel -mindepth 1 -name 'accel*' | wc -l) cards"
	shift
	for name; do
		SPYRE_TEST_KILLS=5 SPYRE_TEST_TIMEOUT=${SPYRE_COMM_TIMEOUT:-1200} \
			run "$who" "comm_$name on $cards" "$build/tests/unit/comm_$name"
	done
}

# Programs of tests/abi except those that run separately below, or not at all.
abi_tests() {
	local program
	for program in "$build"/tests/abi/abi-*; do
		case ${program##*/} in
		abi-bench | abi-stress | abi-unplug | abi-vf | abi-failnth | abi-kill | abi-unload | \
			*.*) continue ;;
		esac
		[ -f "$program" ] && [ -x "$program" ] && echo "$program"
	done
}

# Another driver that exports and imports dma-bufs, if the kernel has it.
modprobe vgem 2>/dev/null

# $users run the programs: only root can read a build folder in a private home.
users="root user"
if ! "${user[@]}" test -x "$build/tests/abi/abi-core"; then
	echo "ok - tests as an unprivileged user # SKIP $build is closed to other users"
	users=root
fi
# run_as_everyone PROGRAM...
run_as_everyone() {
	local who program
	for who in $users; do
		for program; do
			run $who "${program##*/}" "$program"
		done
	done
}

# run_last_and_unload: runs the programs that remove the card or the module last.
run_last_and_unload() {
	local name
	for name in vf unplug kill unload stress; do
		run $([ $name = kill ] && echo user || echo root) abi-$name \
			"$build/tests/abi/abi-$name"
	done
	rmmod spyre_vdev
	verdict $? "the module unloads"
}

# run_abi_and_api: runs all of tests/abi and the API's tests as every user.
run_abi_and_api() {
	local who program
	run_as_everyone $(abi_tests) $(api_tests)
	for who in $users; do
		for program in "$src"/tests/abi/*.py; do
			[ ! -e "$program" ] || run $who "${program##*/}" "$python" "$program"
		done
	done
}

# conformance NAME [run.py options]: runs bundles on the card, as the plain user if possible.
conformance() {
	local name=$1
	shift
	# numpy is the reference, but its AVX2 tanh is wrong on QEMU's emulated CPU.
	# Products of the larger bundles take seconds there, and longer on a busy host.
	run ${users##* } "$name" env SPYRE_TIMEOUT_MS=60000 PYTHONDONTWRITEBYTECODE=1 \
		NPY_DISABLE_CPU_FEATURES="AVX2 FMA3" \
		"$python" "$src/tests/conformance/run.py" --spyre "$build/tools/spyre/spyre" "$@"
}
