// SPDX-License-Identifier: MIT
/*
 * Cold memory of embedded cards: a job finds all pages of its operands and LX when
 * its time begins, however they were allocated, and memory that no job names stays
 * unbacked.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bundle_files.h"
#include "model/card.h"
#include "runtime_check.h"

#define ROWS 1000
#define COLUMNS 2048
#define GRANULE (2ull << 20)
#ifndef MADV_POPULATE_WRITE	/* Linux 5.14 */
#define MADV_POPULATE_WRITE 23
#endif
#define LARGE (4ull << 30)

enum spyre_stop __real_spyre_card_exec(struct spyre_exec *exec, struct spyre_worker *self);
enum spyre_stop __wrap_spyre_card_exec(struct spyre_exec *exec, struct spyre_worker *self);
enum spyre_stop __real_spyre_card_dma(struct spyre_host *host, void *job,
				      struct spyre_worker *self,
				      const struct spyre_dma_desc *desc, u8 *device, u8 *host_mem,
				      u64 host_bytes);
enum spyre_stop __wrap_spyre_card_dma(struct spyre_host *host, void *job,
				      struct spyre_worker *self,
				      const struct spyre_dma_desc *desc, u8 *device, u8 *host_mem,
				      u64 host_bytes);
enum spyre_stop __real_spyre_card_copy(struct spyre_host *host, void *job,
				       struct spyre_worker *self, u8 *dst, const u8 *src,
				       u64 bytes);
enum spyre_stop __wrap_spyre_card_copy(struct spyre_host *host, void *job,
				       struct spyre_worker *self, u8 *dst, const u8 *src,
				       u64 bytes);
enum spyre_stop __real_spyre_card_fill(struct spyre_host *host, void *job,
				       struct spyre_worker *self, u8 *device, u64 bytes,
				       const void *pattern, u32 pattern_bytes);
enum spyre_stop __wrap_spyre_card_fill(struct spyre_host *host, void *job,
				       struct spyre_worker *self, u8 *device, u64 bytes,
				       const void *pattern, u32 pattern_bytes);

static struct {
	uint32_t jobs;
	uint64_t operand_pages, lx_pages;	/* pages missing when a job begins */
	uint8_t *first;				/* operand 0 */
	uint64_t tensor_bytes;			/* of the tensor that is copied */
} seen;

/* Counts pages of a range that are resident, or that are not. */
static uint64_t count_pages(const uint8_t *at, uint64_t bytes, bool there)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), n = 0, pages;
	uint64_t start = (uintptr_t)at & ~(page - 1);
	unsigned char *state;

	pages = ((uintptr_t)at + bytes - start + page - 1) / page;
	state = malloc(pages);
	ck_assert_ptr_nonnull(state);
	ck_assert_int_eq(mincore((void *)start, pages * page, state), 0);
	for (uint64_t i = 0; i < pages; i++)
		n += (state[i] & 1) == there;
	free(state);
	return n;
}

/* Wraps the card's function: the linker redirects all calls here. */
enum spyre_stop __wrap_spyre_card_exec(struct spyre_exec *exec, struct spyre_worker *self)
{
	const struct spyre_prog_header *header = exec->prog->header;

	seen.jobs++;
	seen.first = exec->operand[0];
	for (uint32_t i = 0; i < header->num_operands; i++)
		seen.operand_pages += count_pages(exec->operand[i],
						  exec->prog->operands[i].extent, false);
	for (uint32_t c = 0; exec->lx && c < header->num_cores; c++)
		seen.lx_pages += count_pages(exec->lx[c], header->lx_bytes, false);
	return __real_spyre_card_exec(exec, self);
}

enum spyre_stop __wrap_spyre_card_dma(struct spyre_host *host, void *job,
				      struct spyre_worker *self,
				      const struct spyre_dma_desc *desc, u8 *device, u8 *host_mem,
				      u64 host_bytes)
{
	seen.jobs++;
	seen.operand_pages += count_pages(device, seen.tensor_bytes, false);
	return __real_spyre_card_dma(host, job, self, desc, device, host_mem, host_bytes);
}

enum spyre_stop __wrap_spyre_card_copy(struct spyre_host *host, void *job,
				       struct spyre_worker *self, u8 *dst, const u8 *src,
				       u64 bytes)
{
	seen.jobs++;
	seen.operand_pages += count_pages(dst, bytes, false) + count_pages(src, bytes, false);
	return __real_spyre_card_copy(host, job, self, dst, src, bytes);
}

enum spyre_stop __wrap_spyre_card_fill(struct spyre_host *host, void *job,
				       struct spyre_worker *self, u8 *device, u64 bytes,
				       const void *pattern, u32 pattern_bytes)
{
	seen.jobs++;
	seen.operand_pages += count_pages(device, bytes, false);
	return __real_spyre_card_fill(host, job, self, device, bytes, pattern, pattern_bytes);
}

static char folder[64];
static spyre_context *context;
static spyre_kernel *kernel;

static void setup(void)
{
	memset(&seen, 0, sizeof(seen));
	files_make(folder);
	context = open_card();
}

static void teardown(void)
{
	ck_ok(spyre_context_destroy(context));
	files_remove(folder);
}

