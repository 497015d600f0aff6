// SPDX-License-Identifier: MIT
/* Tiled, converting transfers against the naive reference; refused descriptors. */
#include "model_util.h"
#include "model_reference.h"
#include "suite.h"

#include <stdlib.h>
#include <string.h>

#define DL16 SPYRE_FMT_SEN169_FP16
#define FP32 SPYRE_FMT_IEEE_FP32
#define FP16 SPYRE_FMT_IEEE_FP16

/* Runs @desc in both directions on all units; the host span is @host_bytes long. */
static void check(struct spyre_dma_desc *desc, uint64_t host_bytes)
{
	const struct spyre_unit *const *unit;
	struct guarded host, want_host, device, want;
	struct test_host h;
	uint64_t bytes, seed = 77;
	int threads;

	ck_assert_int_eq(spyre_dma_check(desc, &bytes, NULL), SPYRE_STOP_NONE);
	for (unit = test_units(); *unit; unit++) {
		for (threads = 1; threads <= 3; threads += 2) {
			guarded_alloc(&host, host_bytes);
			guarded_alloc(&want_host, host_bytes);
			guarded_alloc(&device, bytes);
			guarded_alloc(&want, bytes);
			rng_fill(&seed, host.p, host_bytes, desc->host_format);
			rng_fill(&seed, device.p, bytes, desc->device_format);
			memcpy(want_host.p, host.p, host_bytes);
			memcpy(want.p, device.p, bytes);
			reference_dma(desc, want.p, want_host.p, host_bytes);
			test_host_init(&h, *unit, threads);
			ck_assert_int_eq(spyre_card_dma(&h.host, NULL, &h.self, desc, device.p,
							host.p, host_bytes), SPYRE_STOP_NONE);
			test_host_done(&h);
			ck_assert_msg(!memcmp(want.p, device.p, bytes), "device, %s, formats %u %u",
				      spyre_unit_name(*unit), desc->host_format,
				      desc->device_format);
			ck_assert_msg(!memcmp(want_host.p, host.p, host_bytes),
				      "host, %s, formats %u %u", spyre_unit_name(*unit),
				      desc->host_format, desc->device_format);
			ck_assert(guarded_intact(&host) && guarded_intact(&device));
			guarded_free(&host);
			guarded_free(&want_host);
			guarded_free(&device);
			guarded_free(&want);
		}
	}
}

static void check_both(struct spyre_dma_desc *desc, uint64_t host_bytes)
{
	desc->direction = SPYRE_DMA_H2D;
	check(desc, host_bytes);
	desc->direction = SPYRE_DMA_D2H;
	check(desc, host_bytes);
}

/* rows x cols of the host, [cols / lanes][rows][lanes] on the device. */
static struct spyre_dma_desc tiled(uint32_t rows, uint32_t cols, uint32_t host, uint32_t device,
				   bool transposed)
{
	uint32_t lanes = 128 / spyre_fmt_bytes(device);
	uint64_t eb = spyre_fmt_bytes(host);
	uint64_t row = transposed ? eb : cols * eb, col = transposed ? rows * eb : eb;

	return (struct spyre_dma_desc){
		.host_format = host,
		.device_format = device,
		.num_dims = 3,
		.num_bounds = 1,
		.dim = {
			{ .count = (cols + lanes - 1) / lanes, .host_stride = lanes * col },
			{ .count = rows, .host_stride = row },
			{ .count = lanes, .host_stride = col },
		},
		.bound = { { .limit = cols, .coef = { lanes, 0, 1 } } },
	};
}

START_TEST(test_formats)
{
	struct spyre_dma_desc desc;
	uint32_t host, device;

	for (host = 0; host < SPYRE_FMT_COUNT; host++) {
		for (device = 0; device < SPYRE_FMT_COUNT; device++) {
			uint64_t bytes;

			if (!spyre_fmt_convertible(host, device)) {
				desc = tiled(3, 64, FP16, DL16, false);
				desc.host_format = host;
				desc.device_format = device;
				ck_assert_int_eq(spyre_dma_check(&desc, &bytes, NULL),
						 SPYRE_STOP_DMA_FORMAT);
				continue;
			}
			desc = tiled(5, 75, host, device, false);
			check_both(&desc, 5ull * 75 * spyre_fmt_bytes(host));
		}
	}
}
END_TEST

