// SPDX-License-Identifier: MIT
/*
 * Control blocks do what they say: transfers, arithmetic, results, order and
 * waits between queues.
 */
#include "tests/abi/abi.h"

#define VA PAGE
#define STICKS 512u
#define BYTES (STICKS * 128u)
#define FP16_ONE 0x3c00
#define FP16_TWO 0x4000
#define FP16_THREE 0x4200
#define FP16_FIVE 0x4500

static int fd;
static uint32_t queue, device_bo, host_bo, result_bo, syncobj;
static uint64_t point;
static struct drm_spyre_cb_result *results;

/* STICKS sticks of fp16 on the host, dense, and DL16 on the card. */
static struct drm_spyre_dma dense(uint8_t direction)
{
	return (struct drm_spyre_dma){
		.direction = direction, .host_format = DRM_SPYRE_FORMAT_IEEE_FP16,
		.device_format = DRM_SPYRE_FORMAT_SEN169_FP16, .num_dims = 2,
		.dim = { { .count = STICKS, .host_stride = 128 },
			 { .count = 64, .host_stride = 2 } },
	};
}

static bool run(const struct drm_spyre_cb *cbs, uint32_t num)
{
	uint32_t i;
	int ret;

	memset(results, 0xff, num * sizeof(*results));
	ret = submit_wait(fd, queue, cbs, num, result_bo, syncobj, ++point);
	if (ret) {
		note("submit gave %s", strerror(-ret));
		return false;
	}
	for (i = 0; i < num; i++) {
		if (results[i].state == DRM_SPYRE_CB_DONE && !results[i].status)
			continue;
		note("control block %u: state %u status %d", i, results[i].state,
		     results[i].status);
		return false;
	}
	return true;
}

static void set_fp16(uint16_t *p, uint16_t value)
{
	uint32_t i;

	for (i = 0; i < STICKS * 64; i++)
		p[i] = value;
}

static bool is_fp16(const uint16_t *p, uint16_t value)
{
	uint32_t i;

	for (i = 0; i < STICKS * 64; i++) {
		if (p[i] != value) {
			note("element %u is 0x%04x, not 0x%04x", i, p[i], value);
			return false;
		}
	}
	return true;
}

/* H2D from user memory and from a host BO, a + b (+ b), D2H to both. */
static void test_add(bool through_lx)
{
	static uint16_t a[STICKS * 64], out[STICKS * 64];
	const uint64_t va[3] = { VA, VA + BYTES, VA + 2 * BYTES };
	struct drm_spyre_dma h2d = dense(DRM_SPYRE_DMA_H2D), d2h = dense(DRM_SPYRE_DMA_D2H);
	uint16_t *b = bo_map(fd, host_bo, BYTES);
	const uint16_t sum = through_lx ? FP16_FIVE : FP16_THREE;
	const char *how = through_lx ? "through LX" : "from LPDDR5";
	struct image image;
	struct drm_spyre_cb cbs[] = {
		{ .type = DRM_SPYRE_CB_DMA, .desc = (uintptr_t)&h2d, .dst = va[1], .size = BYTES,
		  .host_addr = (uintptr_t)a },
		{ .type = DRM_SPYRE_CB_DMA, .desc = (uintptr_t)&h2d, .dst = va[2], .size = BYTES,
		  .host_handle = host_bo },
		{ .type = DRM_SPYRE_CB_EXEC, .num_args = 3, .args = (uintptr_t)va },
		{ .type = DRM_SPYRE_CB_DMA, .desc = (uintptr_t)&d2h, .src = va[0], .size = BYTES,
		  .host_addr = (uintptr_t)out },
		{ .type = DRM_SPYRE_CB_DMA, .desc = (uintptr_t)&d2h, .src = va[0], .size = BYTES,
		  .host_handle = host_bo },
	};

	if (through_lx)
		image_add_lx(&image, STICKS);
	else
		image_add(&image, STICKS, 1);
	cbs[2].program = program_create(fd, &image);
	set_fp16(a, FP16_ONE);
	set_fp16(b, FP16_TWO);
	memset(out, 0, sizeof(out));
	ok(run(cbs, 5), "two transfers in, an addition, two out, %s", how);
	ok(is_fp16(out, sum), "the sum arrives in user memory, %s", how);
	ok(is_fp16(b, sum), "and in the host BO, %s", how);
	ok(results[0].bytes_written == BYTES && results[3].bytes_read == BYTES &&
	   results[2].cycles && results[2].bytes_read >= 2 * BYTES &&
	   results[2].bytes_written >= BYTES, "results say what was moved");
	ok(results[0].start_ns <= results[0].end_ns && results[0].end_ns <= results[1].start_ns &&
	   results[3].end_ns <= results[4].start_ns && results[4].end_ns <= now_ns(),
	   "control blocks ran in order");
	munmap(b, BYTES);
}

