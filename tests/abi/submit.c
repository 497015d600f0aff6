// SPDX-License-Identifier: MIT
/*
 * SUBMIT: every field of the argument, of the control blocks and of the syncs
 * wrong once; on error nothing is queued and error_cb names the culprit.
 */
#include "tests/abi/abi.h"

#define NONE 0xffffffffu
#define BAD_POINTER 0x10ull
#define VA PAGE

static int fd;
static uint32_t queue, device_bo, readonly_bo, host_bo, program;
static uint64_t args[3] = { VA, VA + 1024, VA + 2048 };
static struct drm_spyre_dma dma;

static struct drm_spyre_cb exec_cb(void)
{
	return (struct drm_spyre_cb){ .type = DRM_SPYRE_CB_EXEC, .program = program,
				      .num_args = 3, .args = (uintptr_t)args };
}

static struct drm_spyre_cb dma_cb(void)
{
	return (struct drm_spyre_cb){ .type = DRM_SPYRE_CB_DMA, .desc = (uintptr_t)&dma,
				      .dst = VA, .size = 128, .host_handle = host_bo };
}

static struct drm_spyre_cb copy_cb(void)
{
	return (struct drm_spyre_cb){ .type = DRM_SPYRE_CB_COPY, .dst = VA, .src = VA + 1024,
				      .size = 100 };
}

static struct drm_spyre_cb fill_cb(void)
{
	return (struct drm_spyre_cb){ .type = DRM_SPYRE_CB_FILL, .dst = VA, .size = 64,
				      .pattern_size = 4, .pattern = { 0x11223344, 0 } };
}

static struct drm_spyre_cb stamp_cb(void)
{
	return (struct drm_spyre_cb){ .type = DRM_SPYRE_CB_TIMESTAMP };
}

static uint64_t submitted(void)
{
	struct drm_spyre_queue_query q = { .queue_id = queue };

	need(!call(fd, DRM_IOCTL_SPYRE_QUEUE_QUERY, &q), "QUEUE_QUERY");
	return q.submitted;
}

/* A good control block in front: the error names the second. */
static void cb_gives(int expected, struct drm_spyre_cb cb, const char *what)
{
	struct drm_spyre_cb cbs[2] = { stamp_cb(), cb };
	struct drm_spyre_submit s = {
		.queue_id = queue,
		.cbs = { .stride = sizeof(cb), .count = 2, .array = (uintptr_t)cbs },
	};
	uint64_t before = submitted();

	gives(expected, fd, DRM_IOCTL_SPYRE_SUBMIT, &s, "%s", what);
	if (s.error_cb != (expected ? 1 : NONE) || submitted() != before + !expected)
		ok(false, "error_cb %u, %llu jobs queued", s.error_cb,
		   (unsigned long long)(submitted() - before));
}

#define BAD(maker, errno_, what, ...) \
	do { struct drm_spyre_cb cb = maker(); __VA_ARGS__; cb_gives(-(errno_), cb, what); } while (0)