START_TEST(test_shapes)
{
	static const uint32_t formats[][2] = {
		{ FP16, DL16 }, { FP32, FP32 }, { FP32, DL16 },
		{ SPYRE_FMT_SENINT8, SPYRE_FMT_SENINT8 },
	};
	static const uint32_t sizes[][2] = {
		{ 1, 1 }, { 1, 64 }, { 63, 65 }, { 128, 256 }, { 200, 150 }, { 2, 4100 },
		{ 300, 31 },
	};
	uint32_t i, t;

	for (i = 0; i < 7; i++) {
		for (t = 0; t < 2; t++) {
			uint32_t rows = sizes[i][0], cols = sizes[i][1];
			struct spyre_dma_desc desc = tiled(rows, cols, formats[_i][0],
							   formats[_i][1], t);

			check_both(&desc, (uint64_t)rows * cols * spyre_fmt_bytes(formats[_i][0]));
			/* The span is too short by three bytes, or by a row. */
			if (rows * cols > 100) {
				desc.host_offset = 2;
				check_both(&desc, (uint64_t)rows * cols *
					   spyre_fmt_bytes(formats[_i][0]) - 1);
				check_both(&desc, (uint64_t)(rows - 1) * cols *
					   spyre_fmt_bytes(formats[_i][0]) + 1);
			}
			check_both(&desc, 1);
		}
	}
}
END_TEST

/* 16 MiB on the device and a stick: stores bypass the caches. */
START_TEST(test_large)
{
	struct spyre_dma_desc desc = tiled(2048, 4097, FP16, DL16, false);

	desc.direction = _i;
	check(&desc, 2048ull * 4097 * 2);
}
END_TEST

/* Random dims, strides and bounds: only elements within the bounds move. */
START_TEST(test_random)
{
	uint64_t seed = 31337;
	int n, i, k;

	for (n = 0; n < 150; n++) {
		static const uint32_t formats[][2] = {
			{ FP16, DL16 }, { DL16, DL16 }, { FP32, SPYRE_FMT_BFLOAT16 },
			{ SPYRE_FMT_IEEE_INT64, SPYRE_FMT_IEEE_INT32 },
			{ SPYRE_FMT_BOOL, DL16 }, { SPYRE_FMT_FP64, FP32 },
		};
		struct spyre_dma_desc desc = { 0 };
		uint64_t stride, span, reach, bytes;
		uint32_t order[8], d;

		desc.host_format = formats[n % 6][0];
		desc.device_format = formats[n % 6][1];
		stride = spyre_fmt_bytes(desc.host_format);
		desc.num_dims = 1 + rng_below(&seed, 6);
		desc.host_offset = rng_below(&seed, 40);
		/* A dense host tensor whose dims have a random order on the device. */
		for (d = 0; d < desc.num_dims; d++) {
			uint32_t at = rng_below(&seed, d + 1);

			order[d] = order[at];
			order[at] = d;
		}
		for (d = 0; d < desc.num_dims; d++) {
			uint32_t dim = order[d];

			desc.dim[dim].count = 1 + rng_below(&seed, d < 2 ? 70 : 5);
			desc.dim[dim].host_stride = stride;
			stride *= desc.dim[dim].count + rng_below(&seed, 2);
		}
		span = desc.host_offset + stride;
		desc.num_bounds = rng_below(&seed, 4);
		for (i = 0; i < desc.num_bounds; i++) {
			for (reach = 0, k = 0; k < desc.num_dims; k++) {
				desc.bound[i].coef[k] = rng_below(&seed, 3) * rng_below(&seed, 40);
				reach += desc.bound[i].coef[k] * (desc.dim[k].count - 1);
			}
			desc.bound[i].limit = rng_below(&seed, reach + 40);
		}
		if (spyre_dma_check(&desc, &bytes, NULL) == SPYRE_STOP_NONE && bytes < 1 << 21)
			check_both(&desc, span - rng_below(&seed, span / 4 + 1));
	}
}
END_TEST

