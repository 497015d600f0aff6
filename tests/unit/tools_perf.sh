#!/bin/sh
# SPDX-License-Identifier: MIT
#
# spyre-perf: each operation with its results checked, JSON, bad usage, a rank that is killed.
set -u
perf=${SPYRE_BUILDDIR:?}/tools/spyre-perf
. "${SPYRE_SRCDIR:?}/tests/tap.sh"
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
SPYRE_EMBEDDED_CARDS=2
SPYRE_COMM_TIMEOUT_MS=60000
export SPYRE_EMBEDDED_CARDS SPYRE_COMM_TIMEOUT_MS

# TEXT ARGUMENT...: exits with 2, prints TEXT and where the help is on stderr, nothing on stdout.
refused() {
	text=$1
	shift
	"$perf" "$@" >"$work/out" 2>"$work/err"
	got=$?
	[ $got = 2 ] && [ ! -s "$work/out" ] && grep -qF -e "$text" "$work/err" &&
		grep -qxF "Try 'spyre-perf --help'." "$work/err"
	good=$?
	echo "exit status $got" >>"$work/err"
	report $good "spyre-perf $*" "$work/err"
}

# ROWS ARGUMENT...: exits with 0 and prints so many rows without wrong elements.
measures() {
	rows=$1
	shift
	"$perf" "$@" --iters=2 -w 1 >"$work/out" 2>"$work/err"
	got=$?
	cat "$work/err" >>"$work/out"
	[ $got = 0 ] && [ ! -s "$work/err" ] &&
		[ "$(grep -c '^ ' "$work/out")" = "$rows" ] &&
		awk '/^ / && ($10 != 0 || ($15 != 0 && $15 != "-") || $6 <= 0 || $9 <= 0) {
			exit 1 }' "$work/out" &&
		grep -q '^# average bus bandwidth: [0-9.]* GB/s$' "$work/out"
	good=$?
	echo "exit status $got" >>"$work/out"
	report $good "spyre-perf $*" "$work/out"
}

for operation in all_reduce all_gather reduce_scatter broadcast reduce gather scatter all_to_all \
		sendrecv; do
	measures 3 $operation -b 8 -e 100000 -f 100
done
measures 4 all_reduce -b 1K -e 4K -i 1K -d fp32 -o avg
measures 1 all_reduce -b 4K -e 4K -d int32 -o bxor -t
measures 1 reduce_scatter -b 4K -e 4K -d bf16 -o prod -n 3
measures 1 reduce -b 4K -e 4K -o premul -r 1 -z
measures 1 broadcast -b 4K -e 4K -d int8 -r 1
measures 1 broadcast -b 4K -e 4K -n 1

# Sizes are rounded up to whole sticks on each rank.
"$perf" all_gather -b 300 -e 300 -n 3 --iters=1 -w 0 >"$work/out" 2>&1
[ "$(awk '/^ / { print $1, $2 }' "$work/out")" = "384 192" ]
report $? "300 bytes of three ranks are three sticks" "$work/out"
"$perf" all_reduce -b 1K -e 1K -c 0 --iters=1 -w 0 >"$work/out" 2>&1 && grep -q 'N/A' "$work/out"
report $? "without a check no number of wrong elements" "$work/out"

# Ranks of two commands find each other by a file, which is removed.
"$perf" all_reduce -b 1K -e 1K -n 3 --id="$work/id" --local=2 --iters=1 >"$work/out" 2>&1 &
other=$!
SPYRE_COMM_ID=$work/id "$perf" all_reduce -b 1K -e 1K -n 3 --first=2 --local=1 --iters=1 \
	>"$work/err" 2>&1
got=$?
wait $other && [ $got = 0 ] && [ ! -s "$work/err" ] && grep -q '^# average' "$work/out" &&
	[ ! -e "$work/id" ]
good=$?
cat "$work/err" >>"$work/out"
report $good "two commands form one communicator" "$work/out"

