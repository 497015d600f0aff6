/* SPDX-License-Identifier: MIT */
/* abi-ioctl: SUBMIT itself; its control blocks are in ioctl-cb.c. */
#include "ioctl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <xf86drm.h>

static struct drm_spyre_submit good;
static struct drm_spyre_cb stamp;
static uint32_t device_bo, host_bo, timeline;

static int submit_with(int fd, const struct drm_spyre_submit *args, uint32_t *error_cb)
{
	struct drm_spyre_submit copy = *args;
	int ret;

	copy.error_cb = 0xa5a5a5a5;
	ret = abi_ioctl(fd, DRM_IOCTL_SPYRE_SUBMIT, &copy);
	*error_cb = copy.error_cb;
	return ret;
}

#define SUBMIT(want, what, ...) do { \
	struct drm_spyre_submit s = good; \
	uint32_t error_cb_; \
	__VA_ARGS__; \
	tap_ret(submit_with(fd, &s, &error_cb_), want, "SUBMIT: " what); \
} while (0)

static void test_submit_fields(int fd)
{
	SUBMIT(0, "a timestamp", (void)0);
	SUBMIT(-EINVAL, "flags", s.flags = 1);
	SUBMIT(-EINVAL, "flag 31", s.flags = 1u << 31);
	SUBMIT(-ENOENT, "queue 0", s.queue_id = 0);
	SUBMIT(-ENOENT, "unknown queue", s.queue_id = NEVER);
	SUBMIT(0, "no result BO", s.result_handle = 0);
	SUBMIT(-EINVAL, "result offset without a BO", s.result_handle = 0; s.result_offset = 64);
	SUBMIT(-ENOENT, "unknown result BO", s.result_handle = NEVER);
	SUBMIT(-EINVAL, "device BO for results", s.result_handle = device_bo);
	SUBMIT(-EINVAL, "results not at 64 bytes", s.result_offset = 32);
	SUBMIT(0, "results at the BO's end", s.result_offset = PAGE - 64);
	SUBMIT(-EINVAL, "results at the BO's end + 64", s.result_offset = PAGE);
	SUBMIT(-EINVAL, "results past the BO", s.cbs.count = 2; s.result_offset = PAGE - 64);
	SUBMIT(-EINVAL, "result offset wraps", s.result_offset = 0 - 64ull);
	SUBMIT(-EINVAL, "result offset 2^63", s.result_offset = 1ull << 63);
}

static void test_submit_cbs(int fd)
{
	struct {
		struct drm_spyre_cb cb;
		uint64_t more[4];
	} longer[2] = { { stamp, { 0 } }, { stamp, { 0 } } };
	struct drm_spyre_cb *edge = abi_guard(sizeof(stamp));
	struct drm_spyre_cb *many = calloc(257, sizeof(*many));
	uint32_t i;

	*edge = stamp;
	for (i = 0; i < 257; i++)
		many[i] = stamp;
	SUBMIT(-EINVAL, "no control block", s.cbs.count = 0);
	SUBMIT(0, "256 control blocks", s.cbs.array = PTR(many); s.cbs.count = 256;
	       s.result_handle = 0);
	SUBMIT(-EINVAL, "257 control blocks", s.cbs.array = PTR(many); s.cbs.count = 257;
	       s.result_handle = 0);
	SUBMIT(-EINVAL, "2^32 - 1 control blocks", s.cbs.count = ~0u);
	SUBMIT(-EINVAL, "stride 0", s.cbs.stride = 0);
	SUBMIT(-EINVAL, "stride shorter than the first version", s.cbs.stride -= 8);
	SUBMIT(0, "longer control blocks with zero tails", s.cbs.stride = sizeof(longer[0]);
	       s.cbs.count = 2; s.cbs.array = PTR(longer));
	longer[1].more[3] = 1ull << 63;
	SUBMIT(-E2BIG, "longer control block whose tail says something",
	       s.cbs.stride = sizeof(longer[0]); s.cbs.count = 2; s.cbs.array = PTR(longer));
	SUBMIT(-EFAULT, "control blocks NULL", s.cbs.array = 0);
	SUBMIT(-EFAULT, "control blocks unmapped", s.cbs.array = PTR(abi_hole()));
	SUBMIT(-EFAULT, "control blocks wrap", s.cbs.array = 0 - (uint64_t)sizeof(stamp);
	       s.cbs.count = 2);
	SUBMIT(0, "control block ends at its page's end", s.cbs.array = PTR(edge));
	SUBMIT(-EFAULT, "control blocks run off their page", s.cbs.array = PTR(edge);
	       s.cbs.count = 2);
	abi_guard_free(edge, sizeof(stamp));
	free(many);
}

#define SYNC(want, what, ...) do { \
	struct drm_spyre_sync y = { .handle = timeline, .flags = DRM_SPYRE_SYNC_SIGNAL, \
				    .point = ++point }; \
	__VA_ARGS__; \
	SUBMIT(want, "sync: " what, s.syncs.count = 1; s.syncs.array = PTR(&y)); \
} while (0)