static void test_exec(void)
{
	BAD(exec_cb, 0, "EXEC", (void)0);
	BAD(exec_cb, EINVAL, "EXEC flags", cb.flags = 1);
	BAD(exec_cb, EINVAL, "EXEC reserved", cb.reserved[2] = 1);
	BAD(exec_cb, ENOENT, "EXEC program 0", cb.program = 0);
	BAD(exec_cb, ENOENT, "EXEC no such program", cb.program = 999);
	BAD(exec_cb, EINVAL, "EXEC two arguments of three", cb.num_args = 2);
	BAD(exec_cb, EINVAL, "EXEC 65 arguments", cb.num_args = 65);
	BAD(exec_cb, EINVAL, "EXEC 2^32 - 1 arguments", cb.num_args = ~0u);
	BAD(exec_cb, EFAULT, "EXEC arguments nowhere", cb.args = BAD_POINTER);
	BAD(exec_cb, EINVAL, "EXEC desc", cb.desc = 1);
	BAD(exec_cb, EINVAL, "EXEC dst", cb.dst = 1);
	BAD(exec_cb, EINVAL, "EXEC src", cb.src = 1);
	BAD(exec_cb, EINVAL, "EXEC size", cb.size = 1);
	BAD(exec_cb, EINVAL, "EXEC host_addr", cb.host_addr = 1);
	BAD(exec_cb, EINVAL, "EXEC host_handle", cb.host_handle = 1);
	BAD(exec_cb, EINVAL, "EXEC host_offset", cb.host_offset = 1);
	BAD(exec_cb, EINVAL, "EXEC pattern_size", cb.pattern_size = 1);
	BAD(exec_cb, EINVAL, "EXEC pattern", cb.pattern[1] = 1);
	BAD(exec_cb, EINVAL, "EXEC of an odd address",
	    uint64_t odd[3] = { VA + 64, VA + 1024, VA + 2048 }; cb.args = (uintptr_t)odd);
	BAD(exec_cb, EFAULT, "EXEC of an unmapped address",
	    uint64_t bad[3] = { VA, VA + 1024, 5ull << 34 }; cb.args = (uintptr_t)bad);
	BAD(exec_cb, EFAULT, "EXEC of page 0",
	    uint64_t bad[3] = { 0, VA + 1024, VA }; cb.args = (uintptr_t)bad);
	BAD(exec_cb, EFAULT, "EXEC past the end of 64 bits",
	    uint64_t bad[3] = { ~127ull, VA + 1024, VA }; cb.args = (uintptr_t)bad);
	BAD(exec_cb, EFAULT, "EXEC of an operand that leaves its mapping",
	    uint64_t bad[3] = { VA, VA + 16 * PAGE - 128, VA }; cb.args = (uintptr_t)bad);
	BAD(exec_cb, EFAULT, "EXEC that writes a read-only mapping",
	    uint64_t bad[3] = { 1ull << 34, VA, VA }; cb.args = (uintptr_t)bad);
	BAD(exec_cb, 0, "EXEC that reads a read-only mapping",
	    uint64_t good[3] = { VA, 1ull << 34, VA }; cb.args = (uintptr_t)good);
}

static void test_dma(void)
{
	static struct drm_spyre_dma bad;
	uint8_t *readonly = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	BAD(dma_cb, 0, "DMA", (void)0);
	BAD(dma_cb, EINVAL, "DMA program", cb.program = 1);
	BAD(dma_cb, EINVAL, "DMA args", cb.args = 1);
	BAD(dma_cb, EINVAL, "DMA num_args", cb.num_args = 1);
	BAD(dma_cb, EINVAL, "DMA pattern_size", cb.pattern_size = 1);
	BAD(dma_cb, EINVAL, "DMA pattern", cb.pattern[0] = 1);
	BAD(dma_cb, EFAULT, "DMA desc nowhere", cb.desc = BAD_POINTER);
	BAD(dma_cb, EINVAL, "DMA H2D with a src", cb.src = VA);
	BAD(dma_cb, EINVAL, "DMA to an odd address", cb.dst = VA + 64);
	BAD(dma_cb, EFAULT, "DMA to an unmapped address", cb.dst = 3ull << 34);
	BAD(dma_cb, EFAULT, "DMA to a read-only mapping", cb.dst = 1ull << 34);
	BAD(dma_cb, EINVAL, "DMA of no host bytes", cb.size = 0);
	BAD(dma_cb, ENOENT, "DMA of no such host BO", cb.host_handle = 999);
	BAD(dma_cb, EINVAL, "DMA whose host BO is the device's", cb.host_handle = device_bo);
	BAD(dma_cb, EINVAL, "DMA past the host BO", cb.size = PAGE + 1);
	BAD(dma_cb, EINVAL, "DMA offset past the host BO", cb.host_offset = ~0ull);
	BAD(dma_cb, EINVAL, "DMA of a BO and an address", cb.host_addr = (uintptr_t)&bad);
	BAD(dma_cb, EFAULT, "DMA from nowhere", cb.host_handle = 0; cb.host_addr = BAD_POINTER);
	BAD(dma_cb, EFAULT, "DMA from the kernel", cb.host_handle = 0;
	    cb.host_addr = 0xffff888000000000ull);
	BAD(dma_cb, EFAULT, "DMA past the end of 64 bits", cb.host_handle = 0;
	    cb.host_addr = ~0ull - 63);
	BAD(dma_cb, EINVAL, "DMA of an address and an offset", cb.host_handle = 0;
	    cb.host_addr = (uintptr_t)&bad; cb.host_offset = 8);
	BAD(dma_cb, EFAULT, "DMA D2H to read-only memory", bad = dma;
	    bad.direction = DRM_SPYRE_DMA_D2H; cb.desc = (uintptr_t)&bad; cb.src = VA; cb.dst = 0;
	    cb.host_handle = 0; cb.host_addr = (uintptr_t)readonly);
	BAD(dma_cb, EINVAL, "DMA direction", bad = dma; bad.direction = 2;
	    cb.desc = (uintptr_t)&bad);
	BAD(dma_cb, EINVAL, "DMA descriptor pad", bad = dma; bad.pad[2] = 1;
	    cb.desc = (uintptr_t)&bad);
	BAD(dma_cb, EINVAL, "DMA dimension pad", bad = dma; bad.dim[1].pad = 1;
	    cb.desc = (uintptr_t)&bad);
	BAD(dma_cb, EINVAL, "DMA host format", bad = dma; bad.host_format = 200;
	    cb.desc = (uintptr_t)&bad);
	BAD(dma_cb, EINVAL, "DMA device format", bad = dma; bad.device_format = 0;
	    cb.desc = (uintptr_t)&bad);
	BAD(dma_cb, EINVAL, "DMA of 0 dimensions", bad = dma; bad.num_dims = 0;
	    cb.desc = (uintptr_t)&bad);
	BAD(dma_cb, EINVAL, "DMA of 9 dimensions", bad = dma; bad.num_dims = 9;
	    cb.desc = (uintptr_t)&bad);
	BAD(dma_cb, EINVAL, "DMA of 9 bounds", bad = dma; bad.num_bounds = 9;
	    cb.desc = (uintptr_t)&bad);
	BAD(dma_cb, EINVAL, "DMA of a dimension of 0", bad = dma; bad.dim[0].count = 0;
	    cb.desc = (uintptr_t)&bad);
	BAD(dma_cb, EINVAL, "DMA of a stride that overflows", bad = dma; bad.dim[0].count = 4;
	    bad.dim[0].host_stride = ~0ull; cb.desc = (uintptr_t)&bad);
	munmap(readonly, PAGE);
}

