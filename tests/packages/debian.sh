#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Runs inside a bare Debian with the packages in /state/debs: installs them as an
# administrator would, uses each, and removes them. Results are TAP on stdout.
set -u
work=/tmp
. /state/tap.sh
. /state/tools.sh

apt() { apt-get -qq -y -o Dpkg::Use-Pty=0 --no-install-recommends "$@"; }
package() { ls /state/debs/"$1"_*.deb; }

example() {
	cp -r /usr/share/doc/libspyre-dev/examples/add /tmp/add && cd /tmp/add && make add && ./add /tmp/add.bundle
}

# Files that belong to no package, and differences from what dpkg unpacked.
verified() {
	changed=$(dpkg --verify libspyre0 spyre-tools libspyre-dev spyre-vdev-dkms)
	[ -z "$changed" ] || { echo "$changed"; return 1; }
}

dkms_says() { says "$1" dkms status spyre-vdev; }

module_installed() {
	for kernel in /lib/modules/*; do
		kernel=${kernel##*/}
		modinfo -k "$kernel" -F version spyre_vdev &&
			says "$kernel " modinfo -k "$kernel" -F vermagic spyre_vdev || return
	done
}

try "apt reads the archive" apt-get -qq update
! command -v cc >/dev/null || { echo "not ok - this Debian has no compiler"; failed=1; }
try "libspyre0 and spyre-tools install" apt install "$(package libspyre0)" "$(package spyre-tools)"
try_tools

try "libspyre-dev installs with a compiler" apt install "$(package libspyre-dev)" gcc libc6-dev make pkgconf
try "the example of libspyre-dev compiles and computes" example
try "the manual pages of libspyre-dev are installed" test -s /usr/share/man/man3/spyre_launch.3.gz

try "kernel headers install" apt install linux-headers-amd64
try "spyre-vdev-dkms installs" apt install "$(package spyre-vdev-dkms)"
try "dkms has built and installed the module" dkms_says installed
try "modprobe finds the module" module_installed
try "the udev rule is in udev's folder" test -s /usr/lib/udev/rules.d/60-spyre.rules
try "the files have the checksums of the packages" verified

try "the packages are removed" apt purge libspyre0 libspyre-dev spyre-tools spyre-vdev-dkms
try "no file of the packages is left" nothing_left
exit "$failed"