/* Odd start, odd length: the bytes around the host span stay. */
static void test_span(void)
{
	static uint16_t host[256];
	struct drm_spyre_dma d2h = {
		.direction = DRM_SPYRE_DMA_D2H, .host_format = DRM_SPYRE_FORMAT_IEEE_FP16,
		.device_format = DRM_SPYRE_FORMAT_SEN169_FP16, .num_dims = 2, .num_bounds = 1,
		.host_offset = 2,
		.dim = { { .count = 2, .host_stride = 128 }, { .count = 64, .host_stride = 2 } },
		.bound = { { .limit = 100, .coef = { 64, 1 } } },
	};
	struct drm_spyre_cb cb = { .type = DRM_SPYRE_CB_DMA, .desc = (uintptr_t)&d2h, .src = VA,
				   .size = 202, .host_addr = (uintptr_t)&host[3] };
	bool outside = true, inside = true;
	int i;

	for (i = 0; i < 256; i++)
		host[i] = 0xabcd;
	ok(run(&cb, 1), "a transfer of 100 elements to an odd place");
	for (i = 0; i < 256; i++) {
		if (i >= 4 && i < 104)
			inside = inside && host[i] == FP16_FIVE;
		else
			outside = outside && host[i] == 0xabcd;
	}
	ok(inside, "all 100 arrived");
	ok(outside, "nothing else was touched");
}

static void test_linear(void)
{
	uint8_t *map = bo_map(fd, device_bo, 4 * BYTES);
	struct drm_spyre_cb cbs[] = {
		{ .type = DRM_SPYRE_CB_FILL, .dst = VA + 3, .size = 20, .pattern_size = 4,
		  .pattern = { 0x44332211 } },
		{ .type = DRM_SPYRE_CB_COPY, .dst = VA + BYTES + 1, .src = VA + 3, .size = 19 },
		{ .type = DRM_SPYRE_CB_COPY, .dst = VA + 5, .src = VA + 3, .size = 16 },
		{ .type = DRM_SPYRE_CB_FILL, .dst = VA + 2 * BYTES, .size = 2 * BYTES,
		  .pattern_size = 16, .pattern = { 0x0706050403020100, 0x0f0e0d0c0b0a0908 } },
	};
	bool good = true;
	uint32_t i;

	memset(map, 0xee, 4 * BYTES);
	ok(run(cbs, 4), "fills and copies of odd ranges");
	ok(map[2] == 0xee && map[3] == 0x11 && map[4] == 0x22 && map[23] == 0xee &&
	   map[BYTES] == 0xee && map[BYTES + 1] == 0x11 && map[BYTES + 19] == 0x33 &&
	   map[BYTES + 20] == 0xee, "only their bytes changed");
	ok(map[5] == 0x11 && map[6] == 0x22 && map[20] == 0x44, "an overlapping copy is a move");
	for (i = 0; i < 2 * BYTES; i++)
		good = good && map[2 * BYTES + i] == i % 16;
	ok(good, "a large fill repeats its pattern");
	munmap(map, 4 * BYTES);
}

