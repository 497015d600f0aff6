/* SPDX-License-Identifier: MIT */
/* The bytes of device memory and of files, which are little endian on every host. */
#ifndef TESTS_ORDER_H
#define TESTS_ORDER_H

#include <stddef.h>
#include <stdint.h>

#define BIG_ENDIAN_HOST (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

static inline uint64_t get_le(const void *p, size_t bytes)
{
	const uint8_t *at = (const uint8_t *)p;
	uint64_t value = 0;

	while (bytes--)
		value = value << 8 | at[bytes];
	return value;
}

static inline void put_le(void *p, uint64_t value, size_t bytes)
{
	uint8_t *at = (uint8_t *)p;

	for (size_t i = 0; i < bytes; i++, value >>= 8)
		at[i] = (uint8_t)value;
}

/* Converts @count numbers of @bytes each in place between the host's order and little endian. */
static inline void order_le(void *p, size_t count, size_t bytes)
{
	uint8_t *at = (uint8_t *)p;

	for (size_t n = 0; BIG_ENDIAN_HOST && n < count; n++, at += bytes)
		for (size_t i = 0; i < bytes / 2; i++) {
			uint8_t byte = at[i];

			at[i] = at[bytes - 1 - i];
			at[bytes - 1 - i] = byte;
		}
}

#endif /* TESTS_ORDER_H */
