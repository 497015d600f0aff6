/* SPDX-License-Identifier: MIT */
/*
 * Helpers shared by the tests of the runtime. They use the public interface, so
 * that the same programs run on either backend (SPYRE_BACKEND=embedded or drm).
 */
#ifndef RUNTIME_CHECK_H
#define RUNTIME_CHECK_H

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <spyre/spyre.h>

#include "suite.h"

#define ck_ok(call) \
	do { \
		spyre_status ck_status = (call); \
		ck_assert_msg(ck_status == SPYRE_SUCCESS, "%s: %s: %s", #call, \
			      spyre_status_name(ck_status), spyre_last_error()); \
	} while (0)

#define ck_status(call, want) \
	do { \
		spyre_status ck_got = (call); \
		ck_assert_msg(ck_got == (want), "%s: %s instead of %s: %s", #call, \
			      spyre_status_name(ck_got), spyre_status_name(want), \
			      spyre_last_error()); \
	} while (0)

/* The thread's error text must contain @part. */
#define ck_mentions(part) \
	ck_assert_msg(strstr(spyre_last_error(), (part)), "\"%s\" does not mention \"%s\"", \
		      spyre_last_error(), (part))

static inline spyre_context *open_card(void)
{
	spyre_context *context;

	ck_ok(spyre_context_create(0, 0, &context));
	return context;
}

static inline spyre_stream *get_stream(spyre_context *context, int id)
{
	spyre_stream *stream;

	ck_ok(spyre_stream_get(context, id, &stream));
	return stream;
}

/*
 * Sets @limit to a time in ms that this copy exceeds and small work does not: both take many
 * times as long on a debug kernel, under an emulator. The first copy populates the memory, which
 * no limit includes.
 */
static inline void limit_below_copy(spyre_stream *stream, spyre_devptr to, spyre_devptr from,
				    uint64_t bytes, char *limit, size_t size)
{
	struct timespec begin, end;
	long ms;

	for (int i = 0; i < 2; i++) {
		clock_gettime(CLOCK_MONOTONIC, &begin);
		ck_ok(spyre_memcpy_d2d_async(stream, to, from, bytes));
		ck_ok(spyre_stream_synchronize(stream));
		clock_gettime(CLOCK_MONOTONIC, &end);
	}
	ms = (end.tv_sec - begin.tv_sec) * 1000 + (end.tv_nsec - begin.tv_nsec) / 1000000;
	snprintf(limit, size, "%ld", ms / 3 > 1 ? ms / 3 : 1);
}

static inline spyre_memory_info memory_info(spyre_context *context)
{
	spyre_memory_info info = { .struct_size = sizeof(info) };

	ck_ok(spyre_mem_info(context, &info));
	ck_assert_uint_eq(info.free + info.used, info.total);
	return info;
}

/* xorshift64*: the same numbers on every machine. */
static inline uint64_t random_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dull;
}

static inline void random_bytes(void *buffer, size_t bytes, uint64_t seed)
{
	uint64_t state = seed * 2 + 1, value = 0;

	for (size_t i = 0; i < bytes; i++) {
		if (i % 8 == 0)
			value = random_next(&state);
		((uint8_t *)buffer)[i] = value >> i % 8 * 8;
	}
}

/*
 * Returns true if all @n words are @value. Asserting each would be slow: Check
 * writes a record to its runner for every assertion.
 */
static inline bool all_words(const uint32_t *words, size_t n, uint32_t value)
{
	for (size_t i = 0; i < n; i++)
		if (words[i] != value)
			return false;
	return true;
}

static inline bool is_embedded(spyre_context *context)
{
	spyre_device_properties properties = { .struct_size = sizeof(properties) };

	ck_ok(spyre_context_get_properties(context, &properties));
	return properties.backend == SPYRE_BACKEND_EMBEDDED;
}

static inline int run_suite(const char *name, TCase *tests)
{
	Suite *suite = suite_create(name);

	/* The timeout is generous, because emulators and sanitizers are slow. */
	tcase_set_timeout(tests, 300);
	suite_add_tcase(suite, tests);
	return suite_run(suite);
}

#endif /* RUNTIME_CHECK_H */
