#!/bin/sh
# SPDX-License-Identifier: MIT
#
# spyre trace: what programs did on the cards, and files that are no traces.
set -u
spyre=${SPYRE_BUILDDIR:?}/tools/spyre/spyre
perf=${SPYRE_BUILDDIR:?}/tools/spyre-perf
. "${SPYRE_SRCDIR:?}/tests/tap.sh"
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 99

# says TEXT: $work/out contains it.
says() { grep -qF -e "$1" "$work/out"; }

"$spyre" build matmul -i 64x128@fp16 -i 128x64@fp16 mm >"$work/out" 2>&1 &&
	"$spyre" launch -i 64x128@fp16 -i 128x64@fp16 -o 64x64@fp16 --seed 3 --json mm >plain
"$spyre" trace run -o t.json -- "$spyre" launch -i 64x128@fp16 -i 128x64@fp16 -o 64x64@fp16 \
	--seed 3 --repeat 5 --json mm >"$work/out" 2>&1 &&
	grep -q '^kernel  *0_.* 5 ' "$work/out" && says 'copy to the device' && says 'wrote t.json'
report $? "kernels and copies of a program" "$work/out"
checksum() { grep -o '"checksum":"[0-9a-f]*"' "$1"; }
[ -n "$(checksum plain)" ] && [ "$(checksum plain)" = "$(checksum out)" ]
report $? "the same bits with a trace" "$work/out"

"$spyre" trace run --cores -o cores.json -- "$spyre" launch -i 64x128@fp16 -i 128x64@fp16 \
	-o 64x64@fp16 --seed 3 --json mm >"$work/out" 2>&1 &&
	[ "$(checksum plain)" = "$(checksum out)" ] && grep -q '"name":"core 03 PT"' cores.json &&
	grep -q '"cat":"phase","name":"0_' cores.json
report $? "the time of cores, with the same bits" "$work/out"
SPYRE_TRACE=bad.json SPYRE_TRACE_LEVEL=core "$spyre" info >"$work/out" 2>&1
[ $? = 0 ] && says 'unknown SPYRE_TRACE_LEVEL; valid: operations, cores' && ! [ -e bad.json ]
report $? "an unknown level" "$work/out"

"$spyre" trace run -o c.json -- "$perf" -t -n 2 -b 4K -e 4K all_reduce >"$work/out" 2>&1 &&
	grep -q '^collective  *all_reduce ' "$work/out"
report $? "collectives" "$work/out"

mkdir inner
"$spyre" trace run -o relative.json sh -c 'cd inner && exec "$0" info' "$spyre" >"$work/out" 2>&1
[ $? = 0 ] && [ -s relative.json ]
report $? "a program that changes its directory" "$work/out"

"$spyre" trace run -- sh -c 'exit 7' >"$work/out" 2>&1
[ $? = 7 ] && says 'there is no trace spyre-trace.json: the program has opened no card'
report $? "the exit code of a program without a trace" "$work/out"
"$spyre" trace run -- sh -c 'kill -TERM $$' >"$work/out" 2>&1
[ $? = 143 ]
report $? "the exit code of a program that a signal ended" "$work/out"
"$spyre" trace run -- ./missing >"$work/out" 2>&1
[ $? = 127 ] && says 'cannot run ./missing: No such file'
report $? "a program that is missing" "$work/out"
mkfifo pipe && ln -s relative.json link || exit 99
"$spyre" trace run -o pipe -- true >"$work/out" 2>&1
[ $? = 2 ] && says 'cannot replace pipe: it is not a regular file' && [ -p pipe ] &&
	! "$spyre" trace run -o link -- true >"$work/out" 2>&1 && [ -L link ]
report $? "a device or link keeps its name in trace run" "$work/out"
"$spyre" trace merge -o pipe relative.json >"$work/out" 2>&1
[ $? = 2 ] && says 'cannot replace pipe: it is not a regular file' && [ -p pipe ]
report $? "a device keeps its name in trace merge" "$work/out"
"$spyre" trace run >"$work/out" 2>&1
[ $? = 2 ] && says 'no command to run'
report $? "no program" "$work/out"
"$spyre" trace rin >"$work/out" 2>&1
[ $? = 2 ] && says "unknown action 'rin'; valid: run, merge"
report $? "an unknown action" "$work/out"
echo "1..$number"
