#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The uAPI headers by themselves: C and C++ with warnings on, no implicit padding,
# the same layout for 32-bit programs, and the ioctl numbers that were promised.
srcdir=${SPYRE_SRCDIR:-$(cd "$(dirname "$0")/../.." && pwd)}
header=$srcdir/include/uapi/drm/spyre_accel.h
CC=${CC:-cc}
CXX=${CXX:-c++}
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
drm=$(pkg-config --cflags-only-I libdrm 2>/dev/null | sed 's/-I/-isystem /g')
include="-I $srcdir/include/uapi ${drm:--isystem /usr/include/libdrm}"
n=0

check() {	# NAME COMMAND...
	name=$1
	shift
	n=$((n + 1))
	if "$@" >"$work/out" 2>&1; then
		echo "ok $n - $name"
	else
		echo "not ok $n - $name"
		sed 's/^/# /' "$work/out" | head -n 20
	fi
}

skip() {	# NAME WHY
	n=$((n + 1))
	echo "ok $n - $1 # SKIP $2"
}

echo '#include <drm/spyre_coredump.h>' >"$work/one.c"
cp "$work/one.c" "$work/one.cc"
# Twice in one file, and before anything else: guard and self-containment.
printf '#include <drm/spyre_coredump.h>\n#include <drm/spyre_accel.h>\n%s\n' \
	'#include <drm/spyre_coredump.h>' >"$work/two.c"
headers="$header ${header%accel.h}coredump.h"
fields() {	# STRUCT
	sed -n "/^struct $1 {\$/,/^};/s/^\t[a-z_0-9 ]* \([a-z0-9_]*\)\(\[.*\]\)\?;\$/\1/p" $headers
}
structs=$(sed -n 's/^struct \(drm_spyre_[a-z0-9_]*\) {$/\1/p' $headers)
{
	cat "$work/one.c"
	echo '#include <stddef.h>'
	for s in $structs; do
		echo "char size_${s}[sizeof(struct $s)];"
		echo "struct $s instance_of_$s;"
		# One more byte, since arrays cannot be empty.
		fields "$s" | while read -r field; do
			echo "char offset_${s}__${field}[offsetof(struct $s, $field) + 1];"
		done
	done
} >"$work/sizes.c"

warn="-Wall -Wextra -Wpedantic -Werror"
compile() {	# COMPILER ARGUMENT...
	# shellcheck disable=SC2086
	"$@" $warn $include -c -o "$work/object.o"
}

for std in c99 c11 gnu17; do
	check "compiles as $std" compile "$CC" -std=$std "$work/one.c"
done
check "may be included twice" compile "$CC" -std=c11 "$work/two.c"
if command -v "$CXX" >/dev/null; then
	for std in c++11 c++17; do
		check "compiles as $std" compile "$CXX" -std=$std "$work/one.cc"
	done
else
	skip "compiles as C++" "no $CXX"
fi

check "no implicit padding (-Wpadded)" compile "$CC" -std=c11 -Wpadded "$work/sizes.c"
sizes() {
	nm -S "$1" | awk '$4 ~ /^(size|offset)_/ { print $4, $2 }' | sed 's/ 0*/ /' | sort
}
sizes "$work/object.o" >"$work/sizes64"

# Every field of every struct: there is no hidden padding between two of them.
all_fields() {
	[ "$(grep -c '^offset_' "$work/sizes64")" -gt 150 ] || { wc -l "$work/sizes64"; return 1; }
}
check "every field has an offset" all_fields

multiple_of_8() {
	awk '/^offset_/ { next } { if (("0x" $2) !~ /[08]$/) { print $1, "is 0x" $2; bad = 1 } } END { exit bad || !NR }' \
		"$work/sizes64"
}
check "every size is a multiple of 8 bytes" multiple_of_8

no_holes() {
	# shellcheck disable=SC2086
	"$CC" -std=c11 -g $include -c "$work/sizes.c" -o "$work/debug.o" || return 1
	for s in $structs; do
		pahole -C "$s" "$work/debug.o" >"$work/$s" || return 1
		[ -s "$work/$s" ] || { echo "$s is not there"; return 1; }
		! grep -H -e 'XXX' -e 'holes:' -e ' padding: ' "$work/$s" || return 1
	done
}
if command -v pahole >/dev/null; then
	check "no holes (pahole)" no_holes
