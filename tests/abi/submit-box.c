/* SPDX-License-Identifier: MIT */
/* abi-submit: DMA of boxes; those that leave either span, or would, move nothing. */
#include "submit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZE (64 * 1024ull)	/* of the device mapping and of the host memory */
#define DEVICE_FILL 0x77777777u
#define HOST_FILL 0x55555555u

/* A box of 5 x 9 words that ends with the last word of both sides. */
static struct drm_spyre_dma last_box(uint8_t direction)
{
	return (struct drm_spyre_dma){
		.direction = direction,
		.host_format = DRM_SPYRE_FORMAT_IEEE_FP32,
		.device_format = DRM_SPYRE_FORMAT_IEEE_FP32,
		.num_dims = 2,
		.flags = DRM_SPYRE_DMA_BOX,
		.host_offset = SIZE - 4 - 4 * 400 - 8 * 4,
		.dim = {
			{ .count = 5, .host_stride = 400 },
			{ .count = 9, .host_stride = 4 },
		},
		.bound = { {
			.limit = SIZE - 4 - 4 * 4 - 8 * 1200,
			/* Transposed: the columns are 1,200 bytes apart. */
			.coef = { 4, 1200 },
		} },
	};
}

struct box_test {
	struct abi_queue queue;
	struct abi_buf device, host;
	uint32_t error_cb;
};

static void fill(struct box_test *t)
{
	uint32_t i;

	for (i = 0; i < SIZE / 4; i++) {
		((uint32_t *)t->device.map)[i] = DEVICE_FILL;
		((uint32_t *)t->host.map)[i] = HOST_FILL;
	}
}

static uint32_t changed(const struct abi_buf *buf, uint32_t value)
{
	uint32_t i, count = 0;

	for (i = 0; i < SIZE / 4; i++)
		count += ((const uint32_t *)buf->map)[i] != value;
	return count;
}

static struct drm_spyre_cb cb_of(struct box_test *t, const struct drm_spyre_dma *desc)
{
	return abi_cb_dma_bo(desc, t->device.va, t->host.handle, 0, SIZE);
}

/* Submits a block that moves something, then @cb: none may run. */
static void refuse(struct box_test *t, const struct drm_spyre_cb *cb, int error, const char *what)
{
	struct drm_spyre_cb cbs[2] = { abi_cb_fill32(t->device.va, SIZE, 1), *cb };

	fill(t);
	t->error_cb = 99;
	tap_ret(abi_submit(&t->queue, cbs, 2, &t->error_cb), error, "box: %s", what);
	tap_ok(t->error_cb == 1 && !changed(&t->device, DEVICE_FILL) &&
	       !changed(&t->host, HOST_FILL), "box: %s: error_cb, and nothing moved", what);
}

static void refuse_desc(struct box_test *t, const struct drm_spyre_dma *desc, int error,
			const char *what)
{
	struct drm_spyre_cb cb = cb_of(t, desc);
	char text[80];

	snprintf(text, sizeof(text), "%s %s", desc->direction ? "D2H" : "H2D", what);
	refuse(t, &cb, error, text);
}

#define REFUSED(field, value, error, what)				\
	do {								\
		for (direction = 0; direction < 2; direction++) {	\
			struct drm_spyre_dma bad = last_box(direction);	\
									\
			bad.field = value;				\
			refuse_desc(t, &bad, error, what);		\
		}							\
	} while (0)

static void test_refused_shapes(struct box_test *t)
{
	uint8_t direction;

	REFUSED(num_dims, 0, -EINVAL, "no dimension");
	REFUSED(num_dims, 9, -EINVAL, "9 dimensions");
	REFUSED(num_dims, 1, -EINVAL, "a dimension beyond num_dims");
	REFUSED(dim[0].count, 0, -EINVAL, "a count of 0");
	REFUSED(dim[1].count, 0, -EINVAL, "a last count of 0");
	REFUSED(dim[1].count, 0x80000001u, -EINVAL, "a count above 2^31");
	REFUSED(dim[0].pad, 1, -EINVAL, "a pad of a dimension");
	REFUSED(num_bounds, 1, -EINVAL, "a bound");
	REFUSED(flags, 3, -EINVAL, "an unknown flag");
	REFUSED(flags, 0x81, -EINVAL, "the highest flag");
	REFUSED(pad[1], 1, -EINVAL, "a pad");
	REFUSED(bound[0].coef[2], 4, -EINVAL, "a stride beyond num_dims");
	REFUSED(bound[1].limit, 1, -EINVAL, "a limit behind the box");
	REFUSED(bound[7].coef[7], 1, -EINVAL, "a coefficient behind the box");
	REFUSED(host_format, DRM_SPYRE_FORMAT_SENINT4, -EINVAL, "a format without whole bytes");
}

