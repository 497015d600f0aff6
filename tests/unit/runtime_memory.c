/* SPDX-License-Identifier: MIT */
/* Device and pinned memory: allocation, zeroing, queries, exhaustion. */
#include <stdio.h>

#include "runtime_check.h"

#define MIB (1ull << 20)

static bool all_zero(const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (bytes[i])
			return false;
	return true;
}

START_TEST(rounding)
{
	static const uint64_t sizes[][2] = {
		{ 1, 128 }, { 128, 128 }, { 129, 256 }, { MIB - 1, MIB }, { MIB, MIB },
		{ MIB + 1, MIB + 128 }, { 5 * MIB + 4097, 5 * MIB + 4224 },
	};
	spyre_context *context = open_card();
	spyre_pointer_info info = { .struct_size = sizeof(info) };
	spyre_devptr address[7], none = 1;
	/* A plain user's context reports memory that is reserved for other users as used. */
	const uint64_t before = memory_info(context).used;
	uint64_t sum = 0;

	ck_ok(spyre_mem_alloc(context, 0, &none));
	ck_assert_uint_eq(none, 0);
	ck_ok(spyre_mem_free(context, 0));
	for (int i = 0; i < 7; i++) {
		ck_ok(spyre_mem_alloc(context, sizes[i][0], &address[i]));
		ck_assert_uint_ge(address[i], 4096);
		ck_assert_uint_eq(address[i] % 128, 0);
		ck_ok(spyre_pointer_query(context, address[i], &info));
		ck_assert_int_eq(info.kind, SPYRE_MEMORY_DEVICE);
		ck_assert_uint_eq(info.size, sizes[i][1]);
		sum += sizes[i][1];
	}
	ck_assert_uint_eq(memory_info(context).context_used, sum);
	ck_assert_uint_eq(memory_info(context).allocations, 7);
	ck_assert_uint_ge(memory_info(context).used, sum);
	for (int i = 0; i < 7; i++)
		ck_ok(spyre_mem_free(context, address[i]));
	ck_assert_uint_eq(memory_info(context).context_used, 0);
	ck_assert_uint_eq(memory_info(context).context_peak, sum);
	/* At most one empty chunk is kept. */
	ck_assert_uint_le(memory_info(context).used, before + 2 * MIB);
	ck_ok(spyre_context_destroy(context));
}
END_TEST

START_TEST(interior)
{
	spyre_context *context = open_card();
	spyre_pointer_info info = { .struct_size = sizeof(info) };
	const uint64_t sizes[] = { 128, 1024, 300000, 3 * MIB };
	spyre_devptr address[4];

	for (int i = 0; i < 4; i++)
		ck_ok(spyre_mem_alloc(context, sizes[i], &address[i]));
	for (int i = 0; i < 4; i++) {
		uint64_t size = (sizes[i] + 127) / 128 * 128;
		uint64_t offsets[] = { 0, 1, 127, size / 2, size - 1 };

		for (int k = 0; k < 5; k++) {
			ck_ok(spyre_pointer_query(context, address[i] + offsets[k], &info));
			ck_assert_int_eq(info.kind, SPYRE_MEMORY_DEVICE);
			ck_assert_uint_eq(info.base, address[i]);
			ck_assert_uint_eq(info.size, size);
			ck_assert_uint_eq(info.offset, offsets[k]);
		}
		ck_ok(spyre_pointer_query(context, address[i] + size, &info));
		ck_assert_uint_ne(info.base, address[i]);
	}
	ck_ok(spyre_pointer_query(context, 0, &info));
	ck_assert_int_eq(info.kind, SPYRE_MEMORY_UNKNOWN);
	ck_ok(spyre_pointer_query(context, UINT64_MAX, &info));
	ck_assert_int_eq(info.kind, SPYRE_MEMORY_UNKNOWN);

	ck_status(spyre_mem_free(context, address[1] + 128), SPYRE_ERROR_INVALID_ADDRESS);
	ck_status(spyre_mem_free(context, address[3] + 4096), SPYRE_ERROR_INVALID_ADDRESS);
	for (int i = 0; i < 4; i++) {
		ck_ok(spyre_mem_free(context, address[i]));
		ck_ok(spyre_pointer_query(context, address[i], &info));
		ck_assert_int_eq(info.kind, SPYRE_MEMORY_UNKNOWN);
		ck_status(spyre_mem_free(context, address[i]), SPYRE_ERROR_INVALID_ADDRESS);
	}
	ck_mentions("not the start of a live allocation");
	ck_ok(spyre_context_destroy(context));
}
END_TEST