/* Runs one transfer in memory of exactly its size, so that a sanitizer sees the end. */
static void check_exact(const struct spyre_unit *unit, const struct spyre_dma_desc *desc,
			uint64_t host_bytes)
{
	uint8_t *host = malloc(host_bytes), *device, *want_host = malloc(host_bytes), *want;
	uint64_t seed = 5, bytes;
	struct test_host h;

	ck_assert_int_eq(spyre_dma_check(desc, &bytes, NULL), SPYRE_STOP_NONE);
	device = malloc(bytes);
	want = malloc(bytes);
	rng_fill(&seed, host, host_bytes, desc->host_format);
	rng_fill(&seed, device, bytes, desc->device_format);
	memcpy(want_host, host, host_bytes);
	memcpy(want, device, bytes);
	reference_dma(desc, want, want_host, host_bytes);
	test_host_init(&h, unit, 1);
	ck_assert_int_eq(spyre_card_dma(&h.host, NULL, &h.self, desc, device, host, host_bytes),
			 SPYRE_STOP_NONE);
	test_host_done(&h);
	ck_assert_msg(!memcmp(want, device, bytes) && !memcmp(want_host, host, host_bytes),
		      "%s, direction %u, formats %u %u, %u lanes, span of %llu bytes",
		      spyre_unit_name(unit), desc->direction, desc->host_format,
		      desc->device_format, desc->dim[1].count, (unsigned long long)host_bytes);
	free(host);
	free(want_host);
	free(device);
	free(want);
}

/*
 * Transposed rows whose valid lanes are a whole tile of the unit, 128 bytes, while
 * the dim has more: a bound or the end of the span cuts them off.
 */
START_TEST(test_tile_of_partial_lanes)
{
	static const uint32_t formats[][2] = {
		{ FP32, FP32 }, { FP32, DL16 }, { FP32, SPYRE_FMT_BFLOAT16 },
		{ SPYRE_FMT_IEEE_INT32, SPYRE_FMT_IEEE_INT32 },
		{ SPYRE_FMT_IEEE_INT32, DL16 }, { SPYRE_FMT_SENUINT32, SPYRE_FMT_SENUINT32 },
		{ FP16, DL16 }, { FP16, FP16 }, { FP16, FP32 },
	};
	const struct spyre_unit *unit = test_units()[_i];
	uint32_t i, lanes, stride, direction, bounded;

	for (i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		uint32_t eb = spyre_fmt_bytes(formats[i][0]), tile = 128 / eb;

		for (lanes = tile; lanes <= 256; lanes += lanes < 66 ? 1 : 38) {
			stride = 64 * eb + lanes % 3 * 32;
			for (direction = 0; direction < 2; direction++) {
				for (bounded = 0; bounded < 2; bounded++) {
					struct spyre_dma_desc desc = {
						.direction = direction,
						.host_format = formats[i][0],
						.device_format = formats[i][1],
						.num_dims = 2,
						.num_bounds = bounded,
						.dim = { { .count = 64, .host_stride = eb },
							 { .count = lanes,
							   .host_stride = stride } },
						.bound = { { .limit = bounded ? tile : 0,
							     .coef = { 0, bounded } } },
					};

					check_exact(unit, &desc, (tile - 1) * stride + 64 * eb);
				}
			}
		}
	}
}
END_TEST

START_TEST(test_replicate)
{
	struct spyre_dma_desc desc = tiled(40, 64, FP16, DL16, false);
	uint64_t bytes;

	/* 40 equal rows, then one element in all lanes. */
	desc.dim[1].host_stride = 0;
	check(&desc, 128);
	desc.dim[2].host_stride = 0;
	check(&desc, 2);
	/* In D2H one host element would be written many times. */
	desc.direction = SPYRE_DMA_D2H;
	ck_assert_int_eq(spyre_dma_check(&desc, &bytes, NULL), SPYRE_STOP_DMA_SHAPE);
	desc.num_bounds = 3;
	desc.bound[1] = (struct spyre_dma_bound){ .limit = 1, .coef = { 0, 1, 0 } };
	desc.bound[2] = (struct spyre_dma_bound){ .limit = 1, .coef = { 0, 0, 1 } };
	check(&desc, 2);
}
END_TEST