static void test_refused_spans(struct box_test *t)
{
	const struct drm_spyre_dma good = last_box(DRM_SPYRE_DMA_H2D);
	uint8_t direction;

	REFUSED(host_offset, good.host_offset + 1, -EINVAL, "a byte beyond the host span");
	REFUSED(host_offset, good.host_offset + 4, -EINVAL, "an element beyond the host span");
	REFUSED(dim[1].count, 10, -EINVAL, "a column beyond both spans");
	REFUSED(bound[0].limit, good.bound[0].limit + 1, -EFAULT,
		"a byte beyond the mapping");
	REFUSED(bound[0].limit, good.bound[0].limit + 4, -EFAULT,
		"an element beyond the mapping");
	/* Sums and products that wrap to small numbers. */
	REFUSED(host_offset, -4ull, -EINVAL, "a host offset of 2^64 - 4");
	REFUSED(bound[0].limit, -4ull, -EINVAL, "a device offset of 2^64 - 4");
	REFUSED(dim[0].host_stride, 1ull << 62, -EINVAL, "host strides that sum up to 2^64");
	REFUSED(bound[0].coef[0], 1ull << 62, -EINVAL, "device strides that sum up to 2^64");
	REFUSED(dim[0].host_stride, (1ull << 63) + 4, -EINVAL, "a host stride above 2^63");
	REFUSED(bound[0].coef[1], (1ull << 61) + 4, -EINVAL,
		"8 steps of a device stride that wrap to 32");
	REFUSED(bound[0].coef[1], 1ull << 31, -EINVAL, "a device range above 16 GiB");
	REFUSED(bound[0].coef[1], 1ull << 28, -EFAULT, "a device range above the mapping");
}

static void test_refused_repeats(struct box_test *t)
{
	struct drm_spyre_dma bad = last_box(DRM_SPYRE_DMA_H2D);
	struct drm_spyre_cb cb;

	bad.bound[0].coef[0] = 0;
	refuse_desc(t, &bad, -EINVAL, "that writes one element many times");
	bad = last_box(DRM_SPYRE_DMA_D2H);
	bad.dim[1].host_stride = 0;
	refuse_desc(t, &bad, -EINVAL, "that writes one element many times");
	bad = last_box(DRM_SPYRE_DMA_H2D);
	cb = cb_of(t, &bad);
	cb.dst += 64;
	refuse(t, &cb, -EINVAL, "a misaligned device address");
	cb = cb_of(t, &bad);
	cb.size--;
	refuse(t, &cb, -EINVAL, "a host span that is a byte short");
	cb = abi_cb_dma(&bad, t->device.va, abi_hole(), SIZE);
	refuse(t, &cb, -EFAULT, "unmapped user memory");
}

static uint32_t *host_word(void *host, uint32_t row, uint32_t col)
{
	const struct drm_spyre_dma box = last_box(0);

	return (uint32_t *)((uint8_t *)host + box.host_offset + row * 400 + col * 4);
}

static uint32_t *device_word(struct box_test *t, uint32_t row, uint32_t col)
{
	const struct drm_spyre_dma box = last_box(0);

	return (uint32_t *)((uint8_t *)t->device.map + box.bound[0].limit + row * 4 +
			    col * 1200);
}

/* Moves the last box of both sides, from and to a host BO or memory that ends with a page. */
static void test_moves(struct box_test *t, void *host, const char *kind)
{
	struct drm_spyre_dma desc = last_box(DRM_SPYRE_DMA_H2D);
	struct drm_spyre_cb cb = host == t->host.map ? cb_of(t, &desc) :
				 abi_cb_dma(&desc, t->device.va, host, SIZE);
	uint32_t row, col, wrong = 0;

	fill(t);
	memset(host, 0x55, SIZE);
	for (row = 0; row < 5; row++)
		for (col = 0; col < 9; col++)
			*host_word(host, row, col) = row * 100 + col;
	tap_ret(abi_run(&t->queue, &cb, 1), 0, "box: H2D from %s", kind);
	for (row = 0; row < 5; row++)
		for (col = 0; col < 9; col++)
			wrong += *device_word(t, row, col) != row * 100 + col;
	tap_eq(wrong, 0, "box: H2D from %s: every element", kind);
	tap_eq(changed(&t->device, DEVICE_FILL), 45, "box: H2D from %s: nothing else", kind);
	tap_eq(abi_results(&t->queue)->bytes_written, 45 * 4, "box: bytes written");

	memset(host, 0x55, SIZE);
	desc.direction = DRM_SPYRE_DMA_D2H;
	cb.src = cb.dst;
	cb.dst = 0;
	tap_ret(abi_run(&t->queue, &cb, 1), 0, "box: D2H to %s", kind);
	for (row = 0; row < SIZE / 4; row++)
		wrong += ((uint32_t *)host)[row] != HOST_FILL;
	tap_eq(wrong, 45, "box: D2H to %s: nothing but the box", kind);
	for (wrong = row = 0; row < 5; row++)
		for (col = 0; col < 9; col++)
			wrong += *host_word(host, row, col) != row * 100 + col;
	tap_eq(wrong, 0, "box: D2H to %s: every element", kind);
}

