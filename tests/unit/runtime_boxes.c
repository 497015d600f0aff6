/* SPDX-License-Identifier: MIT */
/* Copies of lists of boxes: conversion, untouched bytes, order, refusals. */
#include <stdio.h>

#include "runtime_check.h"

#include "libspyre/runtime/context.h"
#include "tests/order.h"

#define AREA 65536u		/* bytes on each side */
#define GUARD 0xa5

static spyre_context *context;
static spyre_stream *stream;
static spyre_devptr device;
static uint8_t *host;		/* AREA, the device's bytes after it */

static void setup(void)
{
	context = open_card();
	stream = get_stream(context, 0);
	ck_ok(spyre_mem_alloc(context, AREA, &device));
	host = malloc(2 * AREA);
}

static void teardown(void)
{
	free(host);
	ck_ok(spyre_context_destroy(context));
}

static spyre_box_copy copy_of(spyre_copy_direction direction, const spyre_box *boxes, uint32_t n)
{
	return (spyre_box_copy){
		.struct_size = sizeof(spyre_box_copy), .direction = direction,
		.device = device, .device_format = SPYRE_FORMAT_IEEE_FP32,
		.host = host, .host_bytes = AREA, .host_format = SPYRE_FORMAT_IEEE_FP32,
		.boxes = boxes, .num_boxes = n,
	};
}

static const uint8_t *device_bytes(void)
{
	ck_ok(spyre_stream_synchronize(stream));
	ck_ok(spyre_memcpy_d2h(context, host + AREA, device, AREA));
	return host + AREA;
}

/* The same, as 32-bit words in the host's order. */
static const uint8_t *device_words(void)
{
	device_bytes();
	order_le(host + AREA, AREA / 4, 4);
	return host + AREA;
}

/* Copies 40 x 150 fp16 as the layout (3, 40, 64) does: two whole tiles, and one of 22 lanes. */
static const spyre_box tiles[2] = {
	{
		.rank = 3, .size = { 2, 40, 64 }, .host_stride = { 64, 150, 1 },
		.device_stride = { 2560, 64, 1 },
	}, {
		.rank = 2, .size = { 40, 22 }, .host_stride = { 150, 1 }, .host_offset = 128,
		.device_stride = { 64, 1 }, .device_offset = 2 * 2560,
	},
};

/* The bits are those of the tiled copy, except that padding stays as it is. */
START_TEST(same_as_tiled)
{
	static const spyre_format formats[][2] = {
		{ SPYRE_FORMAT_IEEE_FP16, SPYRE_FORMAT_SEN169_FP16 },
		{ SPYRE_FORMAT_IEEE_FP16, SPYRE_FORMAT_IEEE_FP16 },
		{ SPYRE_FORMAT_BFLOAT16, SPYRE_FORMAT_SEN169_FP16 },
	};
	const int64_t size[2] = { 40, 150 };
	static uint8_t want[AREA], back[AREA];
	spyre_box_copy copy = copy_of(SPYRE_COPY_H2D, tiles, 2);
	spyre_host_tensor tensor;
	spyre_layout layout;

	copy.host_format = formats[_i][0];
	copy.device_format = formats[_i][1];
	random_bytes(host, AREA, 7 + _i);
	/* Two host formats have another device format by default. */
	ck_ok(spyre_layout_init(&layout, 2, size, SPYRE_FORMAT_IEEE_FP16));
	layout.device_format = formats[_i][1];
	ck_ok(spyre_host_tensor_dense(&tensor, host, formats[_i][0], 2, size));
	ck_ok(spyre_copy_h2d(context, device, &layout, &tensor));
	ck_ok(spyre_memcpy_d2h(context, want, device, AREA));
	for (int i = 0; i < 40; i++)
		memset(want + 2 * (2 * 2560 + 64 * i + 22), GUARD, 2 * 42);
	ck_ok(spyre_memset_async(stream, device, &(uint8_t){ GUARD }, 1, 3 * 5120));
	ck_ok(spyre_copy_boxes_async(stream, &copy));
	ck_assert_mem_eq(device_bytes(), want, 3 * 5120);

	memset(want, GUARD, AREA);
	memset(back, GUARD, AREA);
	tensor.data = want;
	ck_ok(spyre_copy_d2h(context, &tensor, device, &layout));
	copy.direction = SPYRE_COPY_D2H;
	copy.host = back;
	ck_ok(spyre_copy_boxes_async(stream, &copy));
	ck_ok(spyre_stream_synchronize(stream));
	ck_assert_mem_eq(back, want, AREA);
}
END_TEST

