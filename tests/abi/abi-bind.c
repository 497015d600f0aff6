/* SPDX-License-Identifier: MIT */
/* VM_BIND that is ordered by fences. */
#include "fence.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xf86drm.h>

#define VA (256 * MIB)
#define NONE ((struct drm_spyre_sync){ 0 })
#define MOST_PENDING 1024
#define TRIES (MOST_PENDING + 64)
#define MOST_OPS 4096u

static struct abi_queue queue;
static struct abi_buf probe;	/* mapped at VA / 2, target of copies */
static struct abi_buf a, b;	/* 8 pages that contain a0.., b0.. */

static struct drm_spyre_vm_bind_op map_op(const struct abi_buf *buf, uint64_t page, uint64_t va,
					  uint64_t pages)
{
	return (struct drm_spyre_vm_bind_op){
		.op = DRM_SPYRE_VM_MAP, .handle = buf->handle, .bo_offset = page * PAGE,
		.va = va, .range = pages * PAGE,
	};
}

static struct drm_spyre_vm_bind_op unmap_op(uint64_t va, uint64_t pages)
{
	return (struct drm_spyre_vm_bind_op){
		.op = DRM_SPYRE_VM_UNMAP, .va = va, .range = pages * PAGE,
	};
}

static int bind_ops(int fd, uint32_t flags, const struct drm_spyre_vm_bind_op *ops, uint32_t num,
		    const struct drm_spyre_sync *syncs, uint32_t num_syncs, uint32_t *done)
{
	struct drm_spyre_vm_bind args = {
		.flags = flags,
		.ops = { .stride = sizeof(*ops), .count = num, .array = PTR(ops) },
	};
	int ret;

	if (num_syncs)
		args.syncs = (struct drm_spyre_array){ sizeof(*syncs), num_syncs, PTR(syncs) };
	ret = abi_ioctl(fd, DRM_IOCTL_SPYRE_VM_BIND, &args);
	if (done)
		*done = args.done;
	return ret;
}

static int bind_async(int fd, struct drm_spyre_vm_bind_op op, struct drm_spyre_sync x,
		      struct drm_spyre_sync y)
{
	struct drm_spyre_sync syncs[2];
	uint32_t n = 0;

	if (x.handle)
		syncs[n++] = x;
	if (y.handle)
		syncs[n++] = y;
	return bind_ops(fd, DRM_SPYRE_VM_BIND_ASYNC, &op, 1, syncs, n, NULL);
}

static uint32_t peek(uint64_t va)
{
	struct drm_spyre_cb cb = abi_cb_copy(probe.va, va, STICK);

	*(uint32_t *)probe.map = 0xdead;
	return abi_run(&queue, &cb, 1) ? 0xdead : *(uint32_t *)probe.map;
}