/* Reused memory is zeroed, small and large, again and again. */
START_TEST(zeroed)
{
	static const uint64_t sizes[] = { 128, 4096, 70000, 600000, MIB, 3 * MIB };
	const uint32_t pattern = 0xdeadbeef;
	spyre_context *context = open_card();
	spyre_stream *stream = get_stream(context, 0);
	uint8_t *host = malloc(3 * MIB);

	for (int round = 0; round < 60; round++) {
		uint64_t bytes = sizes[round % 6];
		spyre_devptr address[4];

		for (int i = 0; i < 4; i++) {
			ck_ok(spyre_mem_alloc(context, bytes, &address[i]));
			ck_ok(spyre_memcpy_d2h(context, host, address[i], bytes));
			ck_assert(all_zero(host, bytes));
			ck_ok(spyre_memset_async(stream, address[i], &pattern, 4,
						 bytes / 4 * 4));
		}
		for (int i = 0; i < 4; i++)
			ck_ok(spyre_mem_free(context, address[i]));
		if (round % 3)
			ck_ok(spyre_stream_synchronize(stream));
	}
	free(host);
	ck_ok(spyre_context_destroy(context));
}
END_TEST

START_TEST(coalesce)
{
	spyre_context *context = open_card();
	uint64_t before = memory_info(context).used;
	spyre_devptr address[64], whole;

	for (int i = 0; i < 64; i++)
		ck_ok(spyre_mem_alloc(context, MIB + i * 4096, &address[i]));
	for (int i = 0; i < 64; i += 2)
		ck_ok(spyre_mem_free(context, address[i]));
	for (int i = 63; i > 0; i -= 2)
		ck_ok(spyre_mem_free(context, address[i]));
	ck_assert_uint_eq(memory_info(context).used, before);
	/* First fit: the holes have been merged. */
	ck_ok(spyre_mem_alloc(context, 64 * MIB, &whole));
	ck_assert_uint_eq(whole, address[0]);
	ck_ok(spyre_mem_free(context, whole));
	ck_ok(spyre_context_destroy(context));
}
END_TEST

static void fill_card(spyre_context *context, spyre_devptr *address, int *n, int max)
{
	uint64_t largest;

	for (*n = 0; *n < max && (largest = memory_info(context).largest_free); ++*n) {
		/* An allocation of the size that info reports succeeds. */
		ck_ok(spyre_mem_alloc(context, largest > 16 * MIB ? 16 * MIB : largest,
				      &address[*n]));
	}
}

/* A card without memory for a program names the amount and the setting to raise. */
static void check_program_refused(spyre_context *context)
{
	static const int64_t size[] = { 64, 64 };
	char folder[] = "/tmp/spyre-memory-XXXXXX", command[64];
	spyre_sdsc_operand operand[2] = { { .rank = 2, .size = { 64, 64 } } };
	spyre_kernel *kernel;

	ck_assert_ptr_nonnull(mkdtemp(folder));
	ck_ok(spyre_layout_init(&operand[0].layout, 2, size, SPYRE_FORMAT_IEEE_FP16));
	operand[1] = operand[0];
	ck_ok(spyre_sdsc_build("neg", operand, 2, 1, folder));
	ck_status(spyre_kernel_load(context, folder, &kernel), SPYRE_ERROR_OUT_OF_DEVICE_MEMORY);
	ck_mentions("bytes for a program");
	ck_mentions("raise SPYRE_EMBEDDED_LPDDR_MIB");
	snprintf(command, sizeof(command), "rm -r %s", folder);
	ck_assert_int_eq(system(command), 0);
}