static void test_submit_syncs(int fd)
{
	struct {
		struct drm_spyre_sync sync;
		uint64_t more;
	} longer = { { 0 }, 0 };
	struct drm_spyre_sync many[65], *edge = abi_guard(sizeof(*edge));
	uint64_t point = 0;
	uint32_t i;

	SYNC(0, "signal of a point", (void)0);
	SYNC(-ENOENT, "handle 0", y.handle = 0);
	SYNC(-ENOENT, "unknown handle", y.handle = NEVER);
	SYNC(-EINVAL, "unknown flag", y.flags |= 1);
	SYNC(-EINVAL, "unknown flag of a wait", y.flags = 1u << 30; y.point = 1);
	SYNC(-ENOENT, "wait, handle 0", y.flags = 0; y.handle = 0);
	SYNC(-EINVAL, "wait for a point without a fence", y.flags = 0; y.point = 1ull << 40);
	SYNC(0, "wait for a point that has one", y.flags = 0; y.point = 1);
	for (i = 0; i < 65; i++)
		many[i] = (struct drm_spyre_sync){ .handle = timeline, .point = 1 };
	SUBMIT(0, "64 syncs", s.syncs.count = 64; s.syncs.array = PTR(many));
	SUBMIT(-EINVAL, "65 syncs", s.syncs.count = 65; s.syncs.array = PTR(many));
	SUBMIT(-EINVAL, "sync stride 0", s.syncs.count = 1; s.syncs.stride = 0;
	       s.syncs.array = PTR(many));
	SUBMIT(-EINVAL, "sync stride short", s.syncs.count = 1; s.syncs.stride -= 8;
	       s.syncs.array = PTR(many));
	longer.sync = many[0];
	SUBMIT(0, "longer sync with a zero tail", s.syncs.count = 1;
	       s.syncs.stride = sizeof(longer); s.syncs.array = PTR(&longer));
	longer.more = 1;
	SUBMIT(-E2BIG, "longer sync whose tail says something", s.syncs.count = 1;
	       s.syncs.stride = sizeof(longer); s.syncs.array = PTR(&longer));
	SUBMIT(-EFAULT, "syncs NULL", s.syncs.count = 1; s.syncs.array = 0);
	SUBMIT(-EFAULT, "syncs unmapped", s.syncs.count = 1; s.syncs.array = PTR(abi_hole()));
	*edge = many[0];
	SUBMIT(0, "sync ends at its page's end", s.syncs.count = 1; s.syncs.array = PTR(edge));
	SUBMIT(-EFAULT, "syncs run off their page", s.syncs.count = 2; s.syncs.array = PTR(edge));
	abi_guard_free(edge, sizeof(*edge));
}

/* Fences of a refused submission must not appear in the syncobj. */
static void test_refused_signals_nothing(int fd)
{
	struct drm_spyre_sync syncs[2] = {
		{ .handle = abi_syncobj(fd), .flags = DRM_SPYRE_SYNC_SIGNAL, .point = 7 },
		{ .handle = NEVER, .flags = DRM_SPYRE_SYNC_SIGNAL, .point = 1 },
	};

	SUBMIT(-ENOENT, "the second of two signals is bad", s.syncs.count = 2;
	       s.syncs.array = PTR(syncs));
	syncs[1] = syncs[0];
	syncs[1].flags = 0;
	SUBMIT(-EINVAL, "so the first point has no fence", s.syncs.count = 1;
	       s.syncs.array = PTR(&syncs[1]));
	drmSyncobjDestroy(fd, syncs[0].handle);
}

void test_submit(int fd)
{
	uint64_t submitted;
	uint32_t id;

	stamp = abi_cb_timestamp();
	timeline = abi_syncobj(fd);
	if (abi_bo(fd, PAGE, DRM_SPYRE_BO_DEVICE, &device_bo) ||
	    abi_bo(fd, PAGE, DRM_SPYRE_BO_HOST, &host_bo) || abi_queue_create(fd, 0, 0, &id))
		tap_bail("BO_CREATE or QUEUE_CREATE");
	good = (struct drm_spyre_submit){
		.queue_id = id,
		.cbs = { .stride = sizeof(stamp), .count = 1, .array = PTR(&stamp) },
		.syncs = { .stride = sizeof(struct drm_spyre_sync) },
		.result_handle = host_bo,
	};
	test_pointer(fd, "SUBMIT", DRM_IOCTL_SPYRE_SUBMIT, &good, 0);
	test_submit_fields(fd);
	test_submit_cbs(fd);
	test_submit_syncs(fd);
	submitted = abi_queue_query(fd, id).submitted;
	test_refused_signals_nothing(fd);
	tap_eq(abi_queue_query(fd, id).submitted, submitted, "SUBMIT: refused jobs do not count");
	abi_queue_destroy(fd, id);
	SUBMIT(-ENOENT, "destroyed queue", (void)0);
	drmSyncobjDestroy(fd, timeline);
	abi_gem_close(fd, device_bo);
	abi_gem_close(fd, host_bo);
}
