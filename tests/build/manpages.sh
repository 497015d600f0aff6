#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The manual pages read cleanly.
build=${SPYRE_BUILDDIR:?}
if ! command -v mandoc >/dev/null; then
	echo "1..0 # SKIP no mandoc"
	exit 0
fi
if [ ! -e "$build/docs/man3/stamp" ]; then
	echo "1..0 # SKIP no manual pages: no python3 to make them with"
	exit 0
fi
echo 1..1
# Pages refer to each other, which mandoc looks for among the installed ones.
found=$(mandoc -Tlint "$build"/docs/man3/*.3 | grep -v 'referenced manual not found')
if [ -z "$found" ]; then
	echo "ok 1 - mandoc -Tlint has nothing to say"
else
	echo "not ok 1 - mandoc -Tlint has nothing to say"
	echo "$found" | head -n 20 | sed 's/^/# /'
fi