static void load(const char *op, int64_t (*size)[2], uint32_t count)
{
	files_build(folder, op, size, count, NULL);
	ck_ok(spyre_kernel_load(context, folder, &kernel));
}

static void launch(const spyre_arg *args)
{
	spyre_stream *stream = get_stream(context, 0);

	ck_ok(spyre_launch(stream, kernel, args, 3));
	ck_ok(spyre_stream_synchronize(stream));
	ck_assert_uint_eq(seen.operand_pages, 0);
	ck_assert_uint_eq(seen.lx_pages, 0);
}

/*
 * The sizes are not multiples of a granule, so that operands share granules with
 * their neighbours.
 */
START_TEST(cold)
{
	int64_t size[3][2] = { { ROWS, COLUMNS }, { ROWS, COLUMNS }, { ROWS, COLUMNS } };
	uint64_t bytes = ROWS * COLUMNS * 2;
	spyre_arg args[3] = { 0 };

	load("add", size, 3);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 3; i++)
			ck_ok(spyre_mem_alloc(context, bytes, &args[i].address));
		launch(args);
		launch(args);
		for (int i = 0; i < 3; i++)
			ck_ok(spyre_mem_free(context, args[i].address));
	}
	ck_assert_uint_eq(seen.jobs, 6);
}
END_TEST

START_TEST(cold_lx)
{
	int64_t size[3][2] = { { 256, 256 }, { 256, 256 }, { 256, 256 } };
	spyre_arg args[3] = { 0 };

	load("matmul", size, 3);
	for (int i = 0; i < 3; i++)
		ck_ok(spyre_mem_alloc(context, 256 * 512, &args[i].address));
	launch(args);
	ck_assert_uint_eq(seen.jobs, 1);
}
END_TEST

/* A kernel on a few MiB amid 4 GiB populates these and the granules around them. */
START_TEST(lazy)
{
	int64_t size[3][2] = { { ROWS, COLUMNS }, { ROWS, COLUMNS }, { ROWS, COLUMNS } };
	uint64_t bytes = ROWS * COLUMNS * 2, there;
	spyre_devptr large;
	spyre_arg args[3] = { 0 };

	load("add", size, 3);
	ck_ok(spyre_mem_alloc(context, LARGE, &large));
	for (int i = 0; i < 3; i++)
		args[i].address = large + LARGE / 2 + i * bytes;
	launch(args);
	there = count_pages(seen.first - LARGE / 2, LARGE, true) * (uint64_t)sysconf(_SC_PAGESIZE);
	ck_assert_uint_ge(there, 3 * bytes);
	ck_assert_uint_le(there, 3 * bytes + 2 * GRANULE);
	ck_ok(spyre_mem_free(context, large));
}
END_TEST

/* Copies of both directions, between tensors, and fills; rows end amid a stick. */
START_TEST(copies)
{
	const int64_t size[] = { ROWS, 100 };
	spyre_stream *stream = get_stream(context, 0);
	spyre_host_tensor host;
	spyre_layout layout;
	spyre_devptr range[5];
	uint16_t *data = calloc(ROWS * 100, sizeof(*data));

	ck_ok(spyre_layout_init(&layout, 2, size, SPYRE_FORMAT_SEN169_FP16));
	ck_ok(spyre_host_tensor_dense(&host, data, SPYRE_FORMAT_IEEE_FP16, 2, size));
	seen.tensor_bytes = spyre_layout_bytes(&layout);
	for (int i = 0; i < 5; i++)
		ck_ok(spyre_mem_alloc(context, GRANULE + seen.tensor_bytes, &range[i]));
	ck_ok(spyre_copy_h2d(context, range[0], &layout, &host));
	ck_ok(spyre_copy_d2h(context, &host, range[1], &layout));
	ck_ok(spyre_memcpy_d2d_async(stream, range[2], range[3], seen.tensor_bytes));
	ck_ok(spyre_memset_async(stream, range[4], "spyre   ", 8, GRANULE));
	ck_ok(spyre_stream_synchronize(stream));
	ck_assert_uint_ge(seen.jobs, 4);
	ck_assert_uint_eq(seen.operand_pages, 0);
	free(data);
}
END_TEST

/* False before Linux 5.14, and under qemu-user, where madvise() succeeds without any effect. */
static bool madvise_populates(void)
{
	long page = sysconf(_SC_PAGESIZE);
	unsigned char state = 0;
	void *at = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool populates;

	if (at == MAP_FAILED)
		return false;
	populates = !madvise(at, page, MADV_POPULATE_WRITE) && !mincore(at, page, &state) &&
		    state & 1;
	munmap(at, page);
	return populates;
}

int main(void)
{
	TCase *tests = tcase_create("warm");

	if (!madvise_populates()) {
		puts("1..0 # SKIP madvise(MADV_POPULATE_WRITE) has no effect here");
		return 0;
	}
	setenv("SPYRE_BACKEND", "embedded", 1);
	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, cold);
	tcase_add_test(tests, cold_lx);
	tcase_add_test(tests, lazy);
	tcase_add_test(tests, copies);
	return run_suite("embedded_warm", tests);
}