static void test_arguments(int fd)
{
	struct drm_spyre_vm_bind_op op = map_op(&a, 0, VA, 1);
	uint32_t t = abi_syncobj(fd), empty = abi_syncobj(fd), done = 7;
	struct drm_spyre_sync sync = abi_sync_signal(t, 1), many[65];
	int i;

	for (i = 0; i < 65; i++)
		many[i] = abi_sync_signal(t, 1 + i);
	tap_ret(bind_ops(fd, 0, &op, 1, &sync, 1, &done), -EINVAL, "syncs need ASYNC");
	tap_eq(done, 0, "done is 0");
	tap_ret(bind_ops(fd, 2, &op, 1, NULL, 0, NULL), -EINVAL, "unknown flag");
	tap_ret(bind_ops(fd, 1, &op, 0, NULL, 0, NULL), -EINVAL, "no operations");
	tap_ret(bind_ops(fd, 1, &op, 1, many, 65, NULL), -EINVAL, "65 syncs");
	sync.flags = 1;
	tap_ret(bind_ops(fd, 1, &op, 1, &sync, 1, NULL), -EINVAL, "unknown sync flag");
	sync = abi_sync_signal(NEVER, 1);
	tap_ret(bind_ops(fd, 1, &op, 1, &sync, 1, NULL), -ENOENT, "signal: unknown syncobj");
	sync = abi_sync_wait(NEVER, 1);
	tap_ret(bind_ops(fd, 1, &op, 1, &sync, 1, NULL), -ENOENT, "wait: unknown syncobj");
	tap_ret(bind_async(fd, op, abi_sync_wait(empty, 0), NONE), -EINVAL,
		"wait: a syncobj without a fence");
	tap_ret(bind_async(fd, op, abi_sync_wait(t, 9), NONE), -EINVAL,
		"wait: a point without a fence");
	tap_eq(peek(VA), 0xdead, "refused binds map no page");
	tap_ret(abi_wait_point(fd, t, 1, 0), -EINVAL, "refused binds signal no point");
	tap_ret(bind_ops(fd, 1, &op, 1, many, 64, &done), 0, "64 signals");
	tap_eq(done, 1, "done is 1");
	tap_ret(abi_wait_point(fd, t, 64, 0), 0, "without waits the signals are immediate");
	tap_eq(peek(VA), 0xa0, "the mapping is immediate as well");
	abi_unbind(fd, VA, PAGE);
	drmSyncobjDestroy(fd, t);
	drmSyncobjDestroy(fd, empty);
}

/* Each has a different error, after two valid operations. */
static void test_all_or_none(int fd)
{
	struct drm_spyre_vm_bind_op ops[4] = {
		map_op(&a, 0, VA, 4), unmap_op(VA + PAGE, 1), map_op(&b, 0, VA + 8 * PAGE, 8),
		map_op(&b, 0, VA + 16 * PAGE, 1),
	};
	const struct drm_spyre_vm_bind_op good = ops[2];
	uint32_t t = abi_syncobj(fd), done = 7;
	struct drm_spyre_sync sync = abi_sync_signal(t, 1);
	int i;

	for (i = 0; i < 5; i++) {
		ops[2] = good;
		switch (i) {
		case 0: ops[2].handle = NEVER; break;
		case 1: ops[2].bo_offset = PAGE; break;
		case 2: ops[2].op = 2; break;
		case 3: ops[2].va++; break;
		case 4: ops[2].pad = 1; break;
		}
		tap_ret(bind_ops(fd, 1, ops, 4, &sync, 1, &done), i ? -EINVAL : -ENOENT,
			"all or none: the third of four is wrong (%d)", i);
		tap_eq(done, 0, "all or none: done is 0");
		tap_eq(peek(VA), 0xdead, "all or none: the first is not mapped");
	}
	ops[2] = good;
	tap_ret(bind_ops(fd, 1, ops, 4, &sync, 1, &done), 0, "all or none: four valid operations");
	tap_eq(done, 4, "all or none: done is 4");
	tap_ok(peek(VA) == 0xa0 && peek(VA + PAGE) == 0xdead && peek(VA + 2 * PAGE) == 0xa2 &&
	       peek(VA + 8 * PAGE) == 0xb0 && peek(VA + 16 * PAGE) == 0xb0,
	       "all or none: they are applied in order");
	abi_unbind(fd, VA, 32 * PAGE);
	drmSyncobjDestroy(fd, t);
}

/* Samples how many of @num pages from @va on are mapped. */
static uint32_t count_mapped(uint64_t va, uint32_t num, uint32_t first, uint32_t end)
{
	const uint32_t at[] = { 0, 1, first, first + 1, (first + end) / 2, end - 1, end, end + 1,
				num - 2, num - 1 };
	uint32_t wrong = 0, i, want;

	for (i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		if (at[i] >= num)
			continue;
		want = at[i] >= first && at[i] < end ? 0xa0 + at[i] % 8 : 0xdead;
		wrong += peek(va + at[i] * PAGE) != want;
	}
	return wrong;
}

