#!/bin/sh
# SPDX-License-Identifier: MIT
#
# examples/digits: accuracy, agreement, the same bytes each time, errors.
set -u
digits=${SPYRE_BUILDDIR:?}/examples/digits/digits
data=${SPYRE_SRCDIR:?}/examples/digits
. "${SPYRE_SRCDIR:?}/tests/tap.sh"
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
value() { # NAME: the number after it in the output
	awk -v name="$1" 'index($0, name) == 1 { print substr($0, 19) + 0; exit }' "$work/out"
}
checksum() {
	sed -n 's/^output checksum *//p' "$work/out"
}
at_least() {
	awk -v a="$1" -v b="$2" 'BEGIN { exit !(a >= b) }'
}

TMPDIR="$work" "$digits" >"$work/out" 2>&1
report $? "digits" "$work/out"
at_least "$(value accuracy)" 0.95
report $? "accuracy" "$work/out"
at_least "$(value agreement)" 0.99
report $? "agreement with fp32" "$work/out"
[ "$(value launches)" = 50 ]
report $? "launches: 10 batches of 5 bundles" "$work/out"
! ls "$work"/digits-* >/dev/null 2>&1
report $? "the temporary bundles are gone"
first=$(checksum)

TMPDIR="$work" "$digits" --repeat 3 --bundles "$work/bundles" --verbose >"$work/out" 2>&1 &&
	[ -n "$first" ] && [ "$(checksum)" = "$first" ] && [ "$(value launches)" = 150 ]
report $? "the same checksum in every pass" "$work/out"
[ -s "$work/bundles/0_matmul/bundle.mlir" ] && [ -s "$work/bundles/4_bias/sdsc_0.json" ]
report $? "bundles are kept in the requested folder"

"$digits" --batch 1 >"$work/out" 2>&1 && [ "$(checksum)" = "$first" ] &&
	[ "$(value launches)" = 2995 ]
report $? "one image a batch gives the same bytes" "$work/out"
SPYRE_UNIT=scalar "$digits" --batch 128 --seconds 1 >"$work/out" 2>&1 &&
	[ "$(checksum)" = "$first" ] && [ "$(value 'host time')" != 0 ]
report $? "the scalar unit gives the same bytes, for a second" "$work/out"

mkdir "$work/data"
cp "$data/digits.u8" "$work/data"
"$digits" --data "$work/data" >"$work/out" 2>&1
[ $? = 1 ] && grep -q "weights.f16: No such file" "$work/out"
report $? "missing weights" "$work/out"
head -c 1000 "$data/weights.f16" >"$work/data/weights.f16"
"$digits" --data "$work/data" >"$work/out" 2>&1
[ $? = 1 ] && grep -q "1000 bytes, its header promises 19244" "$work/out"
report $? "truncated weights" "$work/out"
# Untrained weights must fail the accuracy limits.
{ head -c 24 "$data/weights.f16"; head -c 19220 /dev/zero; } >"$work/data/weights.f16"
"$digits" --data "$work/data" >"$work/out" 2>&1
[ $? = 1 ] && grep -q "are expected" "$work/out"
report $? "a useless network fails" "$work/out"
"$digits" --batch 0 >"$work/out" 2>&1
[ $? = 2 ]
report $? "bad usage" "$work/out"
echo "1..$number"