static void test_linear(void)
{
	BAD(copy_cb, 0, "COPY", (void)0);
	BAD(copy_cb, EINVAL, "COPY of nothing", cb.size = 0);
	BAD(copy_cb, EFAULT, "COPY to an unmapped address", cb.dst = 3ull << 34);
	BAD(copy_cb, EFAULT, "COPY from an unmapped address", cb.src = 3ull << 34);
	BAD(copy_cb, EFAULT, "COPY to a read-only mapping", cb.dst = 1ull << 34);
	BAD(copy_cb, EFAULT, "COPY that leaves its mapping", cb.size = 16 * PAGE);
	BAD(copy_cb, EFAULT, "COPY of 2^64 - 1 bytes", cb.size = ~0ull);
	BAD(copy_cb, EINVAL, "COPY program", cb.program = 1);
	BAD(copy_cb, EINVAL, "COPY num_args", cb.num_args = 1);
	BAD(copy_cb, EINVAL, "COPY args", cb.args = 1);
	BAD(copy_cb, EINVAL, "COPY desc", cb.desc = 1);
	BAD(copy_cb, EINVAL, "COPY host_addr", cb.host_addr = 1);
	BAD(copy_cb, EINVAL, "COPY host_handle", cb.host_handle = host_bo);
	BAD(copy_cb, EINVAL, "COPY host_offset", cb.host_offset = 1);
	BAD(copy_cb, EINVAL, "COPY pattern_size", cb.pattern_size = 1);
	BAD(copy_cb, EINVAL, "COPY pattern", cb.pattern[1] = 1);

	BAD(fill_cb, 0, "FILL", (void)0);
	BAD(fill_cb, EINVAL, "FILL of nothing", cb.size = 0);
	BAD(fill_cb, EINVAL, "FILL with a pattern of 0", cb.pattern_size = 0);
	BAD(fill_cb, EINVAL, "FILL with a pattern of 3", cb.pattern_size = 3);
	BAD(fill_cb, EINVAL, "FILL with a pattern of 32", cb.pattern_size = 32);
	BAD(fill_cb, EINVAL, "FILL of a part of a pattern", cb.size = 66);
	BAD(fill_cb, EINVAL, "FILL with bytes past the pattern", cb.pattern[1] = 1);
	BAD(fill_cb, EFAULT, "FILL of an unmapped address", cb.dst = 3ull << 34);
	BAD(fill_cb, EFAULT, "FILL of a read-only mapping", cb.dst = 1ull << 34);
	BAD(fill_cb, EINVAL, "FILL src", cb.src = 1);
	BAD(fill_cb, EINVAL, "FILL program", cb.program = 1);
	BAD(fill_cb, EINVAL, "FILL host_handle", cb.host_handle = 1);
	BAD(fill_cb, EINVAL, "FILL desc", cb.desc = 1);

	BAD(stamp_cb, 0, "TIMESTAMP", (void)0);
	BAD(stamp_cb, EINVAL, "TIMESTAMP flags", cb.flags = 1);
	BAD(stamp_cb, EINVAL, "TIMESTAMP program", cb.program = 1);
	BAD(stamp_cb, EINVAL, "TIMESTAMP size", cb.size = 1);
	BAD(stamp_cb, EINVAL, "TIMESTAMP reserved", cb.reserved[0] = 1);
	BAD(stamp_cb, EINVAL, "type 0", cb.type = 0);
	BAD(stamp_cb, EINVAL, "unknown type", cb.type = 6);
}

