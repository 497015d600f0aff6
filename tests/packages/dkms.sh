#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Runs on this machine's files with a writable layer above them, so that what dkms does to
# /lib/modules, /var/lib/dkms and /usr/src is gone with it. The package is in /state/debs,
# the version in /state/version, the kernel's in /state/kernel. Results are TAP on stdout.
set -u
work=/tmp
. /state/tap.sh
version=$(cat /state/version) kernel=$(cat /state/kernel)

build() {
	dkms build "spyre-vdev/$version" -k "$kernel" && return
	tail -n 20 "/var/lib/dkms/spyre-vdev/$version/build/make.log"
	return 1
}

status_is() { dkms status "spyre-vdev/$version" | tee /dev/stderr | grep -q "$1"; }
module() { find "/lib/modules/$kernel/updates" -name 'spyre_vdev.ko*' 2>/dev/null; }
built_for_kernel() { modinfo -F vermagic "$(module)" | grep -q "^$kernel "; }
none_left() { [ -z "$(module)" ] && [ -z "$(dkms status "spyre-vdev/$version")" ]; }

try "the source unpacks" dpkg-deb -x /state/debs/spyre-vdev-dkms_*.deb /
try "dkms add" dkms add "spyre-vdev/$version"
try "dkms build" build
try "dkms install" dkms install "spyre-vdev/$version" -k "$kernel"
try "dkms status says installed" status_is installed
try "the module is built for $kernel" built_for_kernel
try "modprobe accepts the module" modprobe -n -S "$kernel" spyre_vdev
try "dkms remove" dkms remove "spyre-vdev/$version" --all
try "dkms remove leaves no module" none_left
exit "$failed"
