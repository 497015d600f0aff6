# SPDX-License-Identifier: MIT
# shellcheck shell=sh
#
# Uses the tools that a test has installed in a bare system. Sourced by sh after tap.sh.

# says TEXT COMMAND...: the command succeeds, and prints the text.
says() {
	wanted=$1
	shift
	out=$("$@") || return
	echo "$out"
	case $out in *"$wanted"*) ;; *) echo "expected: $wanted"; return 1 ;; esac
}

computes() (
	cd /tmp && export SPYRE_BACKEND=embedded &&
		spyre build add --shape 64x64 bundle &&
		spyre launch -i 64x64@fp16 -i 64x64@fp16 -o 64x64@fp16 --stats bundle
)

try_tools() {
	try "spyre starts" says "$(cat /state/version)" spyre version
	try "spyre-smi starts" spyre-smi --version
	try "spyre-perf starts" spyre-perf --version
	try "dxp_standalone starts" dxp_standalone --help
	try "a bundle is built and computes on the embedded card" computes
	try "spyre doctor reports libspyre" says libspyre env SPYRE_BACKEND=embedded spyre doctor
	try "the document that errors name is installed" test -s /usr/share/doc/spyre-tools/docs/unsupported.md
	try "the tutorials are installed" test -s /usr/share/doc/spyre-tools/docs/tutorial/first-kernel.md
}

nothing_left() {
	left=$(find / -xdev \( -path /state -o -path /proc -o -path /tmp -o -path /var/lib/dpkg \
		-o -path /var/cache -o -path /var/log \) -prune -o -iname '*spyre*' -print)
	[ -z "$left" ] || { printf 'left behind: %s\n' "$left"; return 1; }
}
