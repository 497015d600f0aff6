// SPDX-License-Identifier: MIT
/* Boxes: transfers with strides on both sides against the naive reference; refusals. */
#include "model_util.h"
#include "model_reference.h"
#include "suite.h"

#include <stdlib.h>
#include <string.h>

#define DL16 SPYRE_FMT_SEN169_FP16
#define FP32 SPYRE_FMT_IEEE_FP32
#define FP16 SPYRE_FMT_IEEE_FP16

static uint64_t host_end(const struct spyre_dma_desc *desc)
{
	uint64_t end = desc->host_offset + spyre_fmt_bytes(desc->host_format);

	for (uint32_t d = 0; d < desc->num_dims; d++)
		end += (desc->dim[d].count - 1) * desc->dim[d].host_stride;
	return end;
}

/* Runs @desc on one unit in spans of exactly its size, between guard bytes. */
static void check_unit(const struct spyre_dma_desc *desc, const struct spyre_unit *unit,
		       int threads)
{
	struct guarded host, want_host, device, want;
	uint64_t bytes, host_bytes = host_end(desc), seed = 77;
	struct test_host h;

	ck_assert_int_eq(spyre_dma_check(desc, &bytes, NULL), SPYRE_STOP_NONE);
	guarded_alloc(&host, host_bytes);
	guarded_alloc(&want_host, host_bytes);
	guarded_alloc(&device, bytes);
	guarded_alloc(&want, bytes);
	rng_fill(&seed, host.p, host_bytes, desc->host_format);
	rng_fill(&seed, device.p, bytes, desc->device_format);
	memcpy(want_host.p, host.p, host_bytes);
	memcpy(want.p, device.p, bytes);
	reference_box(desc, want.p, want_host.p);
	test_host_init(&h, unit, threads);
	ck_assert_int_eq(spyre_card_dma(&h.host, NULL, &h.self, desc, device.p, host.p,
					host_bytes), SPYRE_STOP_NONE);
	test_host_done(&h);
	ck_assert_msg(!memcmp(want.p, device.p, bytes), "device, %s, direction %u",
		      spyre_unit_name(unit), desc->direction);
	ck_assert_msg(!memcmp(want_host.p, host.p, host_bytes), "host, %s, direction %u",
		      spyre_unit_name(unit), desc->direction);
	ck_assert(guarded_intact(&host) && guarded_intact(&device));
	guarded_free(&host);
	guarded_free(&want_host);
	guarded_free(&device);
	guarded_free(&want);
}

static void check_both(struct spyre_dma_desc *desc)
{
	for (desc->direction = 0; desc->direction < 2; desc->direction++) {
		for (const struct spyre_unit *const *unit = test_units(); *unit; unit++) {
			check_unit(desc, *unit, 1);
			check_unit(desc, *unit, 3);
		}
	}
}

/* A part of @rows x @cols of two matrices, 3 lines and 5 columns from their corners. */
static struct spyre_dma_desc part(uint32_t rows, uint32_t cols, uint64_t host_pitch,
				  uint64_t device_pitch)
{
	return (struct spyre_dma_desc){
		.host_format = FP32, .device_format = DL16, .num_dims = 2,
		.flags = SPYRE_DMA_BOX, .host_offset = 4 * (3 * host_pitch + 5),
		.dim = {
			{ .count = rows, .host_stride = 4 * host_pitch },
			{ .count = cols, .host_stride = 4 },
		},
		.box = {
			.device_offset = 2 * (3 * device_pitch + 5),
			.device_stride = { 2 * device_pitch, 2 },
		},
	};
}

/* Rows of up to 256 lanes, and those that the engine cuts; one task and many. */
START_TEST(test_parts)
{
	static const uint32_t cols[] = { 1, 63, 255, 256, 257, 511, 512, 513, 1000 };

	for (size_t i = 0; i < sizeof(cols) / sizeof(cols[0]); i++) {
		struct spyre_dma_desc desc = part(i % 2 ? 1 : 130, cols[i], cols[i] + 7,
						  cols[i] + 9);

		check_both(&desc);
	}
}
END_TEST

START_TEST(test_transposed)
{
	struct spyre_dma_desc desc = part(130, 300, 300, 300);

	desc.dim[0].host_stride = 4;
	desc.dim[1].host_stride = 4 * 131;
	check_both(&desc);
	/* The order of the dims has no effect. */
	desc.dim[0] = (struct spyre_dma_dim){ .count = 300, .host_stride = 4 * 131 };
	desc.dim[1] = (struct spyre_dma_dim){ .count = 130, .host_stride = 4 };
	desc.box.device_stride[0] = 2;
	desc.box.device_stride[1] = 600;
	check_both(&desc);
}
END_TEST

