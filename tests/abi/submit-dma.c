/* SPDX-License-Identifier: MIT */
/* abi-submit: DMA against a reference written from docs/control-blocks.md. */
#include "submit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "prog.h"

/* IEEE fp16 bits of a whole number, |n| <= 512. */
static uint16_t fp16(int n)
{
	uint16_t bits = abi_dl16(n);
	int exponent = bits >> 9 & 63;

	if (!n)
		return 0;
	return (uint16_t)((bits & 0x8000) | (exponent - 31 + 15) << 10 | (bits & 511) << 1);
}

static int value_at(uint32_t row, uint32_t col)
{
	return (int)((row * 31 + col) % 1021) - 510;
}

/* (rows, cols) fp16, @pitch elements from row to row -> [tiles, rows, 64] DL16. */
static struct drm_spyre_dma matrix_desc(uint8_t direction, uint32_t rows, uint32_t cols,
					uint32_t pitch)
{
	struct drm_spyre_dma d = {
		.direction = direction,
		.host_format = DRM_SPYRE_FORMAT_IEEE_FP16,
		.device_format = DRM_SPYRE_FORMAT_SEN169_FP16,
		.num_dims = 3,
		.dim = {
			{ .count = (cols + 63) / 64, .host_stride = 128 },
			{ .count = rows, .host_stride = 2ull * pitch },
			{ .count = 64, .host_stride = 2 },
		},
	};

	if (cols % 64) {
		d.num_bounds = 1;
		d.bound[0].limit = cols;
		d.bound[0].coef[0] = 64;
		d.bound[0].coef[2] = 1;
	}
	return d;
}

static uint32_t wrong_on_device(const uint16_t *dev, uint32_t rows, uint32_t cols)
{
	uint32_t tiles = (cols + 63) / 64, t, r, l, bad = 0;

	for (t = 0; t < tiles; t++)
		for (r = 0; r < rows; r++)
			for (l = 0; l < 64; l++) {
				uint32_t col = t * 64 + l;
				uint16_t want = col < cols ? abi_dl16(value_at(r, col)) : 0;

				bad += dev[(t * rows + r) * 64 + l] != want;
			}
	return bad;
}

static uint32_t wrong_on_host(const uint16_t *host, uint32_t rows, uint32_t cols, uint32_t pitch)
{
	uint32_t r, c, bad = 0;

	/* After each row, the previous contents must be unchanged. */
	for (r = 0; r < rows; r++)
		for (c = 0; c < (r + 1 < rows ? pitch : cols); c++)
			bad += host[r * pitch + c] != (c < cols ? fp16(value_at(r, c)) : 0xeeee);
	return bad;
}

/* Copies there and back; the span ends with the last element, at the end of a page. */
static void matrix(struct abi_queue *q, struct abi_buf *dev, struct abi_buf *bo, uint32_t rows,
		   uint32_t cols, uint32_t pitch)
{
	struct drm_spyre_dma up = matrix_desc(DRM_SPYRE_DMA_H2D, rows, cols, pitch), down;
	uint64_t span = 2ull * ((rows - 1) * pitch + cols);
	uint16_t *host = bo ? (uint16_t *)bo->map : abi_guard(span);
	struct drm_spyre_cb cb;
	const char *kind = bo ? "host BO" : "user memory";
	uint32_t r, c;

	memset(host, 0xee, span);
	for (r = 0; r < rows; r++)
		for (c = 0; c < cols; c++)
			host[r * pitch + c] = fp16(value_at(r, c));
	memset(dev->map, 0x77, 4 * MIB);
	cb = bo ? abi_cb_dma_bo(&up, dev->va, bo->handle, 0, span) :
		  abi_cb_dma(&up, dev->va, host, span);
	tap_ret(abi_run(q, &cb, 1), 0, "H2D (%u,%u) pitch %u from %s", rows, cols, pitch, kind);
	tap_eq(wrong_on_device(dev->map, rows, cols), 0,
	       "H2D (%u,%u): every element, zeros in the padding", rows, cols);
	tap_ok(((uint8_t *)dev->map)[(uint64_t)(cols + 63) / 64 * rows * STICK] == 0x77,
	       "H2D (%u,%u): no byte past the tensor", rows, cols);
	down = up;
	down.direction = DRM_SPYRE_DMA_D2H;
	memset(host, 0xee, span);
	cb = bo ? abi_cb_dma_bo(&down, dev->va, bo->handle, 0, span) :
		  abi_cb_dma(&down, dev->va, host, span);
	tap_ret(abi_run(q, &cb, 1), 0, "D2H (%u,%u) to %s", rows, cols, kind);
	tap_eq(wrong_on_host(host, rows, cols, pitch), 0,
	       "D2H (%u,%u): every element, nothing between the rows", rows, cols);
	if (!bo)
		abi_guard_free(host, span);
}