else
	skip "no holes (pahole)" "pahole is not installed (package dwarves)"
fi

if echo 'int x;' >"$work/x.c" && "$CC" -m32 -c "$work/x.c" -o "$work/x.o" 2>/dev/null; then
	# A 32-bit compiler may lack asm/ headers; those of the 64-bit one are the same.
	arch=$("$CC" -print-multiarch 2>/dev/null)
	m32="-m32 -idirafter /usr/include/$arch"
	# shellcheck disable=SC2086
	check "no implicit padding with -m32" compile "$CC" $m32 -std=c11 -Wpadded "$work/sizes.c"
	sizes "$work/object.o" >"$work/sizes32"
	check "sizes and offsets are the same with -m32" cmp "$work/sizes64" "$work/sizes32"
else
	skip "layout with -m32" "$CC has no -m32"
fi

# Numbers, sizes and directions never change.
cat >"$work/numbers.c" <<'EOF'
#include <drm/spyre_accel.h>
#define SAME(name, nr, size) \
	_Static_assert(DRM_IOCTL_SPYRE_##name == \
		       (3u << 30 | (unsigned)(size) << 16 | 'd' << 8 | (0x40 + (nr))), #name)
SAME(DEV_QUERY, 0, 16);
SAME(BO_CREATE, 1, 16);
SAME(BO_MMAP_OFFSET, 2, 16);
SAME(VM_BIND, 3, 40);	/* 24 before 1.2 */
SAME(PROGRAM_CREATE, 4, 72);
SAME(PROGRAM_DESTROY, 5, 8);
SAME(QUEUE_CREATE, 6, 24);	/* 16 before 1.2 */
SAME(QUEUE_DESTROY, 7, 8);
SAME(QUEUE_QUERY, 8, 32);
SAME(SUBMIT, 9, 56);
SAME(RESET, 10, 16);
SAME(CONTEXT_RESET, 11, 8);
SAME(BO_INFO, 12, 24);
_Static_assert(sizeof(struct drm_spyre_cb) == 120, "control block");
_Static_assert(sizeof(struct drm_spyre_cb_result) == 64, "result");
_Static_assert(sizeof(struct drm_spyre_dma) == 720, "DMA descriptor");
_Static_assert(sizeof(struct drm_spyre_peer_copy) == 64, "peer copy");
_Static_assert(sizeof(struct drm_spyre_sync) == 16, "sync");
_Static_assert(sizeof(struct drm_spyre_vm_bind_op) == 40, "VM_BIND operation");
_Static_assert(sizeof(struct drm_spyre_card_info) == 80, "card");
_Static_assert(sizeof(struct drm_spyre_memory_info) == 48, "memory");
_Static_assert(sizeof(struct drm_spyre_counters) == 184, "counters");
_Static_assert(sizeof(struct drm_spyre_context_info) == 248, "context");
_Static_assert(DRM_SPYRE_FORMAT_FP64 == 20 && DRM_SPYRE_CB_TIMESTAMP == 5 &&
	       DRM_SPYRE_CB_PEER_COPY == 6, "enums");
EOF
check "ioctl numbers and struct sizes" compile "$CC" -std=c11 "$work/numbers.c"

# Only fixed-width types: no bit fields, enums, bool, long, pointers or flexible tails.
plain_types() {
	! awk '/^struct drm_spyre_[a-z0-9_]* \{$/ { inside = 1; next } /^};/ { inside = 0 }
	       inside && !/^\t(__u8|__u16|__u32|__s32|__u64|__s64|struct drm_spyre_[a-z_]*) [a-z0-9_]*(\[[A-Z0-9_]*[A-Z0-9]\])?;$/ &&
	       !/^\t\/\*\*.*\*\/$/ { print FNR ": " $0; bad = 1 }
	       END { exit !bad }' "$header"
}
check "fields have fixed-width types and a comment each" plain_types

commented() {
	awk '/^struct drm_spyre_[a-z0-9_]* \{$/ { inside = 1; last = ""; next } /^};/ { inside = 0 }
	     inside && /;$/ && last !~ /\*\// { print FNR ": " $0; bad = 1 }
	     { last = $0 } END { exit bad }' "$header"
}
check "every field is documented" commented
echo "1..$n"
