# SPDX-License-Identifier: MIT
# A separate 32-bit program; it uses no library and none of the other flags.
COMPAT_CFLAGS = -m32 -O1 -std=gnu11 -Wall -Wextra -ffreestanding -fno-pie -fno-stack-protector \
	-fno-builtin -mno-sse -nostdlib -static -no-pie
EXTRA_DIST += tests/abi/compat.c
if HAVE_M32
check_SCRIPTS = tests/abi/abi-compat
CLEANFILES += tests/abi/abi-compat
tests/abi/abi-compat: tests/abi/compat.c include/uapi/drm/spyre_accel.h
	$(AM_V_CCLD)$(CC) $(COMPAT_CFLAGS) -I$(top_srcdir)/include/uapi $(LIBDRM_CFLAGS) \
	  -idirafter /usr/include/`$(CC) -print-multiarch` -o $@ $(srcdir)/tests/abi/compat.c
endif