/* The largest possible array, valid, and invalid in its middle: which part was applied? */
static void test_large(int fd)
{
	static struct drm_spyre_vm_bind_op ops[MOST_OPS + 1];
	const uint32_t middle = MOST_OPS / 2;
	uint32_t done, i;
	int async;

	for (i = 0; i <= MOST_OPS; i++)
		ops[i] = map_op(&a, i % 8, VA + i * PAGE, 1);
	for (async = 0; async < 2; async++) {
		const char *how = async ? "async" : "sync";

		tap_ret(bind_ops(fd, async, ops, MOST_OPS + 1, NULL, 0, &done), -EINVAL,
			"large, %s: 4,097 operations", how);
		tap_eq(done, 0, "large, %s: done is 0", how);
		tap_ret(bind_ops(fd, async, ops, MOST_OPS, NULL, 0, &done), 0,
			"large, %s: 4,096 operations", how);
		tap_eq(done, MOST_OPS, "large, %s: done is 4,096", how);
		tap_eq(count_mapped(VA, MOST_OPS, 0, MOST_OPS), 0,
		       "large, %s: the pages are mapped", how);
		abi_unbind(fd, VA, MOST_OPS * PAGE);

		ops[middle].handle = NEVER;
		tap_ret(bind_ops(fd, async, ops, MOST_OPS, NULL, 0, &done), -ENOENT,
			"large, %s: an invalid operation in the middle", how);
		tap_eq(done, async ? 0 : middle,
		       "large, %s: done counts the operations before it", how);
		tap_eq(count_mapped(VA, MOST_OPS, 0, async ? 0 : middle), 0,
		       "large, %s: the mappings agree with done", how);
		ops[middle] = map_op(&a, middle % 8, VA + middle * PAGE, 1);
		abi_unbind(fd, VA, MOST_OPS * PAGE);
	}
}

/* A hole is unmapped in a mapping, and then an operation fails. */
static void test_split(int fd)
{
	struct drm_spyre_vm_bind_op ops[3] = {
		map_op(&a, 0, VA, 8), unmap_op(VA + 3 * PAGE, 2), map_op(&b, 0, VA + 1, 1),
	};
	uint32_t done, wrong = 0, i;

	tap_ret(bind_ops(fd, 0, ops, 3, NULL, 0, &done), -EINVAL, "split: the third is wrong");
	tap_eq(done, 2, "split: done is 2");
	for (i = 0; i < 8; i++)
		wrong += peek(VA + i * PAGE) != (i == 3 || i == 4 ? 0xdead : 0xa0 + i);
	tap_eq(wrong, 0, "split: the remaining mapping is intact");
	tap_ret(bind_ops(fd, 1, ops, 3, NULL, 0, &done), -EINVAL,
		"split: the same operations with ASYNC are refused as a whole");
	for (i = 0, wrong = 0; i < 8; i++)
		wrong += peek(VA + i * PAGE) != (i == 3 || i == 4 ? 0xdead : 0xa0 + i);
	tap_eq(wrong, 0, "split: the mapping is unchanged");
	abi_unbind(fd, VA, 8 * PAGE);
}

