#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Runs inside a bare Debian 12 with the source package beside it, as cross.sh ARCH EMULATOR: builds the
# packages for that architecture as a distribution's builder does, installs them and uses their tools.
# Results are TAP on stdout.
set -u
work=/tmp
arch=$1
emulator=$2
. /state/tap.sh
. /state/tools.sh

apt() { apt-get -qq -y -o Dpkg::Use-Pty=0 --no-install-recommends "$@"; }

foreign() { dpkg --add-architecture "$arch" && apt-get -qq update; }

# yyjson came to Debian with trixie; nothing else is taken from there.
later_release() {
	grep ' bookworm main$' /etc/apt/sources.list | sed 's/ bookworm / trixie /' \
		>/etc/apt/sources.list.d/trixie.list &&
		printf 'Package: *\nPin: release n=trixie\nPin-Priority: 100\n' \
			>/etc/apt/preferences.d/trixie
}

unpack() {
	dpkg-source -x /state/spyre_*.dsc /tmp/src
}

build() {
	cd /tmp/src && DEB_BUILD_OPTIONS="nocheck parallel=$(nproc)" \
		dpkg-buildpackage -a"$arch" -Pcross,nocheck -B -us -uc
}

# The library and the tools are the architecture's, by their names and by their contents.
of_architecture() {
	triplet=$(dpkg-architecture -a"$arch" -qDEB_HOST_MULTIARCH) || return
	for name in libspyre0 libspyre-dev spyre-tools; do
		[ "$(dpkg-deb -f "/tmp/${name}_"*"_$arch.deb" Architecture)" = "$arch" ] || return
	done
	dpkg-deb -c "/tmp/libspyre0_"*"_$arch.deb" | grep "usr/lib/$triplet/libspyre.so.0"
}

# Names of the tools reach those of the architecture through qemu-user.
emulate() {
	for tool in spyre spyre-smi spyre-perf dxp_standalone; do
		printf '#!/bin/sh\nexec %s /usr/bin/%s "$@"\n' "$emulator" "$tool" >"/usr/local/bin/$tool" &&
			chmod +x "/usr/local/bin/$tool" || return
	done
}

try "apt takes what bookworm lacks from trixie" later_release
try "apt and dpkg take packages of $arch" foreign
try "the cross compiler installs" apt install dpkg-dev "crossbuild-essential-$arch" qemu-user
try "the source package unpacks" unpack
try "what it needs for $arch installs" apt build-dep -a"$arch" -Pcross,nocheck /tmp/src
try "dpkg-buildpackage -a$arch makes the packages" build
try "they are packages of $arch" of_architecture
try "libspyre0 and spyre-tools of $arch install" apt install /tmp/libspyre0_*_"$arch".deb \
	/tmp/spyre-tools_*_"$arch".deb
try "the tools run under $emulator" emulate
try_tools
exit "$failed"