/* Two queues pass a value back and forth by timeline points. */
static void test_order(void)
{
	uint32_t queues[2] = { queue_create(fd, 0, 0), queue_create(fd, 1, 0) };
	uint32_t timeline = syncobj_create(fd), i;
	uint8_t *map = bo_map(fd, device_bo, PAGE);
	bool good = true;

	map[0] = 0;
	for (i = 1; i <= 200; i++) {
		/* byte i = byte i - 1, then byte i - 1 = 0xff */
		struct drm_spyre_cb cbs[] = {
			{ .type = DRM_SPYRE_CB_COPY, .dst = VA + i, .src = VA + i - 1, .size = 1 },
			{ .type = DRM_SPYRE_CB_FILL, .dst = VA + i - 1, .size = 1,
			  .pattern_size = 1, .pattern = { 0xff } },
		};
		struct drm_spyre_sync syncs[] = {
			{ .handle = timeline, .flags = DRM_SPYRE_SYNC_SIGNAL, .point = i },
			{ .handle = timeline, .point = i - 1 },
		};
		struct drm_spyre_submit s = {
			.queue_id = queues[i % 2],
			.cbs = { .stride = sizeof(cbs[0]), .count = 2, .array = (uintptr_t)cbs },
			.syncs = { .stride = sizeof(syncs[0]), .count = i > 1 ? 2 : 1,
				   .array = (uintptr_t)syncs },
		};

		good = good && !call(fd, DRM_IOCTL_SPYRE_SUBMIT, &s);
	}
	ok(good, "200 jobs on two queues, each behind the other");
	ok(!timeline_wait(fd, timeline, 200, 30000), "the last point is reached");
	ok(map[200] == 0 && map[199] == 0xff && map[0] == 0xff, "every job saw the one before");
	munmap(map, PAGE);
}

/* Another file's data must not be in the scratchpads. */
static void test_lx_private(void)
{
	struct image image;
	uint64_t va = VA;
	uint8_t *map;
	uint32_t bo, i;
	struct drm_spyre_cb cb = { .type = DRM_SPYRE_CB_EXEC, .num_args = 1,
				   .args = (uintptr_t)&va };
	int other = node_open(), ret;
	bool zero = true;

	image_peek_lx(&image, STICKS);
	cb.program = program_create(other, &image);
	bo = bo_create(other, BYTES, DRM_SPYRE_BO_DEVICE);
	map = bo_map(other, bo, BYTES);
	memset(map, 0x55, BYTES);
	need(!vm_bind(other, DRM_SPYRE_VM_MAP, 0, bo, 0, VA, BYTES), "VM_BIND");
	ret = submit_wait(other, queue_create(other, 0, 0), &cb, 1, 0, syncobj_create(other), 1);
	for (i = 0; i < BYTES; i++)
		zero = zero && !map[i];
	ok(!ret && zero, "another file finds the scratchpads cleared");
	munmap(map, BYTES);
	close(other);
}

int main(void)
{
	fd = node_open();
	queue = queue_create(fd, 0, 0);
	syncobj = syncobj_create(fd);
	device_bo = bo_create(fd, 4 * BYTES, DRM_SPYRE_BO_DEVICE);
	host_bo = bo_create(fd, BYTES, DRM_SPYRE_BO_HOST);
	result_bo = bo_create(fd, PAGE, DRM_SPYRE_BO_HOST);
	results = bo_map(fd, result_bo, PAGE);
	need(!vm_bind(fd, DRM_SPYRE_VM_MAP, 0, device_bo, 0, VA, 4 * BYTES), "VM_BIND");

	test_add(false);
	test_add(true);
	test_lx_private();
	test_span();
	test_linear();
	test_order();
	close(fd);
	return done_testing();
}