/* Eight dims of which none is contiguous on either side: one element in each row. */
START_TEST(test_eight_dims)
{
	struct spyre_dma_desc desc = part(1, 1, 1, 1);
	uint64_t step = 3;
	uint32_t d;

	desc.num_dims = 8;
	for (d = 8; d--; step *= 3) {
		desc.dim[d].count = 2;
		desc.dim[d].host_stride = 4 * step;
		desc.box.device_stride[7 - d] = 2 * step;
	}
	check_both(&desc);
}
END_TEST

/* 16 MiB and more: stores bypass the caches. */
START_TEST(test_large)
{
	struct spyre_dma_desc desc = part(2100, 4096, 4096, 4128);

	desc.host_format = FP16;
	desc.dim[0].host_stride = 2 * 4096;
	desc.dim[1].host_stride = 2;
	desc.box.device_offset = 0;
	desc.direction = _i;
	check_unit(&desc, test_units()[0], 3);
}
END_TEST

static void refused(const struct spyre_dma_desc *desc, enum spyre_stop stop)
{
	uint64_t bytes;

	ck_assert_str_eq(spyre_stop_name(spyre_dma_check(desc, &bytes, NULL)),
			 spyre_stop_name(stop));
}

#define REFUSED(field, value, stop)			\
	do {						\
		struct spyre_dma_desc bad = good;	\
							\
		bad.field = value;			\
		refused(&bad, stop);			\
	} while (0)

START_TEST(test_refusals)
{
	struct spyre_dma_desc good = part(10, 300, 400, 500);
	struct spyre_counters cost;
	uint64_t bytes;

	ck_assert_int_eq(spyre_dma_check(&good, &bytes, &cost), SPYRE_STOP_NONE);
	ck_assert_uint_eq(bytes, 2 * (12 * 500 + 305));
	ck_assert_uint_eq(cost.bytes_written, 2 * 10 * 300);
	REFUSED(flags, 3, SPYRE_STOP_DMA_SHAPE);
	REFUSED(flags, 0, SPYRE_STOP_DMA_SHAPE);
	REFUSED(reserved[1], 1, SPYRE_STOP_DMA_SHAPE);
	REFUSED(num_dims, 0, SPYRE_STOP_DMA_SHAPE);
	REFUSED(num_dims, 1, SPYRE_STOP_DMA_SHAPE);
	REFUSED(num_dims, 3, SPYRE_STOP_DMA_SHAPE);
	REFUSED(num_dims, 9, SPYRE_STOP_DMA_SHAPE);
	REFUSED(num_bounds, 1, SPYRE_STOP_DMA_SHAPE);
	REFUSED(bound[1].limit, 1, SPYRE_STOP_DMA_SHAPE);
	REFUSED(bound[7].coef[7], 1, SPYRE_STOP_DMA_SHAPE);
	REFUSED(dim[1].count, 0, SPYRE_STOP_DMA_SHAPE);
	REFUSED(dim[1].count, 0x80000001, SPYRE_STOP_DMA_SHAPE);
	REFUSED(host_offset, ~0ull, SPYRE_STOP_DMA_SHAPE);
	REFUSED(dim[0].host_stride, 1ull << 62, SPYRE_STOP_DMA_SHAPE);
	REFUSED(box.device_offset, ~0ull, SPYRE_STOP_DMA_SHAPE);
	REFUSED(box.device_stride[0], 1ull << 62, SPYRE_STOP_DMA_SHAPE);
	/* 9 steps of this wrap to a small number. */
	REFUSED(box.device_stride[0], ~0ull / 9 + 1, SPYRE_STOP_DMA_SHAPE);
	REFUSED(box.device_stride[2], 2, SPYRE_STOP_DMA_SHAPE);
	REFUSED(box.device_stride[0], 1ull << 31, SPYRE_STOP_DMA_RANGE);
	REFUSED(box.device_offset, (1ull << 34) - 9 * 1000 - 600 + 1, SPYRE_STOP_DMA_RANGE);
	REFUSED(device_format, SPYRE_FMT_SENINT4, SPYRE_STOP_DMA_FORMAT);
	/* The destination of one element is written once, its source may be read often. */
	REFUSED(box.device_stride[1], 0, SPYRE_STOP_DMA_SHAPE);
	good.direction = SPYRE_DMA_D2H;
	REFUSED(dim[1].host_stride, 0, SPYRE_STOP_DMA_SHAPE);
	good.box.device_stride[1] = 0;
	ck_assert_int_eq(spyre_dma_check(&good, &bytes, NULL), SPYRE_STOP_NONE);
	/* The device range ends with the segment. */
	good.box.device_offset = (1ull << 34) - 9 * 1000 - 2;
	ck_assert_int_eq(spyre_dma_check(&good, &bytes, NULL), SPYRE_STOP_NONE);
	ck_assert_uint_eq(bytes, 1ull << 34);
	/* Repeated elements count, too: 16 GiB at most. */
	good.dim[0].count = 0x7fffffff;
	good.box.device_stride[0] = 0;
	refused(&good, SPYRE_STOP_DMA_RANGE);
}
END_TEST