/* Moves one box of fp32 word by word; words change their order as they do in a copy. */
static void naive(uint8_t *to, const uint8_t *from, const spyre_box *box, bool h2d)
{
	int64_t total = 1, i, h, d, rest;

	for (uint32_t k = 0; k < box->rank; k++)
		total *= box->size[k];
	for (i = 0; i < total; i++) {
		h = box->host_offset;
		d = box->device_offset;
		rest = i;
		for (uint32_t k = box->rank; k--; rest /= box->size[k]) {
			h += rest % box->size[k] * box->host_stride[k];
			d += rest % box->size[k] * box->device_stride[k];
		}
		memcpy(to + 4 * (h2d ? d : h), from + 4 * (h2d ? h : d), 4);
		order_le(to + 4 * (h2d ? d : h), 1, 4);
	}
}

/* A box whose dimensions nest in different orders on the two sides, with gaps. */
static spyre_box random_box(uint64_t *state)
{
	spyre_box box = { .rank = (uint32_t)(random_next(state) % 9) };
	int64_t host_step = 1 + random_next(state) % 2, device_step = 1 + random_next(state) % 2;
	uint32_t shift = (uint32_t)random_next(state);

	for (uint32_t k = 0; k < box.rank; k++)
		box.size[k] = 1 + random_next(state) % (box.rank > 4 ? 3 : 8);
	for (uint32_t k = 0; k < box.rank; k++) {
		uint32_t d = (k + shift) % box.rank;

		box.host_stride[k] = host_step;
		host_step *= box.size[k];
		box.device_stride[d] = device_step;
		device_step *= box.size[d];
	}
	box.host_offset = random_next(state) % 100;
	box.device_offset = random_next(state) % 100;
	return box;
}

START_TEST(random_boxes)
{
	static uint8_t want[AREA], before[AREA];
	uint64_t state = 11;

	for (int round = 0; round < 60; round++) {
		spyre_box boxes[3];
		spyre_box_copy copy = copy_of(SPYRE_COPY_H2D, boxes, 3);

		random_bytes(host, AREA, 100 + round);
		random_bytes(want, AREA, 200 + round);
		ck_ok(spyre_memcpy_h2d(context, device, want, AREA));
		for (int i = 0; i < 3; i++) {
			boxes[i] = random_box(&state);
			naive(want, host, &boxes[i], true);
		}
		ck_ok(spyre_copy_boxes_async(stream, &copy));
		ck_assert_mem_eq(device_bytes(), want, AREA);
		memcpy(before, host, AREA);
		for (int i = 0; i < 3; i++) {
			boxes[i] = random_box(&state);
			naive(before, want, &boxes[i], false);
		}
		copy.direction = SPYRE_COPY_D2H;
		ck_ok(spyre_copy_boxes_async(stream, &copy));
		ck_ok(spyre_stream_synchronize(stream));
		ck_assert_mem_eq(host, before, AREA);
	}
}
END_TEST

/* More boxes than a submission has blocks; each overlaps the one before, and the last wins. */
START_TEST(many_boxes)
{
	enum { BOXES = 600 };
	spyre_box *boxes = calloc(BOXES, sizeof(*boxes));
	spyre_box_copy copy = copy_of(SPYRE_COPY_H2D, boxes, BOXES);
	const uint32_t *words;

	for (uint32_t i = 0; i < AREA / 4; i++)
		((uint32_t *)(void *)host)[i] = i;
	for (int64_t i = 0; i < BOXES; i++)
		boxes[i] = (spyre_box){
			.rank = 1, .size = { 2 }, .host_stride = { 1 }, .host_offset = 10 * i,
			.device_stride = { 1 }, .device_offset = i,
		};
	/* An empty box in between is skipped. */
	boxes[300].size[0] = 0;
	ck_ok(spyre_copy_boxes_async(stream, &copy));
	free(boxes);
	words = (const uint32_t *)(const void *)device_words();
	for (uint32_t i = 0; i < BOXES; i++)
		ck_assert_uint_eq(words[i], i == 300 ? 10 * 299 + 1 : 10 * i);
	ck_assert_uint_eq(words[BOXES], 10 * (BOXES - 1) + 1);
}
END_TEST

static void count_up(void *data)
{
	++*(int *)data;
}

