#!/bin/sh
# SPDX-License-Identifier: MIT
#
# scripts/emulate says what is wrong with its arguments or the machine before it downloads anything.
# qemu-user and the kernel's namespaces are stand-ins.
set -u
src=${SPYRE_SRCDIR:?}
. "$src/tests/tap.sh"
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
if ! command -v bash >/dev/null; then
	echo "1..0 # SKIP no bash"
	exit 0
fi
mkdir "$work/bin"
for name in qemu-aarch64-static unshare mmdebstrap; do
	printf '#!/bin/sh\nexit 1\n' >"$work/bin/$name"
	chmod +x "$work/bin/$name"
done
# refuses STATUS TEXT ARGUMENT...
refuses() {
	wanted=$1 text=$2
	shift 2
	PATH=$work/bin:$PATH XDG_CACHE_HOME=$work/cache bash "$src/scripts/emulate" "$@" \
		>"$work/out" 2>&1
	[ $? = "$wanted" ] && grep -q "$text" "$work/out" && [ ! -e "$work/cache" ]
	report $? "$*: status $wanted, '$text'" "$work/out"
}

echo 1..5
refuses 2 '^usage: ' arm64
refuses 1 "'riscv64' is none of:" riscv64 true
refuses 1 "'' is none of:" '' true
refuses 1 "'arm64 s390x' is none of:" 'arm64 s390x' true
refuses 77 'Linux 6.7' arm64 true
exit "$failed"