/* Jobs wait for binds while the gate is shut, and all of them complete. */
static void test_order(int fd)
{
	const uint64_t big = (1ull << 33) + 5;
	struct abi_gate gate = abi_gate();
	struct abi_queue early = abi_queue(fd, 0), late = abi_queue(fd, 0);
	uint32_t in = abi_gate_syncobj(&gate, fd), t = abi_syncobj(fd), binary = abi_syncobj(fd);
	struct drm_spyre_cb fill = abi_cb_fill32(VA, PAGE, 0x77777777), stamp = abi_cb_timestamp();
	struct drm_spyre_cb copy = abi_cb_copy(probe.va, VA, STICK);
	int file;

	tap_ret(bind_async(fd, map_op(&a, 1, VA, 1), abi_sync_wait(in, 0),
			   abi_sync_signal(t, big)), 0, "order: map with an unsignalled wait");
	tap_ret(abi_wait_point(fd, t, big, 0), -ETIME, "order: point 2^33 + 5 is not reached");
	tap_ret(abi_submit(&late, &fill, 1, NULL), 0,
		"order: SUBMIT accepts an address of the mapping at once");
	tap_ret(abi_wait(&late, 50), -ETIME, "order: the work does not start");
	tap_ret(bind_async(fd, map_op(&b, 0, VA + PAGE, 1), abi_sync_signal(binary, 0), NONE), 0,
		"order: a second bind without a wait");
	file = abi_sync_file(fd, binary);
	tap_ok(!abi_sync_file_poll(file, 50), "order: the second bind signals after the first");
	tap_ret(abi_submit(&early, &stamp, 1, NULL), 0, "order: work without addresses");
	tap_ret(abi_wait(&early, 50), -ETIME, "order: that work waits for the bind as well");
	tap_ret(bind_async(fd, unmap_op(VA, 1), NONE, NONE), 0, "order: unmap");
	tap_ret(abi_submit(&early, &copy, 1, NULL), -EFAULT,
		"order: later work at the unmapped address: EFAULT");
	tap_eq(abi_sync_file_status(file), 0, "order: the points are still not signalled");

	abi_gate_open(&gate);
	tap_ret(abi_wait_point(fd, t, big, 10000), 0,
		"order: the wait signals, the first point signals");
	tap_ok(abi_sync_file_poll(file, 10000), "order: the second point signals");
	tap_eq(abi_sync_file_status(file), 1,
	       "order: the error of the wait is not an error of the bind");
	tap_ret(abi_wait(&late, 10000), 0, "order: the work runs");
	tap_ret(abi_results(&late)->status, 0, "order: the work succeeds");
	tap_eq(((uint32_t *)a.map)[PAGE / 4], 0x77777777,
	       "order: the work used the memory mapped at its submission");
	tap_ret(abi_wait(&early, 10000), 0, "order: the remaining work completes");
	tap_ret(abi_submit(&early, &stamp, 1, NULL) ?: abi_wait(&early, 10000), 0,
		"order: new work completes");
	((uint32_t *)a.map)[PAGE / 4] = 0xa1;
	abi_unbind(fd, VA, 2 * PAGE);
	close(file);
	drmSyncobjDestroy(fd, in);
	drmSyncobjDestroy(fd, t);
	drmSyncobjDestroy(fd, binary);
	abi_queue_free(&early);
	abi_queue_free(&late);
	abi_gate_free(&gate);
}

/* Jobs signal binds and binds signal jobs, all submitted at once. */
static void test_pipeline(int fd)
{
	uint32_t t = abi_syncobj(fd), i, bad = 0;
	struct drm_spyre_cb fill;

	for (i = 0; i < 200 && !bad; i++) {
		bad += !!bind_async(fd, map_op(i % 2 ? &a : &b, 2, VA, 1),
				    abi_sync_signal(t, 2 * i + 1),
				    i ? abi_sync_wait(t, 2 * i) : NONE);
		fill = abi_cb_fill32(VA, STICK, i);
		bad += !!abi_submit_sync(&queue, &fill, 1, abi_sync_wait(t, 2 * i + 1),
					 abi_sync_signal(t, 2 * i + 2));
	}
	tap_eq(bad, 0, "pipeline: 200 pairs of bind and work are accepted");
	tap_ret(abi_wait_point(fd, t, 400, 20000), 0, "pipeline: all work completes");
	tap_eq(((uint32_t *)b.map)[2 * PAGE / 4], 198,
	       "pipeline: the first buffer has its last value");
	tap_eq(((uint32_t *)a.map)[2 * PAGE / 4], 199,
	       "pipeline: the second buffer has its last value");
	((uint32_t *)a.map)[2 * PAGE / 4] = 0xa2;
	((uint32_t *)b.map)[2 * PAGE / 4] = 0xb2;
	abi_unbind(fd, VA, PAGE);
	drmSyncobjDestroy(fd, t);
}