static void refused(const struct spyre_dma_desc *desc, enum spyre_stop stop)
{
	uint64_t bytes;

	ck_assert_str_eq(spyre_stop_name(spyre_dma_check(desc, &bytes, NULL)),
			 spyre_stop_name(stop));
}

#define REFUSED(field, value, stop)				\
	do {							\
		struct spyre_dma_desc bad = good;		\
								\
		bad.field = value;				\
		refused(&bad, stop);				\
	} while (0)

START_TEST(test_refusals)
{
	struct spyre_dma_desc good = tiled(40, 150, FP16, DL16, false);
	struct spyre_counters cost;
	uint64_t bytes;

	ck_assert_int_eq(spyre_dma_check(&good, &bytes, &cost), SPYRE_STOP_NONE);
	ck_assert_uint_eq(bytes, 3 * 40 * 128);
	ck_assert_uint_eq(cost.bytes_written, bytes);
	ck_assert_uint_eq(cost.bytes_read, 0);
	ck_assert_uint_eq(cost.cycles, (3 * 40 * 128 + 41) / 42);
	REFUSED(direction, 2, SPYRE_STOP_DMA_SHAPE);
	REFUSED(reserved[1], 1, SPYRE_STOP_DMA_SHAPE);
	REFUSED(num_dims, 0, SPYRE_STOP_DMA_SHAPE);
	REFUSED(num_dims, 9, SPYRE_STOP_DMA_SHAPE);
	REFUSED(num_dims, 2, SPYRE_STOP_DMA_SHAPE);
	REFUSED(num_dims, 4, SPYRE_STOP_DMA_SHAPE);
	REFUSED(num_bounds, 9, SPYRE_STOP_DMA_SHAPE);
	REFUSED(num_bounds, 0, SPYRE_STOP_DMA_SHAPE);
	REFUSED(dim[0].count, 0, SPYRE_STOP_DMA_SHAPE);
	REFUSED(dim[0].count, 0x80000001, SPYRE_STOP_DMA_SHAPE);
	REFUSED(dim[0].reserved, 1, SPYRE_STOP_DMA_SHAPE);
	REFUSED(dim[2].count, 257, SPYRE_STOP_DMA_SHAPE);
	REFUSED(dim[3].host_stride, 2, SPYRE_STOP_DMA_SHAPE);
	REFUSED(dim[1].host_stride, 1ull << 63, SPYRE_STOP_DMA_SHAPE);
	REFUSED(host_offset, ~0ull, SPYRE_STOP_DMA_SHAPE);
	REFUSED(bound[0].coef[1], ~0ull / 2, SPYRE_STOP_DMA_SHAPE);
	REFUSED(bound[0].coef[5], 1, SPYRE_STOP_DMA_SHAPE);
	REFUSED(bound[1].limit, 1, SPYRE_STOP_DMA_SHAPE);
	REFUSED(host_format, SPYRE_FMT_SENINT4, SPYRE_STOP_DMA_FORMAT);
	REFUSED(host_format, 200, SPYRE_STOP_DMA_FORMAT);
	REFUSED(device_format, SPYRE_FMT_FP64, SPYRE_STOP_DMA_FORMAT);
	REFUSED(dim[0].count, 0x7fffffff, SPYRE_STOP_DMA_RANGE);
}
END_TEST

/* Products of counts that exceed 64 bits and wrap to small numbers. */
START_TEST(test_wrapping_sizes)
{
	static const uint32_t counts[][4] = {
		{ 0x80000000, 8, 0x40000000, 1 },
		{ 1718039348, 5, 2147418113, 1 },
		{ 0x80000000, 0x80000000, 4, 64 },
	};
	struct spyre_dma_desc desc = { .direction = SPYRE_DMA_H2D, .host_format = FP16,
				       .device_format = DL16, .num_dims = 4 };
	size_t i, d;

	for (i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		for (d = 0; d < 4; d++)
			desc.dim[d].count = counts[i][d];
		refused(&desc, SPYRE_STOP_DMA_RANGE);
	}
}
END_TEST