/* The arguments may go away at once, even if a host function holds the work back. */
START_TEST(behind_a_host_function)
{
	spyre_box *box = calloc(1, sizeof(*box));
	spyre_box_copy copy = copy_of(SPYRE_COPY_H2D, box, 1);
	int calls = 0;

	random_bytes(host, AREA, 3);
	*box = (spyre_box){ .rank = 1, .size = { 5000 }, .host_stride = { 2 },
			    .device_stride = { 1 } };
	ck_ok(spyre_stream_host_fn(stream, count_up, &calls));
	ck_ok(spyre_copy_boxes_async(stream, &copy));
	memset(box, 0xff, sizeof(*box));
	free(box);
	device_words();
	for (int i = 0; i < 5000; i++)
		ck_assert_mem_eq(host + AREA + 4 * i, host + 8 * i, 4);
	ck_assert_int_eq(calls, 1);
}
END_TEST

START_TEST(captured)
{
	const spyre_box box = { .rank = 1, .size = { 500 }, .host_stride = { 3 },
				.device_stride = { 2 }, .device_offset = 1 };
	spyre_box_copy copy = copy_of(SPYRE_COPY_H2D, &box, 1);
	spyre_graph *graph;

	ck_ok(spyre_stream_begin_capture(stream));
	ck_ok(spyre_copy_boxes_async(stream, &copy));
	ck_ok(spyre_stream_end_capture(stream, &graph));
	for (int round = 0; round < 2; round++) {
		random_bytes(host, AREA, 40 + round);
		ck_ok(spyre_graph_launch(graph, stream));
		device_words();
		for (int i = 0; i < 500; i++)
			ck_assert_mem_eq(host + AREA + 4 + 8 * i, host + 12 * i, 4);
	}
	ck_ok(spyre_graph_destroy(graph));
}
END_TEST

/* Memory that the card need not pin, and a destination that repeats its source. */
START_TEST(pinned_and_repeated)
{
	const spyre_box box = { .rank = 2, .size = { 100, 7 }, .host_stride = { 0, 1 },
				.device_stride = { 9, 1 } };
	spyre_box_copy copy = copy_of(SPYRE_COPY_H2D, &box, 1);
	void *pinned;

	ck_ok(spyre_host_alloc(context, 4096, &pinned));
	random_bytes(pinned, 28, 5);
	copy.host = pinned;
	copy.host_bytes = 28;
	ck_ok(spyre_memset_async(stream, device, &(uint8_t){ GUARD }, 1, AREA));
	ck_ok(spyre_copy_boxes_async(stream, &copy));
	device_words();
	for (int i = 0; i < 100; i++) {
		ck_assert_mem_eq(host + AREA + 36 * i, pinned, 28);
		ck_assert_uint_eq(host[AREA + 36 * i + 28], GUARD);
	}
	ck_ok(spyre_host_free(context, pinned));
}
END_TEST

#define REFUSED(field, value, status, mention)			\
	do {							\
		spyre_box bad = box;				\
								\
		copy.boxes = &bad;				\
		bad.field = (value);				\
		ck_status(spyre_copy_boxes_async(stream, &copy), status); \
		ck_mentions(mention);				\
	} while (0)

START_TEST(refused_boxes)
{
	/* The last element is the last one of both sides. */
	const spyre_box box = {
		.rank = 2, .size = { 4, 8 }, .host_stride = { 100, 2 },
		.host_offset = AREA / 4 - 315, .device_stride = { 50, 3 },
		.device_offset = AREA / 4 - 172,
	};
	spyre_box_copy copy = copy_of(SPYRE_COPY_H2D, &box, 1);

	memset(host, 1, AREA);
	ck_ok(spyre_memset_async(stream, device, &(uint8_t){ GUARD }, 1, AREA));
	REFUSED(rank, 9, SPYRE_ERROR_INVALID_ARGUMENT, "9 dimensions");
	REFUSED(size[1], -1, SPYRE_ERROR_INVALID_ARGUMENT, "dimension 1");
	REFUSED(size[0], (INT64_C(1) << 31) + 1, SPYRE_ERROR_INVALID_ARGUMENT, "2147483649");
	REFUSED(host_stride[1], -2, SPYRE_ERROR_INVALID_ARGUMENT, "negative host stride -2");
	REFUSED(device_stride[0], -2, SPYRE_ERROR_INVALID_ARGUMENT, "negative device stride");
	REFUSED(host_offset, -1, SPYRE_ERROR_INVALID_ARGUMENT, "host offset of -1");
	REFUSED(device_offset, INT64_MAX, SPYRE_ERROR_INVALID_ARGUMENT, "device offset");
	REFUSED(host_stride[0], INT64_MAX / 2, SPYRE_ERROR_INVALID_ARGUMENT, "2^63");
	REFUSED(device_stride[0], INT64_MAX / 4 / 3, SPYRE_ERROR_INVALID_ARGUMENT, "2^63");
	REFUSED(device_stride[0], INT64_C(1) << 32, SPYRE_ERROR_INVALID_ARGUMENT, "16 GiB");
	REFUSED(host_offset, box.host_offset + 1, SPYRE_ERROR_INVALID_ARGUMENT, "65540");
	REFUSED(device_offset, box.device_offset + 1, SPYRE_ERROR_INVALID_ADDRESS, "box 0");
	REFUSED(device_stride[1], 0, SPYRE_ERROR_LAYOUT, "twice");
	REFUSED(device_stride[0], 21, SPYRE_ERROR_LAYOUT, "dimension 0 has stride 21");
	copy.direction = SPYRE_COPY_D2H;
	REFUSED(host_stride[0], 14, SPYRE_ERROR_LAYOUT, "host elements twice");
	ck_assert(all_words((const uint32_t *)(const void *)device_bytes(), AREA / 4,
			    GUARD * 0x01010101u));
	ck_assert(all_words((const uint32_t *)(const void *)host, AREA / 4, 0x01010101u));
	copy = copy_of(SPYRE_COPY_H2D, &box, 1);
	ck_ok(spyre_copy_boxes_async(stream, &copy));
	ck_assert_uint_eq(device_bytes()[AREA - 1], 1);
}
END_TEST