static void args_give(int expected, struct drm_spyre_submit s, const char *what)
{
	uint64_t before = submitted();

	gives(expected, fd, DRM_IOCTL_SPYRE_SUBMIT, &s, "SUBMIT %s", what);
	if (s.error_cb != NONE || submitted() != before + !expected)
		ok(false, "error_cb %u, %llu jobs queued", s.error_cb,
		   (unsigned long long)(submitted() - before));
}

static void test_args(void)
{
	static struct drm_spyre_cb cbs[257];
	static uint8_t longer[sizeof(cbs[0]) + 8];
	struct drm_spyre_submit good = {
		.queue_id = queue,
		.cbs = { .stride = sizeof(cbs[0]), .count = 1, .array = (uintptr_t)cbs },
		.result_handle = host_bo,
	}, s;
	int i;

	for (i = 0; i < 257; i++)
		cbs[i] = stamp_cb();
	memcpy(longer, cbs, sizeof(cbs[0]));
#define ARGS(errno_, what, ...) \
	do { s = good; __VA_ARGS__; args_give(-(errno_), s, what); } while (0)
	ARGS(0, "with results", (void)0);
	ARGS(EINVAL, "flags", s.flags = 1);
	ARGS(ENOENT, "queue 0", s.queue_id = 0);
	ARGS(ENOENT, "no such queue", s.queue_id = 200);
	ARGS(EINVAL, "no control block", s.cbs.count = 0);
	ARGS(EINVAL, "257 control blocks", s.cbs.count = 257);
	ARGS(EINVAL, "2^32 - 1 control blocks", s.cbs.count = ~0u);
	ARGS(0, "16 control blocks", s.cbs.count = 16);
	ARGS(EINVAL, "short stride", s.cbs.stride = 16);
	ARGS(EINVAL, "huge stride", s.cbs.stride = ~0u);
	ARGS(0, "longer control blocks", s.cbs.stride = sizeof(longer);
	     s.cbs.array = (uintptr_t)longer);
	longer[sizeof(longer) - 1] = 1;
	ARGS(E2BIG, "control blocks of the future", s.cbs.stride = sizeof(longer);
	     s.cbs.array = (uintptr_t)longer);
	ARGS(EFAULT, "control blocks nowhere", s.cbs.array = BAD_POINTER);
	ARGS(ENOENT, "no such result BO", s.result_handle = 999);
	ARGS(EINVAL, "results in a device BO", s.result_handle = device_bo);
	ARGS(EINVAL, "odd result offset", s.result_offset = 32);
	ARGS(EINVAL, "results past the BO", s.result_offset = PAGE);
	ARGS(EINVAL, "results past the BO by one", s.result_offset = PAGE - 64; s.cbs.count = 2);
	ARGS(EINVAL, "result offset that overflows", s.result_offset = ~63ull);
	ARGS(EINVAL, "result offset without a BO", s.result_handle = 0; s.result_offset = 64);
	ARGS(0, "without results", s.result_handle = 0);
	ARGS(0, "256 control blocks", s.cbs.count = 256; s.result_handle = 0);
	ARGS(EINVAL, "65 syncs", s.syncs.count = 65);
	ARGS(EFAULT, "syncs nowhere",
	     s.syncs = ((struct drm_spyre_array){ sizeof(struct drm_spyre_sync), 1, BAD_POINTER }));
#undef ARGS
}

