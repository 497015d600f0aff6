#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The compiler flags of the build work at every level of optimization that 'make CFLAGS='
# may ask for, and fortify the calls of libc where there is any.
set -u
build=${SPYRE_BUILDDIR:?} src=${SPYRE_SRCDIR:?}
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
. "$src/tests/tap.sh"

# variable NAME: its value in the Makefile. A make above may want its folders announced.
variable() {
	printf 'include Makefile\nspyre-print:\n\t@echo "value: $(%s)"\n' "$1" |
		make -s -C "$build" -f - spyre-print | sed -n 's/^value: //p'
}

cat >"$work/a.c" <<'END'
#include <stdio.h>
#include <string.h>

#if defined(_FORTIFY_SOURCE) && !defined(__OPTIMIZE__)
#error glibc warns here, except for that of Debian and Ubuntu
#endif

int main(int argc, char **argv)
{
	char text[8];

	strcpy(text, argv[argc - 1]);
	return puts(text) < 0;
}
END

compiles() { (cd "$build" && $cc $flags -Werror $1 -c -o "$work/a.o" "$work/a.c"); }
is_fortified() { compiles "$1" && nm "$work/a.o" | grep -q '__strcpy_chk$'; }

echo 1..5
cc=$(variable CC) flags=$(variable AM_CFLAGS)
for level in -O0 -Og -O2; do
	try "sources compile with CFLAGS=$level" compiles $level
done
try "sources compile without CFLAGS" compiles ''
case $flags in
*fortify.h*) try "calls of libc are fortified with CFLAGS=-O2" is_fortified -O2 ;;
*) skip "calls of libc are fortified with CFLAGS=-O2" "the build has no hardening, or a level of its own" ;;
esac
