#!/bin/sh
# SPDX-License-Identifier: MIT
#
# spyre explain: the lines of source files, whose reading has a limit.
set -u
spyre=${SPYRE_BUILDDIR:?}/tools/spyre/spyre
. "${SPYRE_SRCDIR:?}/tests/tap.sh"
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 99

says() { grep -qF -e "$1" "$work/out"; }

# side_file STEPS FIRST: a kernel whose steps stem from source.py, from line FIRST on.
side_file() {
	awk -v steps="$1" -v first="$2" -v file="$work/source.py" 'BEGIN {
		printf "{\"schemaVersion\":1,\"kernelIdentities\":{\"abcdefghijklmnop\":"
		printf "{\"eventNameBase\":\"k\",\"specHandleBindings\":["
		for (i = 0; i < steps; i++)
			printf "%s{\"specPath\":[%d],\"handleId\":\"%d\"}", i ? "," : "", i, i
		printf "]}},\"handles\":{"
		for (i = 0; i < steps; i++) {
			printf "%s\"%d\":{\"aten_op\":\"aten.add\",\"source\":{\"file\":", \
			       i ? "," : "", i
			printf "\"%s\",\"start_line\":%d}}", file, first + i
		}
		print "}}"
	}'
}

# source_file LINES
source_file() { awk -v lines="$1" 'BEGIN { for (i = 1; i <= lines; i++) print "line = " i }'; }

# bytes_read COMMAND...: bytes that the command reads, with those of the shell around it.
bytes_read() { sh -c '"$@" >out 2>&1; sed -n "s/^rchar: //p" /proc/$$/io' sh "$@"; }

source_file 100000 >source.py
side_file 100 5000 >side.json
if [ -r /proc/self/io ]; then
	bytes=$(bytes_read "$spyre" explain --event abcdefghijklmnop --file side.json)
	[ "$bytes" -gt 1000000 ] && [ "$bytes" -lt 10000000 ] && says 'line = 5000' &&
		says 'line = 5099' && says "$work/source.py:5050"
	code=$?
	echo "$bytes bytes were read" >>"$work/out"
	report $code "a source file is read once for 100 steps" "$work/out"
else
	skip "a source file is read once for 100 steps" "this kernel has no /proc/self/io"
fi

source_file 900000 >source.py
side_file 200 899700 >side.json
"$spyre" explain --event abcdefghijklmnop --file side.json >"$work/printed" 2>"$work/out" &&
	says 'lines are not shown: more than' && [ "$(grep -c '^ *[0-9]* *aten.add' printed)" = 200 ] &&
	grep -q 'line = 899700' printed && ! grep -q 'line = 899899' printed
report $? "the search for lines has a limit" "$work/out"
echo "1..$number"