static void sync_gives(int expected, struct drm_spyre_sync sync, const char *what)
{
	struct drm_spyre_cb cb = stamp_cb();

	args_give(expected, (struct drm_spyre_submit){
		.queue_id = queue,
		.cbs = { .stride = sizeof(cb), .count = 1, .array = (uintptr_t)&cb },
		.syncs = { .stride = sizeof(sync), .count = 1, .array = (uintptr_t)&sync },
	}, what);
}

static void test_syncs(void)
{
	uint32_t binary = syncobj_create(fd), timeline = syncobj_create(fd);
	struct drm_spyre_sync sync = { .handle = timeline };

	sync_gives(-EINVAL, sync, "wait for a syncobj without a fence");
	sync.point = 7;
	sync_gives(-EINVAL, sync, "wait for a point without a fence");
	sync = (struct drm_spyre_sync){ .handle = 0 };
	sync_gives(-ENOENT, sync, "wait for syncobj 0");
	sync = (struct drm_spyre_sync){ .handle = 999, .flags = DRM_SPYRE_SYNC_SIGNAL };
	sync_gives(-ENOENT, sync, "signal no such syncobj");
	sync = (struct drm_spyre_sync){ .handle = timeline, .flags = 1 };
	sync_gives(-EINVAL, sync, "unknown sync flag");

	sync = (struct drm_spyre_sync){ .handle = binary, .flags = DRM_SPYRE_SYNC_SIGNAL };
	sync_gives(0, sync, "signal a binary syncobj");
	sync.flags = 0;
	sync_gives(0, sync, "wait for it");
	/* beyond 32 bits: a point that is not truncated */
	sync = (struct drm_spyre_sync){ .handle = timeline, .flags = DRM_SPYRE_SYNC_SIGNAL,
					.point = (1ull << 33) + 5 };
	sync_gives(0, sync, "signal point 2^33 + 5");
	sync.flags = 0;
	sync_gives(0, sync, "wait for it");
	sync.point++;
	sync_gives(-EINVAL, sync, "wait for point 2^33 + 6");
	ok(!timeline_wait(fd, timeline, (1ull << 33) + 5, 5000), "the point is reached");
}

int main(void)
{
	struct image image;

	fd = node_open();
	queue = queue_create(fd, 0, 0);
	device_bo = bo_create(fd, 16 * PAGE, DRM_SPYRE_BO_DEVICE);
	readonly_bo = bo_create(fd, PAGE, DRM_SPYRE_BO_DEVICE);
	host_bo = bo_create(fd, PAGE, DRM_SPYRE_BO_HOST);
	need(!vm_bind(fd, DRM_SPYRE_VM_MAP, 0, device_bo, 0, VA, 16 * PAGE), "VM_BIND");
	need(!vm_bind(fd, DRM_SPYRE_VM_MAP, DRM_SPYRE_VM_MAP_READONLY, readonly_bo, 0, 1ull << 34,
		      PAGE), "VM_BIND");
	image_add(&image, 4, 1);
	program = program_create(fd, &image);
	dma = (struct drm_spyre_dma){
		.direction = DRM_SPYRE_DMA_H2D, .host_format = DRM_SPYRE_FORMAT_IEEE_FP16,
		.device_format = DRM_SPYRE_FORMAT_SEN169_FP16, .num_dims = 1,
		.dim = { { .count = 64, .host_stride = 2 } },
	};

	test_exec();
	test_dma();
	test_linear();
	test_args();
	test_syncs();
	close(fd);
	return done_testing();
}
