#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Requests to tests/conformance/serve: elements are little endian on its pipes, and a tensor that the
# library refuses leaves the request after it alone.
set -u
src=${SPYRE_SRCDIR:?} build=${SPYRE_BUILDDIR:?}
. "$src/tests/tap.sh"
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
export SPYRE_BACKEND=embedded
serve() { "$build/tests/conformance/serve" >"$work/out" 2>&1; }
layout='SEN169_FP16 2 1 64 64 1'

echo 1..2
address=$(echo 'alloc 128' | "$build/tests/conformance/serve" | sed -n 's/^ok //p')
# 1 and 2 in fp16.
tensor="$address $layout IEEE_FP16 1 2"
printf 'alloc 128\nput %s\n\000\074\000\100get %s\n' "$tensor" "$tensor" | serve
printf 'ok %s\nok 0\nok 4\n\000\074\000\100' "$address" | cmp - "$work/out"
result $? "elements come back as they went"
printf 'put 4096 %s IEEE_FP16 2 -2 -3\n0123456789abbytes %s\n' "$layout" "$layout" | serve &&
	[ "$(sed -n '1s/ .*//p; 2p' "$work/out" | tr '\n' ' ')" = 'error ok 128 ' ]
result $? "the bytes of a refused tensor are skipped"
exit "$failed"