/* --- transposed tiles of fp32 of which a bound leaves a part --- */
#define ROWS 64u
#define VALID 32u		/* 128 bytes: the engine copies them as one block */
#define PITCH 1024u		/* bytes from lane to lane of the host */
#define SPAN ((VALID - 1) * PITCH + ROWS * 4ull)
#define SECRET 0x5ec2e7abu

static struct drm_spyre_dma transposed_desc(uint8_t direction, uint32_t lanes)
{
	return (struct drm_spyre_dma){
		.direction = direction,
		.host_format = DRM_SPYRE_FORMAT_IEEE_FP32,
		.device_format = DRM_SPYRE_FORMAT_IEEE_FP32,
		.num_dims = 2,
		.num_bounds = 1,
		.dim = {
			{ .count = ROWS, .host_stride = 4 },
			{ .count = lanes, .host_stride = PITCH },
		},
		.bound = { { .limit = VALID, .coef = { 0, 1 } } },
	};
}

/* Word @i of the host span: rows of a lane, then @gap up to the next lane. */
static uint32_t span_word(uint32_t i, uint32_t gap)
{
	const uint32_t lane = i / (PITCH / 4), row = i % (PITCH / 4);

	return row < ROWS ? 0x40000000u + lane * ROWS + row : gap;
}

static void transposed_up(struct abi_queue *q, struct abi_buf *dev, struct abi_buf *bo,
			  uint32_t lanes)
{
	struct drm_spyre_dma up = transposed_desc(DRM_SPYRE_DMA_H2D, lanes);
	const uint64_t offset = bo->size - SPAN;
	struct drm_spyre_cb cb = abi_cb_dma_bo(&up, dev->va, bo->handle, offset, SPAN);
	uint32_t *host = (uint32_t *)((uint8_t *)bo->map + offset), *to = dev->map;
	uint32_t i, row, lane, wrong = 0, leaked = 0;

	for (i = 0; i < SPAN / 4; i++)
		host[i] = span_word(i, SECRET);
	memset(to, 0x77, MIB);
	tap_ret(abi_run(q, &cb, 1), 0, "H2D transposed, %u of %u lanes", VALID, lanes);
	for (i = 0; i < ROWS * lanes; i++) {
		row = i / lanes;
		lane = i % lanes;
		wrong += to[i] != (lane < VALID ? span_word(lane * PITCH / 4 + row, 0) : 0);
	}
	for (i = 0; i < MIB / 4; i++)
		leaked += to[i] == SECRET;
	tap_eq(wrong, 0, "H2D transposed, %u lanes: valid elements, zeros in the padding", lanes);
	tap_eq(leaked, 0, "H2D transposed, %u lanes: no word from outside the lanes", lanes);
	tap_eq(to[ROWS * lanes], 0x77777777, "H2D transposed, %u lanes: no byte past the tensor",
	       lanes);
}

static void transposed_down(struct abi_queue *q, struct abi_buf *dev, struct abi_buf *bo,
			    const uint32_t *next, uint32_t lanes)
{
	struct drm_spyre_dma down = transposed_desc(DRM_SPYRE_DMA_D2H, lanes);
	const uint64_t offset = bo->size - SPAN;
	struct drm_spyre_cb cb = abi_cb_dma_bo(&down, dev->va, bo->handle, offset, SPAN);
	uint32_t *host = (uint32_t *)((uint8_t *)bo->map + offset);
	uint32_t i, wrong = 0;

	memset(host, 0xee, SPAN);
	tap_ret(abi_run(q, &cb, 1), 0, "D2H transposed, %u of %u lanes", VALID, lanes);
	for (i = 0; i < SPAN / 4; i++)
		wrong += host[i] != span_word(i, 0xeeeeeeee);
	for (i = 0; i < bo->size / 4; i++)
		wrong += next[i] != SECRET;
	tap_eq(wrong, 0, "D2H transposed, %u lanes: valid elements, nothing between and behind",
	       lanes);
}

