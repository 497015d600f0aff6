#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Runs in an emulated arm64 machine as root, with spyre_vdev.ko loaded, on behalf of
# 'scripts/test cross': a test of each layer, as root and as a plain user. Prints TAP.
#
# SPYRE_PROGRAMS: the programs below tests/. SPYRE_EMBEDDED_PROGRAMS: those for an embedded card,
# whose memory consists of the host's pages. SPYRE_DIGITS: the checksum of examples/digits.
set -u
src=${SPYRE_SRCDIR:?} build=${SPYRE_BUILDDIR:?}
export CK_TIMEOUT_MULTIPLIER=20 SPYRE_TIMEOUT_MS=60000
. "$src/tests/vm/lib.sh"

[ "$(cat /sys/devices/platform/spyre_vdev.0/unit)" = neon ]
verdict $? "the module computes with neon"
for who in $users; do
	for program in $SPYRE_PROGRAMS; do
		run "$who" "${program##*/}" "$build/tests/$program"
	done
	for program in $SPYRE_EMBEDDED_PROGRAMS; do
		run "$who" "${program##*/} on the embedded card" env SPYRE_BACKEND=embedded \
			"$build/tests/$program"
	done
done
sum=$("$build/examples/digits/digits" | sed -n 's/^output checksum *//p')
[ -n "$sum" ] && [ "$sum" = "${SPYRE_DIGITS:?}" ]
verdict $? "digits has checksum $SPYRE_DIGITS on the card (${sum:-none})"
rmmod spyre_vdev
verdict $? "the module unloads"
[ ! -e "$node" ]
verdict $? "unloading removes the node"
