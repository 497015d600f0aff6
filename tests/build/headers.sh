#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Each public header is self-contained: strict C11, C17 and C++, as the first and
# only include, without warnings.
set -u
src=${SPYRE_SRCDIR:?}
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
. "$src/tests/tap.sh"
CC=${CC:-cc} CXX=${CXX:-c++}
flags="-pedantic -Wall -Wextra -Wundef -Werror -fsyntax-only -I$src/include"
drm=$(${PKG_CONFIG:-pkg-config} --cflags libdrm 2>/dev/null)

set -- "$src"/include/spyre/*.h "$src"/include/uapi/drm/*.h
echo "1..$(($# * 3))"
for header; do
	name=${header#"$src"/include/}
	# The kernel's headers use extensions of ISO C++, so they are system headers here.
	quiet=
	case $name in uapi/*) quiet="-I$src/include/uapi $drm" ;; esac
	printf '#include <%s>\nint spyre_unit_not_empty;\n' "$name" >"$work/a.c"
	cp "$work/a.c" "$work/a.cc"
	try "$name in C11" $CC -std=c11 $flags $quiet "$work/a.c"
	try "$name in C17" $CC -std=c17 $flags $quiet "$work/a.c"
	if command -v "$CXX" >/dev/null; then
		try "$name in C++" $CXX -std=c++11 $flags $quiet "$work/a.cc"
	else
		skip "$name in C++" "no C++ compiler"
	fi
done
