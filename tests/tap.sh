# SPDX-License-Identifier: MIT
# shellcheck shell=sh
#
# Results of shell tests, as TAP on stdout. Sourced by sh; $work is a folder of the test.

number=0
failed=0

# report CODE NAME [FILE]: the end of FILE explains a failure.
report() {
	number=$((number + 1))
	if [ "$1" = 0 ]; then
		echo "ok $number - $2"
	else
		echo "not ok $number - $2"
		[ $# -lt 3 ] || tail -n 20 "$3" | sed 's/^/# /'
		failed=1
	fi
}

# result CODE NAME: the same with $work/out.
result() { report "$1" "$2" "$work/out"; }

# try NAME COMMAND...: the command succeeds.
try() {
	tap_name=$1
	shift
	"$@" >"$work/out" 2>&1
	result $? "$tap_name"
}

# none NAME COMMAND...: the command, which prints what is wrong, prints nothing.
none() {
	tap_name=$1
	shift
	"$@" >"$work/out" 2>&1
	! [ -s "$work/out" ]
	result $? "$tap_name"
}

# same NAME A B: two sorted lists are equal, and not empty.
same() {
	comm -3 "$2" "$3" | sed 's/^/only in one of the two (indented: the second): /' >"$work/out"
	[ -s "$2" ] && ! [ -s "$work/out" ]
	result $? "$1"
}

skip() {
	number=$((number + 1))
	echo "ok $number - $1 # SKIP $2"
}
