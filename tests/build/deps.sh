#!/bin/sh
# SPDX-License-Identifier: MIT
#
# scripts/deps takes nothing from another release, and leaves apt's sources alone,
# unless it may ask or is told --yes. The package tools are stand-ins that write
# down how they are called.
set -u
src=${SPYRE_SRCDIR:?}
. "$src/tests/tap.sh"
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
release=$(. /etc/os-release 2>/dev/null && echo "${VERSION_CODENAME:-}")
if ! command -v bash >/dev/null || [ -z "$release" ]; then
	echo "1..0 # SKIP no bash, or /etc/os-release names no release"
	exit 0
fi
mkdir "$work/bin"
stand_in() {
	{
		echo '#!/bin/sh'
		echo "echo \"$1 \$*\" >>'$work/calls'"
		echo "$2"
	} >"$work/bin/$1"
	chmod +x "$work/bin/$1"
}
# Nothing is installed, no kernel is there, and apt knows the release's archive alone.
stand_in id 'echo 0'
stand_in find ''
stand_in dpkg-query ''
stand_in pkg-config 'exit 1'
stand_in apt-cache ''
stand_in apt-get "[ \"\$1\" != indextargets ] || echo 'file:/nowhere $release'"
stand_in tee 'cat >/dev/null'
stand_in dpkg ''
ok() { # NAME CODE
	cat "$work/out" "$work/calls" >"$work/said"
	report "$2" "$1" "$work/said"
}
run() {
	: >"$work/calls"
	PATH=$work/bin:$PATH KERNEL_VERSION='' bash "$src/scripts/deps" "$@" </dev/null >"$work/out" 2>&1
}
unchanged() {
	[ -s "$work/calls" ] && ! grep -E '^(tee|dpkg -i|apt-get .*install)' "$work/calls"
}

echo 1..9
run build && status=1 || status=0
ok "without a terminal and --yes it fails where a package is in no archive" $status
unchanged
ok "and installs nothing" $?
grep -q 'scripts/deps --yes build' "$work/out"
ok "and says how to allow it" $?
grep -q 'libyyjson-dev of trixie' "$work/out"
ok "and what it would do" $?
run vm && status=1 || status=0
ok "nor does it add an archive to apt's" $status
unchanged && grep -q "$release-backports is added to apt" "$work/out"
ok "but says which it would add" $?
run --yes vm
grep -q '^tee /etc/apt/sources.list.d/spyre-backports.list' "$work/calls"
ok "with --yes it adds it" $?

# dpkg-buildpackage refuses to start without a package that debian/control demands.
demanded() {
	sed -n '/^Build-Depends:/,/^Standards-Version:/p' "$src/debian/control" |
		sed -e '/^Standards-Version:/d' -e 's/^Build-Depends://' -e 's/[[(<:,].*//' \
			-e 's/debhelper-compat/debhelper/' -e 's/dh-sequence-dkms/dh-dkms/' | tr -d ' '
}
run --list build package
for package in $(demanded); do
	grep -qE " $package( |\$)" "$work/out" || echo "missing: $package"
done >"$work/calls"
[ "$(demanded | wc -l)" -ge 8 ] && ! [ -s "$work/calls" ]
ok "the groups build and package have what debian/control demands" $?
run --list kernel
grep -q '(kernel): linux-headers-6.12-amd64$' "$work/out"
ok "the group kernel is the kernel alone" $?
