/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Integer types of the card model. The model is compiled into the kernel module and
 * into libspyre from the same files; only this header distinguishes the two.
 */
#ifndef SPYRE_MODEL_TYPES_H
#define SPYRE_MODEL_TYPES_H

#ifdef __KERNEL__
#include <linux/types.h>
#include <linux/build_bug.h>
#include <linux/errno.h>
#include <linux/string.h>
#else
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
#ifndef static_assert
#define static_assert _Static_assert
#endif
#endif

/*
 * Device memory is little endian on every host, since programs see elements of several
 * widths at the same address. Host memory, and the scratch of workers, has the host's order.
 */
#define SPYRE_BIG_ENDIAN (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

/* Between the two orders; they do nothing on a little-endian host. */
static inline u16 spyre_le16(u16 x)
{
	return SPYRE_BIG_ENDIAN ? __builtin_bswap16(x) : x;
}

static inline u32 spyre_le32(u32 x)
{
	return SPYRE_BIG_ENDIAN ? __builtin_bswap32(x) : x;
}

static inline u64 spyre_le64(u64 x)
{
	return SPYRE_BIG_ENDIAN ? __builtin_bswap64(x) : x;
}

#endif /* SPYRE_MODEL_TYPES_H */
