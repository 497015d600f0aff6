#!/bin/sh
# SPDX-License-Identifier: MIT
# The header of the kernel ABI stands alone in C and C++, its structs have no
# holes and are the same for 32-bit and 64-bit callers.
set -u
src=${SPYRE_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
header=$src/include/uapi/drm/spyre_accel.h
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
drm=$(pkg-config --cflags libdrm 2>/dev/null || echo -I/usr/include/libdrm)
number=0
failed=0

result() {
	number=$((number + 1))
	if [ "$1" = 0 ]; then
		echo "ok $number - $2"
	else
		failed=1
		echo "not ok $number - $2"
		sed 's/^/# /' "$work/log"
	fi
}

skip() {
	number=$((number + 1))
	echo "ok $number - $1 # SKIP $2"
}

echo '#include <drm/spyre_accel.h>' >"$work/alone.c"
# shellcheck disable=SC2086
for std in c90 c11 gnu17; do
	gcc -std=$std -Wall -Wextra -Werror -fsyntax-only -I"$src/include/uapi" $drm \
		"$work/alone.c" >"$work/log" 2>&1
	result $? "compiles alone as $std"
done
if command -v g++ >/dev/null; then
	# shellcheck disable=SC2086
	g++ -std=c++11 -Wall -Wextra -Werror -fsyntax-only -I"$src/include/uapi" $drm \
		-x c++ "$work/alone.c" >"$work/log" 2>&1
	result $? "compiles alone as C++11"
else
	skip "compiles alone as C++11" "no g++"
fi

structs=$(sed -n 's/^struct \(drm_spyre_[a-z_]*\) {$/\1/p' "$header")
{
	cat "$work/alone.c"
	for name in $structs; do
		echo "struct $name ${name}_; int size_of_$name[sizeof(struct $name)];"
		# as large as its alignment says: no padding at the end for any caller
		echo "_Static_assert(sizeof(struct $name) % 8 == 0 || __alignof__(struct $name) < 8, \"$name\");"
	done
} >"$work/all.c"
# shellcheck disable=SC2086
gcc -g -c -I"$src/include/uapi" $drm -o "$work/all64.o" "$work/all.c" >"$work/log" 2>&1
result $? "every struct is padded to its alignment"

if command -v pahole >/dev/null; then
	: >"$work/log"
	for name in $structs; do
		pahole -C "$name" "$work/all64.o" |
			grep -E 'XXX|hole|padding:' | sed "s/^/$name: /" >>"$work/log"
	done
	[ ! -s "$work/log" ]
	result $? "no struct has a hole"
else
	skip "no struct has a hole" "no pahole"
fi

# -m32 needs no 32-bit libraries to make an object; sizes are array lengths.
sizes() {
	nm -S --defined-only "$1" | awk '$4 ~ /^size_of_/ { print $4, $2 }' |
		sed 's/ 0*/ /' | sort
}
# shellcheck disable=SC2086
if gcc -m32 -c -I"$src/include/uapi" $drm -I"/usr/include/$(gcc -print-multiarch)" \
	-o "$work/all32.o" "$work/all.c" 2>"$work/log"; then
	sizes "$work/all64.o" >"$work/sizes64"
	sizes "$work/all32.o" >"$work/sizes32"
	[ -s "$work/sizes64" ] && diff "$work/sizes64" "$work/sizes32" >"$work/log"
	result $? "-m32 and -m64 have the same sizes"
else
	skip "-m32 and -m64 have the same sizes" "the compiler has no -m32"
fi
echo "1..$number"
exit $failed