START_TEST(exhaustion)
{
	spyre_devptr *address = calloc(4096, sizeof(*address)), extra;
	spyre_memory_info info;
	spyre_context *context;
	int n;

	/* Other backends use the card's own size, which may be large. */
	setenv("SPYRE_EMBEDDED_LPDDR_MIB", "96", 1);
	context = open_card();
	if (memory_info(context).total > 256 * MIB) {
		ck_ok(spyre_context_destroy(context));
		free(address);
		return;
	}
	fill_card(context, address, &n, 4096);
	ck_assert_uint_eq(memory_info(context).largest_free, 0);
	ck_status(spyre_mem_alloc(context, 32 * MIB, &extra), SPYRE_ERROR_OUT_OF_DEVICE_MEMORY);
	ck_assert_uint_eq(extra, 0);
	ck_mentions("requested 33554432 bytes");
	ck_mentions("largest possible allocation 0");
	ck_mentions(" free");
	ck_status(spyre_mem_alloc(context, 1, &extra), SPYRE_ERROR_OUT_OF_DEVICE_MEMORY);
	ck_status(spyre_mem_alloc(context, UINT64_MAX, &extra), SPYRE_ERROR_OUT_OF_DEVICE_MEMORY);
	if (is_embedded(context))
		check_program_refused(context);
	/* Not sticky. */
	ck_ok(spyre_mem_free(context, address[0]));
	ck_ok(spyre_mem_alloc(context, 16 * MIB, &address[0]));
	info = memory_info(context);
	ck_assert_uint_eq(info.allocations, n);
	for (int i = 0; i < n; i++)
		ck_ok(spyre_mem_free(context, address[i]));
	ck_assert_uint_eq(memory_info(context).context_used, 0);
	ck_ok(spyre_context_destroy(context));
	free(address);
}
END_TEST

/* The library waits for frees behind queued work before it reports "out of memory". */
START_TEST(reclaim_before_oom)
{
	const uint8_t byte = 0x5a;
	spyre_context *context;
	spyre_stream *stream;
	spyre_devptr a;

	setenv("SPYRE_EMBEDDED_LPDDR_MIB", "64", 1);
	context = open_card();
	if (is_embedded(context)) {
		stream = get_stream(context, 1);
		for (int i = 0; i < 40; i++) {
			ck_ok(spyre_mem_alloc(context, 40 * MIB, &a));
			ck_ok(spyre_memset_async(stream, a, &byte, 1, 40 * MIB));
			ck_ok(spyre_mem_free(context, a));
		}
		/* The same with small allocations that fill the card. */
		for (int i = 0; i < 300; i++) {
			ck_ok(spyre_mem_alloc(context, 900000, &a));
			ck_ok(spyre_memset_async(stream, a, &byte, 1, 900000));
			ck_ok(spyre_mem_free(context, a));
		}
	}
	ck_ok(spyre_context_destroy(context));
}
END_TEST

START_TEST(shared_capacity)
{
	spyre_context *one = open_card(), *two = open_card();
	uint64_t before = memory_info(two).used;
	spyre_devptr address;

	ck_ok(spyre_mem_alloc(one, 8 * MIB, &address));
	ck_assert_uint_eq(memory_info(two).used, before + 8 * MIB);
	ck_assert_uint_eq(memory_info(two).context_used, 0);
	/* An address is valid in its context only. */
	ck_status(spyre_mem_free(two, address), SPYRE_ERROR_INVALID_ADDRESS);
	ck_ok(spyre_context_destroy(one));
	ck_assert_uint_eq(memory_info(two).used, before);
	ck_ok(spyre_context_destroy(two));
}
END_TEST