/*
 * A window of one huge page is the kernel's direct map, which has no guard page: an
 * engine that reads beyond the span finds the next buffer there, or another
 * process's memory.
 */
static void test_transposed(int fd, struct abi_queue *q, struct abi_buf *dev)
{
	const uint32_t lanes[] = { 64, 96, 128, 256 };
	struct abi_buf bo[3];
	uint32_t i, k;

	for (i = 0; i < 3; i++) {
		bo[i] = abi_buf(fd, 2 * MIB, DRM_SPYRE_BO_HOST, 0);
		for (k = 0; k < bo[i].size / 4; k++)
			((uint32_t *)bo[i].map)[k] = SECRET;
	}
	/* Each span ends with the middle buffer; either of the others may lie behind it. */
	for (i = 0; i < sizeof(lanes) / sizeof(lanes[0]); i++) {
		transposed_up(q, dev, &bo[1], lanes[i]);
		transposed_down(q, dev, &bo[1], bo[i % 2 * 2].map, lanes[i]);
	}
	for (i = 0; i < 3; i++)
		abi_buf_free(fd, &bo[i]);
}

static void test_raw(struct abi_queue *q, struct abi_buf *dev, struct abi_buf *bo)
{
	struct drm_spyre_dma up = abi_dma_raw(DRM_SPYRE_DMA_H2D, MIB);
	struct drm_spyre_dma down = abi_dma_raw(DRM_SPYRE_DMA_D2H, MIB);
	struct drm_spyre_cb cbs[2];
	uint32_t *host = bo->map, *user = malloc(MIB + 64), i;
	uint8_t *odd = (uint8_t *)user + 4;

	for (i = 0; i < MIB / 4; i++)
		host[i] = i * 2654435761u;
	cbs[0] = abi_cb_dma_bo(&up, dev->va, bo->handle, 0, MIB);
	cbs[1] = abi_cb_dma(&down, dev->va, odd, MIB);
	tap_ret(abi_run(q, cbs, 2), 0,
		"DMA raw: H2D from a host BO and D2H to user memory in one submission");
	tap_ok(!memcmp(host, odd, MIB), "DMA raw: bit for bit");
	tap_eq(abi_results(q)[0].bytes_written, MIB, "DMA raw: LPDDR5 bytes written");
	tap_eq(abi_results(q)[1].bytes_read, MIB, "DMA raw: LPDDR5 bytes read");
	tap_ok(abi_results(q)[0].cycles && abi_results(q)[1].cycles, "DMA raw: cycles are not 0");
	/*
	 * The span covers half of the tensor: the other half is unreachable and
	 * therefore padding.
	 */
	memset(dev->map, 0x77, MIB);
	cbs[0].size = MIB / 2;
	tap_ret(abi_run(q, cbs, 1), 0, "DMA raw: a span shorter than the tensor");
	tap_ok(!memcmp(dev->map, host, MIB / 2) && !((uint32_t *)dev->map)[MIB / 8] &&
	       !((uint32_t *)dev->map)[MIB / 4 - 1], "DMA raw: zeros past the end of the span");
	free(user);
}