if command -v python3 >/dev/null; then
	"$perf" broadcast -b 1K -e 4K -n 2 -r 1 --json --iters=2 >"$work/json" 2>"$work/out" &&
		python3 - "$work/json" >>"$work/out" 2>&1 <<-'END'
			import json, sys
			found = json.load(open(sys.argv[1]))
			assert found["operation"] == "broadcast" and found["ranks"] == 2, found
			assert found["root"] == 1 and found["redop"] == "none", found
			assert [row["bytes"] for row in found["sizes"]] == [1024, 4096], found
			for row in found["sizes"]:
			    for place in row["out_of_place"], row["in_place"]:
			        assert place["wrong"] == 0 and place["time_us"] > 0, row
			        assert abs(place["algbw"] - row["bytes"] / place["time_us"] / 1e3) < 1e-6
			        assert place["busbw"] == place["algbw"] and place["cycles"] > 0, row
			assert found["average_busbw"] > 0
		END
	report $? "JSON" "$work/out"
else
	skip "JSON" "no python3"
fi

refused "no operation given"
refused "unknown operation 'all_redcue'; did you mean 'all_reduce'?" all_redcue
refused "unknown operation 'frobnicate'; valid: all_reduce, all_gather," frobnicate
refused "unexpected argument 'gather'" all_gather gather
refused "unknown option '--rnks'; did you mean '--ranks'?" all_reduce --rnks 2
refused "unknown option '--frobnicate'; valid: --minbytes, --maxbytes" all_reduce --frobnicate
refused "option '-b' requires a value" all_reduce -b
refused "unexpected value '3': option '--json' takes none" all_reduce --json=3
refused "invalid size '4X' for -b" all_reduce -b 4X
refused "invalid size '0' for -e" all_reduce -e 0
refused "invalid size '17G' for -e: expected 1 to 16G bytes" all_reduce -e 17G
refused "-e 1024 is below -b 2048" all_reduce -b 2K -e 1K
refused "invalid value '1' for -f: expected a number from 2" all_reduce -f 1
refused "invalid value '65' for -n: expected a number from 1 to 64" all_reduce -n 65
refused "unknown format 'fp61'; did you mean 'fp16'?" all_reduce -d fp61
refused "unknown operator 'sun'; did you mean 'sum'?" all_reduce -o sun
refused "operator 'bor' does not exist for fp16" all_reduce -o bor
refused "operator 'avg' does not exist for int32" all_reduce -d int32 -o avg
refused "cannot reduce int8" reduce -d int8
refused "-r 2 is not a rank of 2" broadcast -r 2
refused "--local and --first require --id" all_reduce --local 1
refused "ranks 1 to 2 are not among 2" all_reduce --id "$work/id" --first 1 --local 2

# The others end with an error that names the rank, and the command says how it ended.
"$perf" all_reduce -b 1M -e 1M -n 3 -c 0 --iters=1000000 >"$work/out" 2>"$work/err" &
command=$!
for _ in 1 2 3 4 5 6 7 8 9 10; do
	sleep 1
	grep -q '^#' "$work/out" && break
done
children=$(cat "/proc/$command/task/$command/children" 2>/dev/null)
# shellcheck disable=SC2086
set -- $children
if [ $# = 3 ]; then
	kill -KILL "$2"
	wait "$command"
	got=$?
	[ $got = 1 ] && grep -q "rank 1 (process $2) was ended by signal 9" "$work/err" &&
		grep -q "^spyre-perf: rank 0: .*rank 1 (process $2" "$work/err" &&
		grep -q "^spyre-perf: rank 2: .*rank 1 (process $2" "$work/err"
	good=$?
	echo "exit status $got" >>"$work/err"
	report $good "a rank that is killed" "$work/err"
else
	kill "$command"
	if [ -n "$children" ]; then
		report 1 "a rank that is killed" "$work/err"
	else
		skip "a rank that is killed" "/proc has no lists of children"
	fi
fi
echo "1..$number"