START_TEST(pinned)
{
	spyre_context *context = open_card();
	spyre_pointer_info info = { .struct_size = sizeof(info) };
	char *block[3], on_stack;
	void *none = &on_stack;

	for (int i = 0; i < 3; i++) {
		ck_ok(spyre_host_alloc(context, 5000 + i, (void **)&block[i]));
		ck_assert_uint_eq((uintptr_t)block[i] % 4096, 0);
		memset(block[i], i, 5000 + i);
	}
	for (int i = 0; i < 3; i++) {
		ck_ok(spyre_host_pointer_query(context, block[i] + 4999, &info));
		ck_assert_int_eq(info.kind, SPYRE_MEMORY_PINNED_HOST);
		ck_assert_uint_eq(info.base, (uintptr_t)block[i]);
		ck_assert_uint_eq(info.size, 5000 + i);
		ck_assert_uint_eq(info.offset, 4999);
		ck_ok(spyre_host_pointer_query(context, block[i] + 5000 + i, &info));
		ck_assert_int_eq(info.kind, SPYRE_MEMORY_UNKNOWN);
	}
	ck_ok(spyre_host_pointer_query(context, &on_stack, &info));
	ck_assert_int_eq(info.kind, SPYRE_MEMORY_UNKNOWN);
	ck_status(spyre_host_free(context, &on_stack), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_host_free(context, block[0] + 1), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_ok(spyre_host_free(context, block[1]));
	ck_ok(spyre_host_pointer_query(context, block[1], &info));
	ck_assert_int_eq(info.kind, SPYRE_MEMORY_UNKNOWN);
	if (is_embedded(context)) {
		ck_status(spyre_host_alloc(context, (size_t)1 << 55, &none),
			  SPYRE_ERROR_OUT_OF_HOST_MEMORY);
		ck_mentions("no memory for 36028797018963968 bytes of pinned host memory");
		none = &on_stack;
	}
	ck_ok(spyre_host_alloc(context, 0, &none));
	ck_assert_ptr_null(none);
	ck_ok(spyre_host_free(context, NULL));
	ck_ok(spyre_context_destroy(context));
}
END_TEST

struct live {
	spyre_devptr address;
	uint64_t bytes;
	uint32_t pattern;
};

static void check_live(spyre_context *context, const struct live *live, uint32_t *host)
{
	ck_ok(spyre_memcpy_d2h(context, host, live->address, live->bytes));
	ck_assert(all_words(host, live->bytes / 4, live->pattern));
}

/* Random traffic on several streams: no allocation overlaps another, new ones are zero. */
START_TEST(random_traffic)
{
	enum { LIVE = 96, STREAMS = 5, MAX = 2 << 20 };
	spyre_context *context = open_card();
	spyre_stream *streams[STREAMS];
	struct live live[LIVE] = { 0 };
	uint32_t *host = malloc(MAX);
	uint64_t state = 11;

	for (int i = 0; i < STREAMS; i++)
		streams[i] = get_stream(context, i * 16);
	for (int round = 0; round < 3000; round++) {
		struct live *slot = &live[random_next(&state) % LIVE];
		spyre_stream *stream = streams[random_next(&state) % STREAMS];

		if (slot->bytes) {
			if (round % 4 == 0) {
				ck_ok(spyre_context_synchronize(context));
				check_live(context, slot, host);
			}
			/* Queued after the check, and freed immediately. */
			ck_ok(spyre_memset_async(stream, slot->address, &round, 4, slot->bytes));
			ck_ok(spyre_mem_free(context, slot->address));
			slot->bytes = 0;
			continue;
		}
		slot->bytes = 4 * (1 + random_next(&state) % (round % 16 ? 5000 : MAX / 4 - 1));
		slot->pattern = random_next(&state);
		ck_ok(spyre_mem_alloc(context, slot->bytes, &slot->address));
		ck_ok(spyre_memcpy_d2h(context, host, slot->address, slot->bytes));
		ck_assert(all_zero((uint8_t *)host, slot->bytes));
		ck_ok(spyre_memset_async(stream, slot->address, &slot->pattern, 4, slot->bytes));
	}
	ck_ok(spyre_context_synchronize(context));
	for (int i = 0; i < LIVE; i++)
		if (live[i].bytes)
			check_live(context, &live[i], host);
	free(host);
	ck_ok(spyre_context_destroy(context));
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("memory");

	tcase_add_test(tests, rounding);
	tcase_add_test(tests, interior);
	tcase_add_test(tests, zeroed);
	tcase_add_test(tests, coalesce);
	tcase_add_test(tests, exhaustion);
	tcase_add_test(tests, reclaim_before_oom);
	tcase_add_test(tests, shared_capacity);
	tcase_add_test(tests, pinned);
	tcase_add_test(tests, random_traffic);
	return run_suite("runtime_memory", tests);
}
