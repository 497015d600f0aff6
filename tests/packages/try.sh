# SPDX-License-Identifier: MIT
# shellcheck shell=sh
#
# Steps of a test inside a root, as TAP on stdout. Sourced by the scripts of this folder.

failed=0

# try NAME COMMAND...: one result; the end of a failed command's output stands below it.
try() {
	name=$1
	shift
	if "$@" >/tmp/out 2>&1; then
		echo "ok - $name"
	else
		echo "not ok - $name (exit code $?)"
		tail -n 20 /tmp/out | sed 's/^/# /'
		failed=1
	fi
	{ echo "== $name: $*"; cat /tmp/out; } >>/state/log
}