/*
 * Passes descriptors that spyre_dma_check() refuses to the engine, as if its own
 * arithmetic were wrong: their blocks leave a span, and the transfer ends with an
 * internal fault before any byte moves.
 */
START_TEST(test_escape)
{
	static const uint32_t formats[][2] = {
		{ FP16, FP16 }, { FP16, DL16 }, { FP32, FP32 }, { FP32, DL16 },
		{ SPYRE_FMT_FP64, FP32 }, { SPYRE_FMT_BOOL, SPYRE_FMT_BOOL },
	};
	uint8_t *host = calloc(1, 1 << 16), *device = calloc(1, 1 << 16);
	uint32_t i, k, direction, form;
	uint64_t bytes;

	for (i = 0; i < 6 * 2 * 2 * 3; i++) {
		uint64_t eb = spyre_fmt_bytes(formats[i % 6][0]);
		struct spyre_dma_desc desc = {
			.host_format = formats[i % 6][0], .device_format = formats[i % 6][1],
			/* With an element added, the sum wraps to a small number. */
			.num_dims = 2, .host_offset = i / 6 % 2 ? -1ull : -eb,
		};
		struct test_host h;

		direction = i / 12 % 2;
		form = i / 24;
		desc.direction = direction;
		desc.dim[0] = (struct spyre_dma_dim){ .count = 64, .host_stride = eb };
		desc.dim[1] = (struct spyre_dma_dim){ .count = 128 / eb, .host_stride = 64 * eb };
		/* Dense rows, transposed tiles, or tiles with other strides. */
		if (form == 0) {
			desc.dim[0].host_stride = 128;
			desc.dim[1].host_stride = eb;
		} else if (form == 1) {
			desc.dim[0].host_stride = 2 * eb;
		}
		memset(host, 0x11, 1 << 16);
		memset(device, 0x11, 1 << 16);
		ck_assert_int_ne(spyre_dma_check(&desc, &bytes, NULL), SPYRE_STOP_NONE);
		test_host_init(&h, test_units()[0], 1);
		ck_assert_str_eq(spyre_stop_name(spyre_card_dma(&h.host, NULL, &h.self, &desc,
								device + 8192, host + 8192, 32768)),
				 "EXTENT");
		test_host_done(&h);
		for (k = 0; k < 1 << 16; k++)
			expect(host[k] == 0x11 && device[k] == 0x11,
			       "form %u, direction %u, byte %u was written", form, direction, k);
	}
	free(device);
	free(host);
}
END_TEST

START_TEST(test_cancel)
{
	struct spyre_dma_desc desc = tiled(1024, 1024, FP16, DL16, false);
	uint8_t *device = malloc(2 << 20), *host = calloc(1, 2 << 20);
	struct test_host h;

	test_host_init(&h, test_units()[0], 1);
	h.polls_left = 3;
	ck_assert_int_eq(spyre_card_dma(&h.host, NULL, &h.self, &desc, device, host, 2 << 20),
			 SPYRE_STOP_CANCELLED);
	test_host_done(&h);
	free(device);
	free(host);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("model_dma");
	TCase *tc = tcase_create("dma");
	int units = test_units_report();

	tcase_set_timeout(tc, 300);
	tcase_add_test(tc, test_formats);
	tcase_add_loop_test(tc, test_tile_of_partial_lanes, 0, units);
	tcase_add_loop_test(tc, test_shapes, 0, 4);
	tcase_add_loop_test(tc, test_large, 0, 2);
	tcase_add_test(tc, test_random);
	tcase_add_test(tc, test_replicate);
	tcase_add_test(tc, test_refusals);
	tcase_add_test(tc, test_wrapping_sizes);
	tcase_add_test(tc, test_escape);
	tcase_add_test(tc, test_cancel);
	suite_add_tcase(suite, tc);
	return suite_run(suite);
}