static void test_user_memory(struct abi_queue *q, struct abi_buf *dev)
{
	struct drm_spyre_dma up = abi_dma_raw(DRM_SPYRE_DMA_H2D, 4 * PAGE);
	struct drm_spyre_dma down = abi_dma_raw(DRM_SPYRE_DMA_D2H, 4 * PAGE);
	uint8_t *p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	struct drm_spyre_cb cb = abi_cb_dma(&up, dev->va, p, 4 * PAGE);

	memset(dev->map, 0x77, 4 * PAGE);
	tap_ret(abi_run(q, &cb, 1), 0, "user memory: never touched before, H2D");
	tap_ok(!((uint32_t *)dev->map)[0] && !((uint32_t *)dev->map)[PAGE - 1],
	       "user memory: the card reads zeros");
	munmap(p + 2 * PAGE, PAGE);
	tap_ret(abi_run(q, &cb, 1), -EFAULT, "user memory: a hole in the span, H2D");
	cb = abi_cb_dma(&down, dev->va, p, 4 * PAGE);
	tap_ret(abi_run(q, &cb, 1), -EFAULT, "user memory: a hole in the span, D2H");
	munmap(p, 4 * PAGE);
	p = mmap(NULL, 4 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cb = abi_cb_dma(&down, dev->va, p, 4 * PAGE);
	tap_ret(abi_run(q, &cb, 1), -EFAULT, "user memory: read-only, D2H");
	cb = abi_cb_dma(&up, dev->va, p, 4 * PAGE);
	tap_ret(abi_run(q, &cb, 1), 0, "user memory: read-only, H2D");
	munmap(p, 4 * PAGE);
}

static void test_refused_shapes(struct abi_queue *q, struct abi_buf *dev, struct abi_buf *bo)
{
	struct drm_spyre_dma d = abi_dma_raw(DRM_SPYRE_DMA_D2H, PAGE);
	struct drm_spyre_cb cb = abi_cb_dma_bo(&d, dev->va, bo->handle, 0, PAGE);

	d.dim[0].host_stride = 0;
	tap_ret(abi_run(q, &cb, 1), -EINVAL, "D2H that would write one element many times");
	d = abi_dma_raw(DRM_SPYRE_DMA_H2D, PAGE);
	d.dim[0].host_stride = 0;
	cb = abi_cb_dma_bo(&d, dev->va, bo->handle, 0, PAGE);
	((uint32_t *)bo->map)[0] = 0xabcd;
	tap_ret(abi_run(q, &cb, 1), 0, "H2D that repeats the first stick");
	tap_eq(((uint32_t *)dev->map)[31 * 32], 0xabcd,
	       "H2D repeat: the last stick has its value as well");
	d.host_format = DRM_SPYRE_FORMAT_FP64;
	d.device_format = DRM_SPYRE_FORMAT_SENINT4;
	tap_ret(abi_run(q, &cb, 1), -EINVAL, "a pair of formats that has no conversion");
}

static void test_readonly_destination(int fd, struct abi_queue *q, struct abi_buf *bo)
{
	struct abi_buf a = abi_buf(fd, PAGE, DRM_SPYRE_BO_DEVICE, 0);
	struct drm_spyre_dma up = abi_dma_raw(DRM_SPYRE_DMA_H2D, PAGE);
	struct drm_spyre_dma down = abi_dma_raw(DRM_SPYRE_DMA_D2H, PAGE);
	struct drm_spyre_cb cb = abi_cb_dma_bo(&up, 800 * MIB, bo->handle, 0, PAGE);

	abi_bind(fd, a.handle, 0, 800 * MIB, PAGE, DRM_SPYRE_VM_MAP_READONLY);
	tap_ret(abi_run(q, &cb, 1), -EFAULT, "H2D into a read-only mapping");
	cb = abi_cb_dma_bo(&down, 800 * MIB, bo->handle, 0, PAGE);
	tap_ret(abi_run(q, &cb, 1), 0, "D2H from a read-only mapping");
	abi_unbind(fd, 800 * MIB, PAGE);
	abi_buf_free(fd, &a);
}

void test_dma(int fd, struct abi_buf *dev)
{
	struct abi_queue q = abi_queue(fd, 0);
	struct abi_buf bo = abi_buf(fd, MIB, DRM_SPYRE_BO_HOST, 0);

	matrix(&q, dev, &bo, 1024, 256, 256);
	matrix(&q, dev, NULL, 1024, 256, 256);
	matrix(&q, dev, &bo, 40, 150, 150);
	matrix(&q, dev, NULL, 40, 150, 150);
	matrix(&q, dev, NULL, 33, 65, 100);
	matrix(&q, dev, NULL, 1, 1, 1);
	matrix(&q, dev, NULL, 7, 64, 1000);
	test_transposed(fd, &q, dev);
	test_raw(&q, dev, &bo);
	test_user_memory(&q, dev);
	test_refused_shapes(&q, dev, &bo);
	test_readonly_destination(fd, &q, &bo);
	abi_buf_free(fd, &bo);
	abi_queue_free(&q);
}
