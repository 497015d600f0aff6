#!/bin/sh
# SPDX-License-Identifier: MIT
#
# One list of public functions: what libspyre.map exports, what the built
# library exports, what the headers declare and what has a manual page.
set -u
src=${SPYRE_SRCDIR:?} build=${SPYRE_BUILDDIR:?}
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
. "$src/tests/tap.sh"
map=$src/libspyre/libspyre.map
lib=$build/libspyre/.libs/libspyre.so
[ -e "$lib" ] || lib=$build/.libs/libspyre.so

echo 1..5
sed -n 's/^[[:space:]]*\(spyre_[a-z0-9_]*\);$/\1/p' "$map" | LC_ALL=C sort >"$work/map"
export LC_ALL=C

# The map itself: only functions, sorted, without duplicates.
sed -n 's/^[[:space:]]*\(spyre_[a-z0-9_]*\);$/\1/p' "$map" | LC_ALL=C sort -u >"$work/map-unique"
same "libspyre.map has no duplicates" "$work/map" "$work/map-unique"

if command -v nm >/dev/null && [ -e "$lib" ]; then
	# Skips version nodes and the symbols of sanitizers.
	nm -D --defined-only "$lib" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' |
		grep -vE '^(__asan_|__ubsan_|__tsan_|__odr_asan|_init$|_fini$)' | sort >"$work/lib"
	same "the library exports libspyre.map and nothing else" "$work/map" "$work/lib"
else
	skip "the library exports libspyre.map and nothing else" "nm or the shared library is missing"
fi

# A declaration may span lines: SPYRE_API … name(.
cat "$src"/include/spyre/*.h | grep -v '^#' | tr '\n\t' '  ' | grep -o 'SPYRE_API [^(]*(' |
	sed 's/.*[ *]\([a-z0-9_]*\)($/\1/' | sort >"$work/headers"
same "the headers declare libspyre.map and nothing else" "$work/map" "$work/headers"

if [ -e "$build/docs/man3/stamp" ]; then
	ls "$build/docs/man3" | sed -n 's/^\(spyre_.*\)\.3$/\1/p' | sort >"$work/man"
	same "each function has a manual page" "$work/map" "$work/man"
else
	skip "each function has a manual page" "python3 is missing"
fi

sed -n 's/^ \(spyre_[a-z0-9_]*\)@.*/\1/p' "$src/debian/libspyre0.symbols" | sort >"$work/debian"
same "debian/libspyre0.symbols lists libspyre.map" "$work/map" "$work/debian"
