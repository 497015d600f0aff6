# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# The kernel module on Debian's newest arm64 kernels, which have accel nodes, in QEMU: a step of
# the cross part of scripts/test. Sourced by bash after lib-cross.sh.

# Flavours of the kernel: pages of 4 KiB and of 16 KiB.
cross_flavours=${SPYRE_CROSS_FLAVOURS:-arm64 arm64-16k}
# The machine's packages: tools that tests/vm uses, and libraries of the tests' programs.
cross_machine_packages="bash busybox-static coreutils grep kmod sed util-linux
	libdrm2 liburing2 libxxhash0 libncurses6 libsubunit0"
cross_kernel_programs="abi/abi-core abi/abi-sched abi/abi-memory abi/abi-fields abi/abi-rounding
	unit/runtime_copy unit/runtime_kernel"
cross_embedded_programs="unit/embedded_pages unit/runtime_memory"

# cross_machine: a Debian of arm64 for scripts/vm --root, extracted once; sets
# $machine. No script of its packages runs, so links that these would make are made here;
# libtool's wrappers call sed as it is on this machine.
cross_machine() {
	machine=$cross_root/machine
	[ ! -e "$machine/complete" ] || return 0
	say "extracting programs of arm64 into $machine, once"
	rm -rf "$machine"
	# shellcheck disable=SC2086
	archives_of bookworm | quietly cross-machine cross_extract arm64 bookworm "$machine" \
		$cross_machine_packages || return
	ln -s bash "$machine/bin/sh" &&
		ln -s ../../bin/sed "$machine/usr/bin/sed" &&
		ln -s ../../bin/busybox "$machine/usr/bin/awk" &&
		cp -a "$cross_root"/root/usr/lib/aarch64-linux-gnu/libyyjson.so* \
			"$machine/usr/lib/aarch64-linux-gnu/" &&
		touch "$machine/complete"
}

# cross_release RELEASE: puts a kernel and its modules into the machine, once.
cross_release() {
	local modules=lib/modules/$1 late=$machine.late
	[ ! -e "$machine/$modules/modules.dep" ] || return 0
	say "extracting kernel $1 into $machine, once"
	rm -rf "$late" "${machine:?}/$modules"
	mkdir -p "$machine/lib/modules"
	# sed reads all lines: head would end the writer of the others, which is a failure of the pipe.
	archives_of trixie-backports | sed -n 1p | quietly cross-release cross_download arm64 "$late" \
		"linux-binary-$1" "linux-modules-$1" &&
		mv "$late/usr/$modules" "$machine/$modules" && rm -rf "$late" &&
		quietly cross-depmod /sbin/depmod -b "$machine" "$1"
}

# cross_kernel: the module on each flavour; uses $build and $cross_root.
cross_kernel() {
	local what="the module on arm64" flavour programs
	if [ "$tier" != nightly ] && [ -z "${SPYRE_CROSS_KERNEL-}" ]; then
		skip "$what" "only in the nightly tier and with SPYRE_CROSS_KERNEL=1"
		return
	fi
	deps crossvm >"$(log_file crossvm-deps)" 2>&1 ||
		{ skip "$what" "its packages cannot be installed (build/log/crossvm-deps.log)"; return; }
	cross_machine || { skip "$what" "mmdebstrap failed (build/log/cross-machine.log)"; return; }
	read -rd '' -a programs <<<"$cross_kernel_programs $cross_embedded_programs"
	step "test programs of arm64 compile" cross-kernel-build make -C "$build" -j"$jobs" \
		"${programs[@]/#/tests/}" || return
	for flavour in $cross_flavours; do
		cross_flavour "$flavour"
	done
}

# cross_flavour FLAVOUR: builds the module for it, boots it and runs the tests.
cross_flavour() {
	local log release status
	log=$(log_file "cross-newkernel-$1")
	say "building spyre_vdev.ko for Debian's newest $1 kernel"
	"$top/scripts/newkernel" "--$1" >"$log" 2>&1
	status=$?
	[ $status != 77 ] || { skip "the module on $1" "$(tail -n 1 "$log")"; return; }
	release=$(sed -n 's/^kernel headers //p' "$log")-$1
	[ $status = 0 ] || { not_ok "the module builds for $release" "cross-newkernel-$1"; return; }
	step "the module builds for $release without a warning (W=1)" "cross-warnings-$1" \
		no_warning "$log"
	cross_release "$release" ||
		{ skip "the module on $1" "apt-get failed (build/log/cross-release.log)"; return; }
	say "booting QEMU: $release on an emulated processor"
	cross_boot "$1" "$release" >"$(log_file "cross-kernel-$1")" 2>&1
	status=$?
	tally_tap $status "cross-kernel-$1"
	step "the log of $release has no BUG, WARNING, Oops or leak" "cross-kernel-$1-scan" \
		clean_kernel_log "$(log_file "cross-kernel-$1-log")"
}

# cross_boot FLAVOUR RELEASE: prints TAP. An emulator is slow, and limits of time are for hangs.
cross_boot() {
	"$top/scripts/vm" --root "$machine" --kernel "$2" \
		--module "$top/build/newkernel-$2/spyre_vdev.ko" \
		--log "$(log_file "cross-kernel-$1-log")" --timeout "${CROSS_KERNEL_TIMEOUT:-5400}" \
		--append "rcupdate.rcu_cpu_stall_timeout=300 workqueue.watchdog_thresh=300" \
		--env SPYRE_SRCDIR="$top" --env SPYRE_BUILDDIR="$build" \
		--env SPYRE_PROGRAMS="$cross_kernel_programs" \
		--env SPYRE_EMBEDDED_PROGRAMS="$cross_embedded_programs" --env SPYRE_TEST_TIMEOUT=900 \
		--env SPYRE_DIGITS="$(SPYRE_BACKEND=embedded \
			"$top/build/plain/examples/digits/digits" | digits_sum)" \
		-- "$top/tests/vm/arm64.sh"
}