/* A span that is one byte short: nothing at all moves. */
START_TEST(test_short_span)
{
	struct spyre_dma_desc desc = part(10, 300, 400, 500);
	uint64_t bytes, host_bytes = host_end(&desc);
	uint8_t *host = malloc(host_bytes), *device;
	struct test_host h;

	ck_assert_int_eq(spyre_dma_check_host(&desc, host_bytes), SPYRE_STOP_NONE);
	ck_assert_int_eq(spyre_dma_check_host(&desc, host_bytes - 1), SPYRE_STOP_DMA_RANGE);
	ck_assert_int_eq(spyre_dma_check(&desc, &bytes, NULL), SPYRE_STOP_NONE);
	device = malloc(bytes);
	for (desc.direction = 0; desc.direction < 2; desc.direction++) {
		memset(host, 0x11, host_bytes);
		memset(device, 0x22, bytes);
		test_host_init(&h, test_units()[0], 1);
		ck_assert_str_eq(spyre_stop_name(spyre_card_dma(&h.host, NULL, &h.self, &desc,
								device, host, host_bytes - 1)),
				 "EXTENT");
		test_host_done(&h);
		for (uint64_t i = 0; i < bytes; i++)
			expect(device[i] == 0x22, "byte %llu of the device was written",
			       (unsigned long long)i);
		for (uint64_t i = 0; i < host_bytes; i++)
			expect(host[i] == 0x11, "byte %llu of the host was written",
			       (unsigned long long)i);
	}
	/* A tiled transfer treats the missing part as padding instead. */
	desc.flags = 0;
	ck_assert_int_eq(spyre_dma_check_host(&desc, 1), SPYRE_STOP_NONE);
	free(device);
	free(host);
}
END_TEST

/* Rows of one element take time of their own: the engine polls every 20 us or so. */
START_TEST(test_polls)
{
	struct spyre_dma_desc desc = part(1, 32000, 1, 1);
	uint8_t *device = malloc(1 << 18), *host = calloc(1, 1 << 18);
	struct spyre_counters cost;
	struct test_host h;
	uint64_t bytes;

	desc.box.device_stride[1] = 6;
	test_host_init(&h, test_units()[_i], 1);
	h.polls_left = 20;
	ck_assert_int_eq(spyre_dma_check(&desc, &bytes, &cost), SPYRE_STOP_NONE);
	ck_assert_uint_eq(cost.cycles, 32000);
	ck_assert_int_eq(spyre_card_dma(&h.host, NULL, &h.self, &desc, device, host, 1 << 18),
			 SPYRE_STOP_CANCELLED);
	test_host_done(&h);
	free(device);
	free(host);
}
END_TEST

START_TEST(test_cancel)
{
	struct spyre_dma_desc desc = part(32, 256, 256, 64 * 256);
	uint8_t *device = malloc(4 << 20), *host = calloc(1, 8 << 20);
	struct test_host h;

	/* One task that takes longer than the engine may go without polling. */
	desc.num_dims = 3;
	desc.dim[2] = (struct spyre_dma_dim){ .count = 64, .host_stride = 4 * 32 * 256 };
	desc.box.device_stride[2] = 2 * 256;

	test_host_init(&h, test_units()[0], 1);
	h.polls_left = 1;
	ck_assert_int_eq(spyre_card_dma(&h.host, NULL, &h.self, &desc, device, host, 8 << 20),
			 SPYRE_STOP_CANCELLED);
	test_host_done(&h);
	free(device);
	free(host);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("model_boxes");
	TCase *tc = tcase_create("boxes");
	int units = test_units_report();

	tcase_set_timeout(tc, 300);
	tcase_add_test(tc, test_parts);
	tcase_add_test(tc, test_transposed);
	tcase_add_test(tc, test_eight_dims);
	tcase_add_loop_test(tc, test_large, 0, 2);
	tcase_add_test(tc, test_refusals);
	tcase_add_test(tc, test_short_span);
	tcase_add_loop_test(tc, test_polls, 0, units);
	tcase_add_test(tc, test_cancel);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
