/* SPDX-License-Identifier: MIT */
/* Copies of pageable memory by a process with a very low pin limit. */
#include "runtime_check.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/capability.h>

#define LIMIT (64u << 10)
#define BIG (256u << 20)
#define MIB (1u << 20)
#define GUARD 0xa5

static spyre_context *context;

/* Drops root's permission to pin without limit. */
static void drop_ipc_lock(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	ck_assert_int_eq(syscall(SYS_capget, &header, data), 0);
	data[0].effective &= ~(1u << CAP_IPC_LOCK);
	ck_assert_int_eq(syscall(SYS_capset, &header, data), 0);
}

static void limit_to(rlim_t bytes)
{
	struct rlimit limit;

	ck_assert_int_eq(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
	limit.rlim_cur = bytes;
	ck_assert_int_eq(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
}

static void setup(void)
{
	drop_ipc_lock();
	limit_to(LIMIT);
	context = open_card();
}

static void teardown(void)
{
	ck_ok(spyre_context_destroy(context));
}

/* Faster than random_bytes(), which matters for this size under an emulator. */
static void fill_words(void *buffer, size_t bytes)
{
	uint64_t *words = buffer;

	for (size_t i = 0; i < bytes / 8; i++)
		words[i] = (i + 1) * 0x9e3779b97f4a7c15ull;
}

START_TEST(plain_256_mib)
{
	uint8_t *in = malloc(BIG + 8), *out = malloc(BIG + 8);
	spyre_devptr device;

	ck_assert(in && out);
	fill_words(in, BIG + 8);
	ck_ok(spyre_mem_alloc(context, BIG + 256, &device));
	ck_ok(spyre_memcpy_h2d(context, device, in, BIG));
	ck_ok(spyre_memcpy_d2h(context, out, device, BIG));
	ck_assert(!memcmp(in, out, BIG));
	/* The address is not the start of a stick. */
	ck_ok(spyre_memcpy_h2d(context, device + 13, in + 1, BIG));
	out[BIG] = GUARD;
	ck_ok(spyre_memcpy_d2h(context, out, device + 13, BIG));
	ck_assert(!memcmp(in + 1, out, BIG) && out[BIG] == GUARD);
	free(in);
	free(out);
}
END_TEST

/* The first copy writes the source of the second. */
START_TEST(order)
{
	spyre_stream *a = get_stream(context, 1), *b = get_stream(context, 2);
	uint8_t *in = malloc(8 * MIB), *between = malloc(8 * MIB), *out = malloc(8 * MIB);
	spyre_devptr first, second;
	spyre_event *event;

	ck_ok(spyre_event_create(context, 0, &event));
	ck_ok(spyre_mem_alloc(context, 8 * MIB, &first));
	ck_ok(spyre_mem_alloc(context, 8 * MIB, &second));
	for (int round = 0; round < 3; round++) {
		fill_words(in, 8 * MIB);
		in[round] ^= 0xff;
		ck_ok(spyre_memcpy_h2d_async(a, first, in, 8 * MIB));
		ck_ok(spyre_memcpy_d2h_async(a, between, first, 8 * MIB));
		ck_ok(spyre_event_record(event, a));
		ck_ok(spyre_stream_wait_event(b, event));
		ck_ok(spyre_memcpy_h2d_async(b, second, between, 8 * MIB));
		ck_ok(spyre_memcpy_d2h_async(b, out, second, 8 * MIB));
		ck_ok(spyre_stream_synchronize(b));
		ck_assert(!memcmp(in, out, 8 * MIB));
		/* The source may change as soon as the copy from it is done. */
		ck_ok(spyre_stream_synchronize(a));
	}
	ck_ok(spyre_event_destroy(event));
	free(in);
	free(between);
	free(out);
}
END_TEST

/* Copies every element of @size in a host tensor with gaps, which must not change. */
static void check_strided(uint32_t rank, const int64_t *size, const int64_t *stride,
			  size_t elements)
{
	const size_t bytes = elements * sizeof(float);
	float *in = malloc(bytes), *out = malloc(bytes), *want = malloc(bytes);
	spyre_host_tensor source, target;
	spyre_layout layout;
	spyre_devptr device;
	int64_t at[4] = { 0 };
	uint32_t d;

	for (size_t i = 0; i < elements; i++)
		in[i] = (float)(i % 1000);
	memset(out, GUARD, bytes);
	memset(want, GUARD, bytes);
	do {
		size_t i = 0;

		for (d = 0; d < rank; d++)
			i += at[d] * stride[d];
		want[i] = in[i];
		for (d = rank; d-- && ++at[d] == size[d];)
			at[d] = 0;
	} while (d != UINT32_MAX);

	ck_ok(spyre_layout_init(&layout, rank, size, SPYRE_FORMAT_IEEE_FP32));
	ck_ok(spyre_mem_alloc(context, spyre_layout_bytes(&layout), &device));
	ck_ok(spyre_host_tensor_dense(&source, in, SPYRE_FORMAT_IEEE_FP32, rank, size));
	memcpy(source.stride, stride, rank * sizeof(*stride));
	target = source;
	target.data = out;
	ck_ok(spyre_copy_h2d(context, device, &layout, &source));
	ck_ok(spyre_copy_d2h(context, &target, device, &layout));
	ck_assert_mem_eq(out, want, bytes);
	ck_ok(spyre_mem_free(context, device));
	free(in);
	free(out);
	free(want);
}

START_TEST(strided)
{
	/* Dense with a ragged last stick; columns of a matrix; transposed; 3 dims with gaps. */
	check_strided(2, (int64_t[]){ 300, 150 }, (int64_t[]){ 150, 1 }, 300 * 150);
	check_strided(2, (int64_t[]){ 300, 70 }, (int64_t[]){ 256, 1 }, 300 * 256);
	check_strided(2, (int64_t[]){ 150, 300 }, (int64_t[]){ 1, 150 }, 300 * 150);
	check_strided(3, (int64_t[]){ 5, 90, 33 }, (int64_t[]){ 9000, 100, 3 }, 5 * 9000);
}
END_TEST

START_TEST(nothing_may_be_pinned)
{
	uint8_t in[1000], out[1000];
	spyre_devptr device;

	limit_to(0);
	random_bytes(in, 1000, 3);
	ck_ok(spyre_mem_alloc(context, 1000, &device));
	ck_ok(spyre_memcpy_h2d(context, device, in, 1000));
	ck_ok(spyre_memcpy_d2h(context, out, device, 1000));
	ck_assert_mem_eq(in, out, 1000);
}
END_TEST

/* The kernel cannot pin the pages of a file for writing. */
START_TEST(file)
{
	FILE *f = tmpfile();
	uint8_t *map, in[10000];
	spyre_devptr device;

	ck_assert(f && !ftruncate(fileno(f), 16384));
	map = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f), 0);
	ck_assert(map != MAP_FAILED);
	random_bytes(in, sizeof(in), 4);
	ck_ok(spyre_mem_alloc(context, sizeof(in), &device));
	ck_ok(spyre_memcpy_h2d(context, device, in, sizeof(in)));
	ck_ok(spyre_memcpy_d2h(context, map + 100, device, sizeof(in)));
	ck_assert_mem_eq(map + 100, in, sizeof(in));
	ck_assert(!map[99] && !map[100 + sizeof(in)]);
	munmap(map, 16384);
	fclose(f);
}
END_TEST

/* An address without memory remains an error and kills no process. */
START_TEST(no_memory)
{
	uint8_t *hole = mmap(NULL, MIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint8_t *constant = mmap(NULL, MIB, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	spyre_devptr device;

	if (is_embedded(context))
		return;
	ck_ok(spyre_mem_alloc(context, MIB, &device));
	ck_assert_int_ne(spyre_memcpy_h2d(context, device, hole, MIB), SPYRE_SUCCESS);
	ck_assert_int_ne(spyre_memcpy_d2h(context, hole, device, MIB), SPYRE_SUCCESS);
	ck_assert_int_ne(spyre_memcpy_d2h(context, constant, device, MIB), SPYRE_SUCCESS);
	ck_ok(spyre_memcpy_h2d(context, device, constant, MIB));
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("memlock");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, plain_256_mib);
	tcase_add_test(tests, order);
	tcase_add_test(tests, strided);
	tcase_add_test(tests, nothing_may_be_pinned);
	tcase_add_test(tests, file);
	tcase_add_test(tests, no_memory);
	return run_suite("runtime_memlock", tests);
}
