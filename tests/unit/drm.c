/* SPDX-License-Identifier: MIT */
/* The parts of the drm backend that need no card: range table, control blocks. */
#include "config.h"
#include "suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "libspyre/backend/drm.h"

static struct spyre_drm_ranges ranges;

static void insert(uint64_t start, uint64_t bytes, uint32_t handle)
{
	ck_assert(spyre_drm_ranges_reserve(&ranges));
	spyre_drm_ranges_insert(&ranges, (struct spyre_drm_range){ start, bytes, handle, 0 });
}

static uint32_t handle_at(uint64_t address)
{
	const struct spyre_drm_range *range = spyre_drm_ranges_find(&ranges, address);

	return range ? range->handle : 0;
}

static void drop_ranges(void)
{
	spyre_drm_ranges_fini(&ranges);
}

START_TEST(ranges_find_addresses)
{
	struct spyre_drm_range gone;

	ck_assert_uint_eq(handle_at(0), 0);
	insert(0x3000, 0x1000, 3);
	insert(0x1000, 0x1000, 1);
	insert(0x2000, 0x800, 2);
	ck_assert_uint_eq(handle_at(0xfff), 0);
	ck_assert_uint_eq(handle_at(0x1000), 1);
	ck_assert_uint_eq(handle_at(0x1fff), 1);
	ck_assert_uint_eq(handle_at(0x27ff), 2);
	ck_assert_uint_eq(handle_at(0x2800), 0);
	ck_assert_uint_eq(handle_at(0x3fff), 3);
	ck_assert_uint_eq(handle_at(0x4000), 0);
	ck_assert(!spyre_drm_ranges_remove(&ranges, 0x2001, &gone));
	ck_assert(spyre_drm_ranges_remove(&ranges, 0x2000, &gone));
	ck_assert_uint_eq(gone.handle, 2);
	ck_assert(!spyre_drm_ranges_remove(&ranges, 0x2000, &gone));
	ck_assert_uint_eq(handle_at(0x2000), 0);
	ck_assert_uint_eq(handle_at(0x3000), 3);
}
END_TEST

/* Compares with a plain array of pages, for random inserts and removals. */
START_TEST(ranges_against_a_model)
{
	enum { PAGES = 512, ROUNDS = 20000 };
	static uint32_t owner[PAGES];
	static uint32_t length[PAGES];
	uint32_t seed = 12345, next = 1;
	struct spyre_drm_range gone;
	int round, i;

	for (round = 0; round < ROUNDS; round++) {
		uint32_t at, pages;
		bool is_free = true;

		seed = seed * 1664525 + 1013904223;
		at = (seed >> 8) % PAGES;
		pages = 1 + (seed >> 20) % 7;
		for (i = at; i < at + pages; i++)
			is_free = is_free && i < PAGES && !owner[i];
		if (length[at]) {
			ck_assert(spyre_drm_ranges_remove(&ranges, at * 4096ull, &gone));
			ck_assert_uint_eq(gone.handle, owner[at]);
			for (pages = length[at], i = at; i < at + pages; i++)
				owner[i] = 0;
			length[at] = 0;
		} else if (is_free) {
			insert(at * 4096ull, pages * 4096ull, next);
			length[at] = pages;
			for (i = at; i < at + pages; i++)
				owner[i] = next;
			next++;
		}
		at = (seed >> 4) % PAGES;
		ck_assert_uint_eq(handle_at(at * 4096ull + (seed & 4095)), owner[at]);
	}
	ck_assert_uint_gt(next, 1000);
}
END_TEST

static struct spyre_drm_card card;

static void card_setup(void)
{
	memset(&card, 0, sizeof(card));
	pthread_rwlock_init(&card.host_lock, NULL);
}

static void card_teardown(void)
{
	spyre_drm_ranges_fini(&card.host);
	pthread_rwlock_destroy(&card.host_lock);
}

static void pin(const void *start, size_t bytes, uint32_t handle)
{
	ck_assert(spyre_drm_ranges_reserve(&card.host));
	spyre_drm_ranges_insert(&card.host,
				(struct spyre_drm_range){ (uintptr_t)start, bytes, handle, 0 });
	card.host_count = card.host.count;
}

START_TEST(dma_of_plain_and_pinned_memory)
{
	static char memory[8192];
	struct spyre_dma_desc desc = { .direction = SPYRE_DMA_H2D };
	struct spyre_command command = {
		.type = SPYRE_COMMAND_DMA,
		.dma = { .desc = &desc, .device = 0x1080, .host = memory + 100, .host_bytes = 200 },
	};
	struct drm_spyre_cb cb;

	memset(&cb, 0xff, sizeof(cb));
	ck_assert_int_eq(spyre_drm_encode(&card, &command, 0, &cb), SPYRE_SUCCESS);
	ck_assert_uint_eq(cb.type, DRM_SPYRE_CB_DMA);
	ck_assert_uint_eq(cb.dst, 0x1080);
	ck_assert_uint_eq(cb.src, 0);
	ck_assert_uint_eq(cb.size, 200);
	ck_assert_uint_eq(cb.host_addr, (uintptr_t)memory + 100);
	ck_assert_uint_eq(cb.host_handle, 0);
	ck_assert_uint_eq(cb.host_offset, 0);
	ck_assert_uint_eq(cb.reserved[2], 0);

	pin(memory, 4096, 9);
	desc.direction = SPYRE_DMA_D2H;
	ck_assert_int_eq(spyre_drm_encode(&card, &command, 0, &cb), SPYRE_SUCCESS);
	ck_assert_uint_eq(cb.dst, 0);
	ck_assert_uint_eq(cb.src, 0x1080);
	ck_assert_uint_eq(cb.host_addr, 0);
	ck_assert_uint_eq(cb.host_handle, 9);
	ck_assert_uint_eq(cb.host_offset, 100);

	/* Up to the last byte of the pinned memory, and one beyond it. */
	command.dma.host_bytes = 3996;
	ck_assert_int_eq(spyre_drm_encode(&card, &command, 0, &cb), SPYRE_SUCCESS);
	ck_assert_uint_eq(cb.host_handle, 9);
	command.dma.host_bytes = 3997;
	ck_assert_int_eq(spyre_drm_encode(&card, &command, 0, &cb), SPYRE_SUCCESS);
	ck_assert_uint_eq(cb.host_handle, 0);
	ck_assert_uint_eq(cb.host_addr, (uintptr_t)memory + 100);
	command.dma.host_bytes = UINT64_MAX;
	ck_assert_int_eq(spyre_drm_encode(&card, &command, 0, &cb), SPYRE_SUCCESS);
	ck_assert_uint_eq(cb.host_handle, 0);
}
END_TEST