/* Elements of one box that overlap: some of them is stored, and nothing outside is. */
static void test_overlapping(struct box_test *t)
{
	struct drm_spyre_dma desc = last_box(DRM_SPYRE_DMA_H2D);
	struct drm_spyre_cb cb = cb_of(t, &desc);
	uint32_t i, wrong = 0;

	fill(t);
	/* Word 0 to 4 + 2 * 8 of the box's device range. */
	desc.bound[0].coef[1] = 8;
	tap_ret(abi_run(&t->queue, &cb, 1), 0, "box: overlapping elements");
	for (i = 0; i <= 20; i++)
		wrong += device_word(t, i, 0)[0] != HOST_FILL;
	tap_eq(wrong, 0, "box: overlapping elements: each is stored");
	tap_eq(changed(&t->device, DEVICE_FILL), 21, "box: overlapping elements: nothing else");
}

static void test_readonly(int fd, struct box_test *t)
{
	struct drm_spyre_dma up = last_box(DRM_SPYRE_DMA_H2D), down = last_box(DRM_SPYRE_DMA_D2H);
	struct drm_spyre_cb cb = cb_of(t, &up);

	abi_bind(fd, t->device.handle, 0, 800 * MIB, SIZE, DRM_SPYRE_VM_MAP_READONLY);
	cb.dst = 800 * MIB;
	refuse(t, &cb, -EFAULT, "H2D into a read-only mapping");
	cb = cb_of(t, &down);
	cb.src = 800 * MIB;
	tap_ret(abi_run(&t->queue, &cb, 1), 0, "box: D2H from a read-only mapping");
	abi_unbind(fd, 800 * MIB, SIZE);
}

/* One submission has 256; each moves the word that the one before has moved, one further. */
static void test_list(struct box_test *t)
{
	struct drm_spyre_dma *desc = calloc(256, sizeof(*desc));
	struct drm_spyre_cb cbs[256];
	uint32_t i;

	fill(t);
	for (i = 0; i < 256; i++) {
		desc[i] = (struct drm_spyre_dma){
			.direction = i % 2 ? DRM_SPYRE_DMA_D2H : DRM_SPYRE_DMA_H2D,
			.host_format = DRM_SPYRE_FORMAT_IEEE_FP32,
			.device_format = DRM_SPYRE_FORMAT_IEEE_FP32,
			.num_dims = 1,
			.flags = DRM_SPYRE_DMA_BOX,
			.host_offset = 4 * ((i + 1) / 2),
			.dim = { { .count = 1 } },
			.bound = { { .limit = 4 * (i / 2) } },
		};
		cbs[i] = cb_of(t, &desc[i]);
	}
	((uint32_t *)t->host.map)[0] = 0x1234;
	tap_ret(abi_run(&t->queue, cbs, 256), 0, "box: 256 boxes that depend on one another");
	tap_eq(((uint32_t *)t->host.map)[128], 0x1234, "box: they run in order");
	free(desc);
}

void test_boxes(int fd)
{
	struct box_test t = {
		.queue = abi_queue(fd, 0),
		.device = abi_buf(fd, SIZE, DRM_SPYRE_BO_DEVICE, 700 * MIB),
		.host = abi_buf(fd, SIZE, DRM_SPYRE_BO_HOST, 0),
	};
	void *user = abi_guard(SIZE);

	test_moves(&t, t.host.map, "a host BO");
	test_moves(&t, user, "user memory");
	test_refused_shapes(&t);
	test_refused_spans(&t);
	test_refused_repeats(&t);
	test_overlapping(&t);
	test_readonly(fd, &t);
	test_list(&t);
	abi_guard_free(user, SIZE);
	abi_buf_free(fd, &t.host);
	abi_buf_free(fd, &t.device);
	abi_queue_free(&t.queue);
}
