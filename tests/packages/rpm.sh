#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Runs inside a bare Debian with the RPM packages in /state: installs them by rpm, uses each, and
# removes them. Dependencies have Fedora's names, so rpm does not look at them, and Debian's
# packages of the same libraries stand in. Results are TAP on stdout.
set -u
work=/tmp
. /state/tap.sh
. /state/tools.sh

install_libraries() {
	apt-get -qq -y -o Dpkg::Use-Pty=0 --no-install-recommends install \
		rpm libdrm2 libyyjson0 libxxhash0 liburing2 libncursesw6
}

packages="libspyre libspyre-devel spyre-tools spyre-vdev-dkms"
# Fedora's loader searches lib64, Debian's does not.
export LD_LIBRARY_PATH=/usr/lib64
try "apt reads the archive" apt-get -qq update
try "rpm and the libraries install" install_libraries
try "rpm installs the packages" rpm -i --nodeps /state/*.rpm
try_tools
try "the module's sources are where dkms looks" \
	test -s "/usr/src/spyre-vdev-$(cat /state/version)/dkms.conf"
try "all files are as they were packed" rpm -V --nodeps $packages
try "the packages are removed" rpm -e --nodeps $packages
try "nothing of them is left" nothing_left
exit "$failed"