START_TEST(other_commands)
{
	struct spyre_drm_program program = { .handle = 77 };
	uint64_t args[2] = { 0x1000, 0x2000 };
	struct spyre_command command = {
		.type = SPYRE_COMMAND_EXEC,
		.exec = { .program = &program.base, .args = args, .num_args = 2 },
	};
	struct drm_spyre_cb cb;

	ck_assert_int_eq(spyre_drm_encode(&card, &command, 0, &cb), SPYRE_SUCCESS);
	ck_assert_uint_eq(cb.type, DRM_SPYRE_CB_EXEC);
	ck_assert_uint_eq(cb.program, 77);
	ck_assert_uint_eq(cb.num_args, 2);
	ck_assert_uint_eq(cb.args, (uintptr_t)args);
	ck_assert_uint_eq(cb.dst, 0);

	command = (struct spyre_command){
		.type = SPYRE_COMMAND_FILL,
		.fill = { .dst = 0x3000, .bytes = 64, .pattern = "abcdefgh", .pattern_bytes = 4 },
	};
	ck_assert_int_eq(spyre_drm_encode(&card, &command, 0, &cb), SPYRE_SUCCESS);
	ck_assert_uint_eq(cb.type, DRM_SPYRE_CB_FILL);
	ck_assert_uint_eq(cb.dst, 0x3000);
	ck_assert_uint_eq(cb.pattern_size, 4);
	/* Bytes beyond the pattern must be zero. */
	ck_assert_mem_eq(cb.pattern, "abcd\0\0\0\0\0\0\0\0\0\0\0", 16);

	command = (struct spyre_command){
		.type = SPYRE_COMMAND_COPY, .copy = { .dst = 1, .src = 2, .bytes = 3 },
	};
	ck_assert_int_eq(spyre_drm_encode(&card, &command, 0, &cb), SPYRE_SUCCESS);
	ck_assert_uint_eq(cb.type, DRM_SPYRE_CB_COPY);
	ck_assert(cb.dst == 1 && cb.src == 2 && cb.size == 3);

	command = (struct spyre_command){ .type = SPYRE_COMMAND_TIMESTAMP };
	ck_assert_int_eq(spyre_drm_encode(&card, &command, 0, &cb), SPYRE_SUCCESS);
	ck_assert_uint_eq(cb.type, DRM_SPYRE_CB_TIMESTAMP);

	command.type = (enum spyre_command_type)99;
	ck_assert_int_eq(spyre_drm_encode(&card, &command, 5, &cb), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_assert_ptr_nonnull(strstr(spyre_last_error(), "command 5"));
}
END_TEST

START_TEST(errno_becomes_status)
{
	static const struct {
		int error;
		spyre_status status;
	} expected[] = {
		{ 19 /* ENODEV */, SPYRE_ERROR_DEVICE_LOST },
		{ 125 /* ECANCELED */, SPYRE_ERROR_CANCELLED },
		{ 28 /* ENOSPC */, SPYRE_ERROR_OUT_OF_DEVICE_MEMORY },
		{ 12 /* ENOMEM */, SPYRE_ERROR_OUT_OF_HOST_MEMORY },
		{ 62 /* ETIME */, SPYRE_ERROR_TIMEOUT },
		{ 13 /* EACCES */, SPYRE_ERROR_NO_PERMISSION },
		{ 7 /* E2BIG */, SPYRE_ERROR_ABI_MISMATCH },
		{ 22 /* EINVAL */, SPYRE_ERROR_INVALID_ARGUMENT },
		{ 84 /* EILSEQ */, SPYRE_ERROR_SYSTEM },
	};

	strcpy(card.base.properties.node, "/dev/accel/accel3");
	ck_assert_int_eq(spyre_drm_error(&card, expected[_i].error, "ioctl of %d bytes", 4711),
			 expected[_i].status);
	ck_assert_ptr_nonnull(strstr(spyre_last_error(), "/dev/accel/accel3"));
	ck_assert_ptr_nonnull(strstr(spyre_last_error(), "ioctl of 4711 bytes"));
	ck_assert_ptr_nonnull(strstr(spyre_last_error(), "; "));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("drm");
	TCase *tcase = tcase_create("ranges");

	tcase_add_checked_fixture(tcase, NULL, drop_ranges);
	tcase_add_test(tcase, ranges_find_addresses);
	tcase_add_test(tcase, ranges_against_a_model);
	suite_add_tcase(suite, tcase);
	tcase = tcase_create("encode");
	tcase_add_checked_fixture(tcase, card_setup, card_teardown);
	tcase_add_test(tcase, dma_of_plain_and_pinned_memory);
	tcase_add_test(tcase, other_commands);
	tcase_add_loop_test(tcase, errno_becomes_status, 0, 9);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