/* A fence that never signals accumulates a bounded amount of work. */
static void test_bound(int fd)
{
	struct abi_gate gate = abi_gate();
	uint32_t in = abi_gate_syncobj(&gate, fd), t = abi_syncobj(fd), taken = 0, refused = 0, i;
	int ret;

	/*
	 * The gate's job has a time limit, so the loop must be short on the slowest kernel:
	 * only the last bind signals, since adding a point takes time linear in a timeline's
	 * length.
	 */
	for (i = 0; i < TRIES; i++) {
		ret = bind_async(fd, map_op(&a, i % 8, VA, 1), abi_sync_wait(in, 0),
				 i == MOST_PENDING - 1 ? abi_sync_signal(t, 1) : NONE);
		taken += !ret;
		refused += ret == -EBUSY;
	}
	tap_eq(taken, MOST_PENDING, "limit: this many binds may be pending");
	tap_eq(refused, TRIES - MOST_PENDING, "limit: all others give EBUSY");
	abi_gate_open(&gate);
	tap_ret(abi_wait_point(fd, t, 1, 10000), 0, "limit: all pending binds signal");
	tap_ret(bind_async(fd, map_op(&a, 3, VA, 1), NONE, NONE), 0,
		"limit: another bind is accepted");
	tap_eq(peek(VA), 0xa3, "limit: its mapping works");
	abi_unbind(fd, VA, PAGE);
	drmSyncobjDestroy(fd, in);
	drmSyncobjDestroy(fd, t);
	abi_gate_free(&gate);
}

/* A file may be closed while its binds wait for a fence that never signals. */
static void test_close(void)
{
	struct abi_gate gate = abi_gate();
	int fd = abi_open(), files[3], i;
	uint32_t in = abi_gate_syncobj(&gate, fd), out[3];
	struct abi_buf buf = abi_buf(fd, PAGE, DRM_SPYRE_BO_DEVICE, 0);
	struct abi_queue q = abi_queue(fd, 0);
	struct drm_spyre_cb fill = abi_cb_fill32(VA, PAGE, 1);
	uint64_t start;

	for (i = 0; i < 3; i++) {
		out[i] = abi_syncobj(fd);
		if (bind_async(fd, map_op(&buf, 0, VA, 1), i == 1 ? NONE : abi_sync_wait(in, 0),
			       abi_sync_signal(out[i], 0)))
			tap_bail("VM_BIND");
		files[i] = abi_sync_file(fd, out[i]);
	}
	tap_ret(abi_submit(&q, &fill, 1, NULL), 0, "close: work behind three pending binds");
	start = abi_now_ns();
	/* A map would keep the file open. */
	munmap(buf.map, PAGE);
	munmap(q.results.map, q.results.size);
	close(fd);
	tap_ok(abi_now_ns() - start < 5000000000ull, "close: does not wait for pending fences");
	for (i = 0; i < 3; i++) {
		tap_ok(abi_sync_file_poll(files[i], 5000), "close: fence %d signals", i);
		tap_ret(abi_sync_file_status(files[i]), -ECANCELED,
			"close: the fence reports ECANCELED");
		close(files[i]);
	}
	abi_gate_free(&gate);
}

int main(void)
{
	int fd = abi_open(), i;

	queue = abi_queue(fd, 0);
	probe = abi_buf(fd, PAGE, DRM_SPYRE_BO_DEVICE, VA / 2);
	a = abi_buf(fd, 8 * PAGE, DRM_SPYRE_BO_DEVICE, 0);
	b = abi_buf(fd, 8 * PAGE, DRM_SPYRE_BO_DEVICE, 0);
	for (i = 0; i < 8; i++) {
		((uint32_t *)a.map)[i * PAGE / 4] = 0xa0 + i;
		((uint32_t *)b.map)[i * PAGE / 4] = 0xb0 + i;
	}
	test_arguments(fd);
	test_all_or_none(fd);
	test_large(fd);
	test_split(fd);
	test_order(fd);
	test_pipeline(fd);
	test_bound(fd);
	test_close();
	return tap_done();
}
