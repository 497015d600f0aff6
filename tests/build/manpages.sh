#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Checks the manual pages with mandoc.
build=${SPYRE_BUILDDIR:?}
if ! command -v mandoc >/dev/null; then
	echo "1..0 # SKIP no mandoc"
	exit 0
fi
if [ ! -e "$build/docs/man3/stamp" ]; then
	echo "1..0 # SKIP no manual pages: python3 is missing"
	exit 0
fi
echo 1..1
# Ignores references between pages, which mandoc resolves in installed pages only.
found=$(mandoc -Tlint "$build"/docs/man3/*.3 | grep -v 'referenced manual not found')
if [ -z "$found" ]; then
	echo "ok 1 - mandoc -Tlint reports nothing"
else
	echo "not ok 1 - mandoc -Tlint reports nothing"
	echo "$found" | head -n 20 | sed 's/^/# /'
fi
