/* SPDX-License-Identifier: MIT */
/* abi-submit: syncobjs in and out. */
#include "submit.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <sys/poll.h>

#include <xf86drm.h>

#include "prog.h"

#define NONE ((struct drm_spyre_sync){ 0 })

static struct drm_spyre_sync sync_wait(uint32_t handle, uint64_t point)
{
	return (struct drm_spyre_sync){ .handle = handle, .point = point };
}

static struct drm_spyre_sync sync_signal(uint32_t handle, uint64_t point)
{
	return (struct drm_spyre_sync){
		.handle = handle, .flags = DRM_SPYRE_SYNC_SIGNAL, .point = point
	};
}

static uint64_t reached(int fd, uint32_t syncobj)
{
	uint64_t point = ~0ull;

	drmSyncobjQuery(fd, &syncobj, &point, 1);
	return point;
}

static void test_points(int fd, struct abi_queue *q)
{
	const uint64_t big = (1ull << 33) + 5;
	struct drm_spyre_cb cb = abi_cb_timestamp();
	uint32_t t = abi_syncobj(fd), binary = abi_syncobj(fd);

	tap_ret(abi_submit_sync(q, &cb, 1, sync_signal(t, 1), NONE), 0, "sync: signal point 1");
	tap_ret(abi_wait_point(fd, t, 1, 10000), 0, "sync: point 1 is reached");
	tap_ret(abi_submit_sync(q, &cb, 1, sync_signal(t, big), sync_wait(t, 1)), 0,
		"sync: wait for 1, signal 2^33 + 5");
	tap_ret(abi_wait_point(fd, t, big, 10000), 0, "sync: point 2^33 + 5 is reached");
	tap_eq(reached(fd, t), big, "sync: the syncobj's last point is 2^33 + 5");
	tap_ret(abi_submit_sync(q, &cb, 1, sync_wait(t, big), NONE), 0,
		"sync: wait for 2^33 + 5");
	tap_ret(abi_submit_sync(q, &cb, 1, sync_wait(t, big + 1), NONE), -EINVAL,
		"sync: 2^33 + 6 has no fence (the upper half of a point counts)");
	tap_ret(abi_submit_sync(q, &cb, 1, sync_wait(binary, 0), NONE), -EINVAL,
		"sync: binary syncobj without a fence");
	tap_ret(abi_submit_sync(q, &cb, 1, sync_signal(binary, 0), NONE), 0, "sync: signal binary");
	tap_ret(abi_wait_point(fd, binary, 0, 10000), 0, "sync: binary is signalled");
	tap_ret(abi_submit_sync(q, &cb, 1, sync_wait(binary, 0), sync_signal(t, big + 10)), 0,
		"sync: wait binary, signal timeline");
	tap_ret(abi_wait(q, 10000), 0, "sync: all jobs complete");
	drmSyncobjDestroy(fd, t);
	drmSyncobjDestroy(fd, binary);
}

/* Queue b may not start before queue a's long work has completed. */
static void test_between_queues(int fd, struct abi_buf *dev)
{
	struct abi_prog p = abi_prog_add(1, 512);
	uint64_t args[3] = { dev->va, dev->va + MIB, dev->va + 2 * MIB };
	struct abi_queue a = abi_queue(fd, 60000), b = abi_queue(fd, 0);
	struct drm_spyre_cb slow, quick = abi_cb_timestamp();
	struct drm_spyre_cb_result *ra = abi_results(&a), *rb = abi_results(&b);
	uint32_t program, t = abi_syncobj(fd);

	p.num_loops = 1;
	p.loops[0] = 1000;
	program = abi_prog_create(fd, &p);
	slow = abi_cb_exec(program, args, 3);
	memset(rb, 0, sizeof(*rb));
	tap_ret(abi_submit_sync(&a, &slow, 1, sync_signal(t, 3), NONE), 0, "sync: slow work in a");
	tap_ret(abi_submit_sync(&b, &quick, 1, sync_wait(t, 3), NONE), 0, "sync: b waits for a");
	tap_ret(abi_submit(&b, &quick, 1, NULL), 0, "sync: more in b, without a wait");
	tap_ret(abi_wait(&b, 30000), 0, "sync: b completes");
	tap_ok(ra->state == DRM_SPYRE_CB_DONE && ra->end_ns && rb->start_ns >= ra->end_ns,
	       "sync: b started after a had ended");
	tap_ret(abi_wait(&a, 0), 0, "sync: a's point is reached");
	abi_prog_destroy(fd, program);
	drmSyncobjDestroy(fd, t);
	abi_queue_free(&a);
	abi_queue_free(&b);
}

/* Results are written before the fence signals, so a waiter sees them. */
static void test_results_before_fence(int fd, struct abi_queue *q)
{
	struct drm_spyre_cb cbs[16];
	struct drm_spyre_cb_result *r = abi_results(q);
	uint32_t round, i, bad = 0;

	for (i = 0; i < 16; i++)
		cbs[i] = abi_cb_timestamp();
	for (round = 0; round < 200; round++) {
		memset(r, 0, 16 * sizeof(*r));
		bad += abi_submit(q, cbs, 16, NULL) || abi_wait(q, 10000);
		for (i = 0; i < 16; i++)
			bad += r[i].state != DRM_SPYRE_CB_DONE || r[i].status || !r[i].end_ns;
	}
	tap_eq(bad, 0, "sync: 200 times 16 results are complete when the fence signals");
}

static void test_sync_file(int fd, struct abi_queue *q)
{
	struct drm_spyre_cb cb = abi_cb_timestamp();
	uint32_t s = abi_syncobj(fd), back = abi_syncobj(fd);
	int file = -1;
	struct pollfd poll_fd = { .events = POLLIN };

	tap_ret(abi_submit_sync(q, &cb, 1, sync_signal(s, 0), NONE), 0,
		"sync_file: a submission signals the syncobj");
	tap_ok(!drmSyncobjExportSyncFile(fd, s, &file) && file >= 0, "sync_file: export");
	poll_fd.fd = file;
	tap_ok(poll(&poll_fd, 1, 10000) == 1 && (poll_fd.revents & POLLIN),
	       "sync_file: poll reports it");
	tap_ok(!drmSyncobjImportSyncFile(fd, back, file), "sync_file: import");
	tap_ret(abi_submit_sync(q, &cb, 1, sync_wait(back, 0), NONE), 0,
		"sync_file: a submission waits for the import");
	tap_ret(abi_wait(q, 10000), 0, "sync_file: it completes");
	close(file);
	drmSyncobjDestroy(fd, s);
	drmSyncobjDestroy(fd, back);
}

void test_sync(int fd, struct abi_buf *dev)
{
	struct abi_queue q = abi_queue(fd, 0);

	test_points(fd, &q);
	test_between_queues(fd, dev);
	test_results_before_fence(fd, &q);
	test_sync_file(fd, &q);
	abi_queue_free(&q);
}
