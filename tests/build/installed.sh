#!/bin/sh
# SPDX-License-Identifier: MIT
#
# make installcheck: the installed tree suffices to build and run a program,
# in C and in C++, with pkg-config alone. Arguments: pkgconfigdir
# mandir bindir docdir, each with DESTDIR in front.
set -u
src=${SPYRE_SRCDIR:?} root=${SPYRE_ROOT-}
pkgconfigdir=$1 mandir=$2 bindir=$3 docdir=$4
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
. "$src/tests/tap.sh"
CC=${CC:-cc} CXX=${CXX:-c++}
export PKG_CONFIG_PATH="$pkgconfigdir" PKG_CONFIG_SYSROOT_DIR="$root"
pc=${PKG_CONFIG:-pkg-config}

cflags=$($pc --cflags libspyre) libs=$($pc --libs libspyre) || exit 1
libdir=$root$($pc --variable=libdir libspyre)
case $($pc --variable=libdir libspyre) in "$root"/*) libdir=$($pc --variable=libdir libspyre) ;; esac
cp "$src/tests/build/consumer.c" "$work/consumer.c"
cp "$src/tests/build/consumer.c" "$work/consumer.cc"
# Clients need neither headers nor .pc files of the libraries that libspyre links with.
alone() {
	PKG_CONFIG_PATH='' PKG_CONFIG_LIBDIR="$pkgconfigdir" $pc "$@" libspyre
}
names_no_other() {
	out=$(alone --static --cflags --libs) && case $out in *drm*|*yyjson*|*xxhash*) false ;; esac
}
try "libspyre.pc requires no other package" alone --cflags --libs --static
try "libspyre.pc passes on no flags of other packages" names_no_other
san=${SPYRE_SAN_CFLAGS-}
try "a C program builds through pkg-config" \
	$CC -std=c11 -pedantic -Wall -Werror $san $cflags "$work/consumer.c" -o "$work/c" $libs
try "the C program runs" env LD_LIBRARY_PATH="$libdir" SPYRE_BACKEND=embedded "$work/c"
if command -v "$CXX" >/dev/null; then
	try "a C++ program builds through pkg-config" \
		$CXX -Wall -Werror $san $cflags "$work/consumer.cc" -o "$work/cc" $libs
	try "the C++ program runs" env LD_LIBRARY_PATH="$libdir" SPYRE_BACKEND=embedded "$work/cc"
else
	skip "a C++ program builds" "no C++ compiler"
fi
# The libraries for the public front-end: their headers and they themselves, by the variables alone.
in_compat() { env LD_LIBRARY_PATH="$compat/lib" SPYRE_BACKEND=embedded "$@"; }
prints_variables() {
	sed "s|^dir='|&$root|" "$bindir/spyre-compat-env" >"$work/compat-env" &&
		(eval "$(sh "$work/compat-env")" && [ "$RUNTIME_INSTALL_DIR" = "$compat" ]) &&
		[ "$(sh "$work/compat-env" printenv SEN_COMMON_HEADERS)" = "$compat/include" ]
}
compat=$libdir/spyre-compat
if [ -e "$compat/lib/libflex.so" ]; then
	try "spyre-compat-env sets the variables" prints_variables
	try "a program builds with the libraries of spyre-compat" \
		$CXX -std=c++20 -Wall -Werror $san -I"$compat/include" "$src/compat/tests/installed.cpp" \
		-o "$work/compat" -L"$compat/lib" -lsendnn -lsendnn_interface -lflex
	try "it runs, and libspyre is found" in_compat "$work/compat"
else
	skip "the libraries of spyre-compat" "configured without them"
fi
# Errors and findings refer to docs/NAME.md.
named_docs() {
	cat "$libdir"/libspyre.so.?* "$bindir"/spyre "$bindir"/spyre-perf "$bindir"/spyre-smi \
		"$bindir"/dxp_standalone |
		tr -c '[:print:]' '\n' | grep -o 'docs/[a-z0-9-]*\.md' | sort -u >"$work/named"
	grep -qx 'docs/unsupported.md' "$work/named" || {
		echo "no program refers to docs/unsupported.md: the search is wrong"
		return 1
	}
	missing=0
	while read -r doc; do
		[ -s "$docdir/$doc" ] || { echo "cannot find $doc in $docdir"; missing=1; }
	done <"$work/named"
	return $missing
}
try "every document that a program names is installed" named_docs
cp "$src/examples/add/add.c" "$src/examples/add/Makefile" "$work"
try "examples/add builds with its Makefile" \
	make -C "$work" CC="$CC" PKG_CONFIG="$pc" CFLAGS="-Wall -Wextra -Werror $san" add
try "examples/add computes" env LD_LIBRARY_PATH="$libdir" SPYRE_BACKEND=embedded "$work/add" "$work/bundle"
# The Python package: Python's headers, cffi, setuptools and numpy are not part of the installation.
python=${PYTHON:-/usr/bin/python3}
builds_extensions() {
	"$python" -c 'import os, sysconfig, cffi, numpy, setuptools
assert os.path.exists(sysconfig.get_paths()["include"] + "/Python.h")' 2>/dev/null
}
in_python() {
	env LD_LIBRARY_PATH="$libdir" SPYRE_BACKEND=embedded PYTHONPATH="$work/python" "$python" "$@"
}
build_python() { cd "$work/python" && "$python" setup.py -q build_ext --inplace; }
if [ -n "$san" ]; then
	skip "the Python package" "Python itself has no sanitizer"
elif builds_extensions; then
	cp -r "$src/python" "$work/python"
	try "the Python package builds" build_python
	try "the tests of the Python package pass" in_python "$src/tests/python/test_spyre.py"
	try "examples/add/add.py computes" in_python "$src/examples/add/add.py" "$work/bundle.py"
else
	skip "the Python package" "$python lacks cffi, setuptools, numpy or its headers"
fi
if [ -e "${SPYRE_BUILDDIR:-.}/docs/man3/stamp" ]; then
	try "the manual page of spyre_launch is installed" test -s "$mandir/man3/spyre_launch.3"
fi
exit $failed