START_TEST(refused_copies)
{
	const spyre_box box = { .rank = 0 };
	spyre_box_copy copy = copy_of(SPYRE_COPY_H2D, &box, 1), bad;

	ck_status(spyre_copy_boxes_async(stream, NULL), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_copy_boxes_async(NULL, &copy), SPYRE_ERROR_INVALID_ARGUMENT);
	bad = copy;
	bad.struct_size = 8;
	ck_status(spyre_copy_boxes_async(stream, &bad), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_mentions("struct_size is 8");
	bad = copy;
	bad.direction = (spyre_copy_direction)2;
	ck_status(spyre_copy_boxes_async(stream, &bad), SPYRE_ERROR_INVALID_ARGUMENT);
	bad = copy;
	bad.boxes = NULL;
	ck_status(spyre_copy_boxes_async(stream, &bad), SPYRE_ERROR_INVALID_ARGUMENT);
	bad.num_boxes = 0;
	ck_ok(spyre_copy_boxes_async(stream, &bad));
	bad = copy;
	bad.host = NULL;
	ck_status(spyre_copy_boxes_async(stream, &bad), SPYRE_ERROR_INVALID_ARGUMENT);
	bad = copy;
	bad.host_format = SPYRE_FORMAT_SENINT4;
	ck_status(spyre_copy_boxes_async(stream, &bad), SPYRE_ERROR_FORMAT);
	bad = copy;
	bad.device += 64;
	ck_status(spyre_copy_boxes_async(stream, &bad), SPYRE_ERROR_INVALID_ADDRESS);
	ck_mentions("128-byte aligned");
	/* One invalid box: none is queued. */
	ck_ok(spyre_memset_async(stream, device, &(uint8_t){ GUARD }, 1, AREA));
	memset(host, 1, AREA);
	bad = copy;
	bad.boxes = (const spyre_box[]){ { .rank = 0 }, { .rank = 0, .host_offset = AREA / 4 } };
	bad.num_boxes = 2;
	ck_status(spyre_copy_boxes_async(stream, &bad), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_mentions("box 1");
	ck_assert_uint_eq(device_bytes()[0], GUARD);
	/* A box of rank 0 is one element. */
	ck_ok(spyre_copy_boxes_async(stream, &copy));
	ck_assert_uint_eq(device_bytes()[3], 1);
	ck_assert_uint_eq(device_bytes()[4], GUARD);
}
END_TEST

/* A module that does not know boxes is named, instead of an error from the card. */
START_TEST(old_module)
{
	const spyre_box box = { .rank = 0 };
	spyre_box_copy copy = copy_of(SPYRE_COPY_H2D, &box, 1);

	ck_assert(context->card->boxes);
	context->card->boxes = false;
	ck_status(spyre_copy_boxes_async(stream, &copy), SPYRE_ERROR_UNSUPPORTED);
	ck_mentions("older than interface 1.3");
	ck_ok(spyre_stream_synchronize(stream));
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("boxes");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_loop_test(tests, same_as_tiled, 0, 3);
	tcase_add_test(tests, random_boxes);
	tcase_add_test(tests, many_boxes);
	tcase_add_test(tests, behind_a_host_function);
	tcase_add_test(tests, captured);
	tcase_add_test(tests, pinned_and_repeated);
	tcase_add_test(tests, refused_boxes);
	tcase_add_test(tests, refused_copies);
	tcase_add_test(tests, old_module);
	return run_suite("runtime_boxes", tests);
}
