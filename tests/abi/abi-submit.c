/* SPDX-License-Identifier: MIT */
/* Effects of control blocks, their results, and the order of submissions. */
#include "submit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "prog.h"

static void test_timestamp(int fd)
{
	struct abi_queue q = abi_queue(fd, 0);
	struct drm_spyre_cb cb = abi_cb_timestamp();
	struct drm_spyre_cb_result *r = abi_results(&q);
	uint64_t before = abi_now_ns();

	tap_ret(abi_run(&q, &cb, 1), 0, "TIMESTAMP");
	tap_eq(r->state, DRM_SPYRE_CB_DONE, "TIMESTAMP: its state is done");
	tap_ok(r->start_ns >= before && r->start_ns <= r->end_ns && r->end_ns <= abi_now_ns(),
	       "TIMESTAMP: between submission and now");
	tap_ok(!r->bytes_read && !r->bytes_written && !r->macs,
	       "TIMESTAMP: no bytes and no cycles are counted");
	tap_eq(r->rdma, 0, "TIMESTAMP: rdma is 0");
	tap_ok(((uint8_t *)(r + 1))[0] != 0xa5, "TIMESTAMP: one result is written");
	abi_queue_free(&q);
}

static void test_fill(int fd, struct abi_buf *dev)
{
	static const uint32_t sizes[] = { 1, 2, 4, 8, 16 };
	struct abi_queue q = abi_queue(fd, 0);
	struct drm_spyre_cb cb = { .type = DRM_SPYRE_CB_FILL };
	uint8_t *p = dev->map, *pattern = (uint8_t *)cb.pattern;
	uint32_t i, n, bad;

	for (i = 0; i < 5; i++) {
		n = sizes[i];
		memset(p, 0xee, 4 * PAGE);
		memset(cb.pattern, 0, sizeof(cb.pattern));
		for (bad = 0; bad < n; bad++)
			pattern[bad] = (uint8_t)(0x10 * i + bad + 1);
		cb.dst = dev->va + PAGE;
		cb.size = PAGE + 2 * STICK;
		cb.pattern_size = n;
		tap_ret(abi_run(&q, &cb, 1), 0, "FILL: pattern of %u", n);
		for (bad = 0; bad < cb.size && p[PAGE + bad] == pattern[bad % n]; bad++)
			;
		tap_eq(bad, cb.size, "FILL: pattern of %u: every byte", n);
		tap_ok(p[PAGE - 1] == 0xee && p[2 * PAGE + 2 * STICK] == 0xee,
		       "FILL: pattern of %u: no byte past the end", n);
	}
	tap_eq(abi_results(&q)->bytes_written, cb.size, "FILL: bytes written");
	tap_ok(abi_results(&q)->cycles, "FILL: cycles are not 0");
	abi_queue_free(&q);
}

static void test_copy(int fd, struct abi_buf *dev)
{
	struct abi_queue q = abi_queue(fd, 0);
	struct drm_spyre_cb cb = abi_cb_copy(dev->va + MIB, dev->va, 256 * PAGE);
	uint32_t *p = dev->map, *want = malloc(MIB);
	uint32_t i;

	for (i = 0; i < MIB / 4; i++)
		want[i] = p[i] = i * 2654435761u;
	tap_ret(abi_run(&q, &cb, 1), 0, "COPY: 1 MiB");
	tap_ok(!memcmp(p + MIB / 4, want, MIB), "COPY: the same bytes");
	tap_eq(abi_results(&q)->bytes_read, MIB, "COPY: bytes read");
	tap_eq(abi_results(&q)->bytes_written, MIB, "COPY: bytes written");
	cb = abi_cb_copy(dev->va + PAGE, dev->va, MIB - PAGE);
	tap_ret(abi_run(&q, &cb, 1), 0, "COPY: overlapping, upwards");
	tap_ok(!memcmp(p + PAGE / 4, want, MIB - PAGE), "COPY: overlapping, upwards: as memmove");
	memcpy(p, want, MIB);
	cb = abi_cb_copy(dev->va, dev->va + PAGE, MIB - PAGE);
	tap_ret(abi_run(&q, &cb, 1), 0, "COPY: overlapping, downwards");
	tap_ok(!memcmp(p, want + PAGE / 4, MIB - PAGE), "COPY: overlapping, downwards: as memmove");
	free(want);
	abi_queue_free(&q);
}

/* --- order and many queues --- */
static void test_order(int fd, struct abi_buf *dev)
{
	struct abi_queue q = abi_queue(fd, 0);
	struct drm_spyre_cb cbs[64];
	uint32_t i, round, bad = 0;

	/* Each block depends on the one before: 64 copies carry a word along. */
	for (round = 0; round < 8; round++) {
		memset(dev->map, 0, 65 * PAGE);
		for (i = 0; i < 64; i++)
			cbs[i] = abi_cb_copy(dev->va + (i + 1) * PAGE, dev->va + i * PAGE, PAGE);
		cbs[0] = abi_cb_fill32(dev->va + PAGE, PAGE, 0x1000 + round);
		bad += abi_submit(&q, cbs, 32, NULL) || abi_submit(&q, cbs + 32, 32, NULL) ||
		       abi_wait(&q, 10000);
		bad += ((uint32_t *)dev->map)[64 * PAGE / 4] != 0x1000 + round;
	}
	tap_eq(bad, 0, "order: 64 dependent blocks in two submissions, 8 times");
	tap_eq(abi_queue_query(fd, q.id).completed, 16, "order: jobs completed");
	abi_queue_free(&q);
}

#define QUEUES 16
static void test_many_queues(int fd, struct abi_buf *dev)
{
	struct abi_queue q[QUEUES];
	struct drm_spyre_cb cb;
	uint32_t i, round, bad = 0;

	for (i = 0; i < QUEUES; i++)
		q[i] = abi_queue(fd, 0);
	for (round = 0; round < 32; round++)
		for (i = 0; i < QUEUES; i++) {
			cb = abi_cb_fill32(dev->va + i * PAGE, PAGE, round << 8 | i);
			bad += abi_submit(&q[i], &cb, 1, NULL) != 0;
		}
	for (i = 0; i < QUEUES; i++) {
		bad += abi_wait(&q[i], 30000) != 0;
		bad += ((uint32_t *)dev->map)[i * PAGE / 4] != (31 << 8 | i);
		bad += abi_queue_query(fd, q[i].id).completed != 32;
		abi_queue_free(&q[i]);
	}
	tap_eq(bad, 0, "queues: %u at once, 32 jobs each, the last job's value is left", QUEUES);
}

/* Work keeps the mappings that existed at its submission. */
static void test_unbind_behind_submit(int fd, struct abi_buf *dev)
{
	struct abi_prog p = abi_prog_add(1, 512);
	uint64_t args[3] = { dev->va, dev->va + MIB, dev->va + 2 * MIB };
	struct abi_queue q = abi_queue(fd, 60000);
	struct abi_buf a = abi_buf(fd, PAGE, DRM_SPYRE_BO_DEVICE, 900 * MIB);
	struct abi_buf b = abi_buf(fd, PAGE, DRM_SPYRE_BO_DEVICE, 0);
	struct drm_spyre_cb slow, cb = abi_cb_fill32(a.va, PAGE, 0x77777777);
	uint32_t program;

	/* Long enough that the job behind it has barely run when VM_BIND returns. */
	p.num_loops = 1;
	p.loops[0] = 1000;
	program = abi_prog_create(fd, &p);
	slow = abi_cb_exec(program, args, 3);
	tap_ret(abi_submit(&q, &slow, 1, NULL), 0, "VM_BIND behind SUBMIT: slow work");
	tap_ret(abi_submit(&q, &cb, 1, NULL), 0, "VM_BIND behind SUBMIT: a fill behind it");
	tap_ret(abi_bind(fd, b.handle, 0, a.va, PAGE, 0), 0,
		"VM_BIND behind SUBMIT: the mapping is replaced");
	tap_ret(abi_unbind(fd, a.va, PAGE), 0, "VM_BIND behind SUBMIT: the mapping is removed");
	tap_ret(abi_wait(&q, 30000), 0, "VM_BIND behind SUBMIT: the work completes");
	tap_eq(*(uint32_t *)a.map, 0x77777777, "VM_BIND behind SUBMIT: it wrote the old memory");
	tap_eq(*(uint32_t *)b.map, 0, "VM_BIND behind SUBMIT: it did not write the new memory");
	abi_prog_destroy(fd, program);
	abi_buf_free(fd, &a);
	abi_buf_free(fd, &b);
	abi_queue_free(&q);
}

static void test_refused_runs_nothing(int fd, struct abi_buf *dev)
{
	struct abi_queue q = abi_queue(fd, 0);
	struct drm_spyre_cb cbs[256];
	uint32_t i, error_cb = 0;

	memset(dev->map, 0, 256 * PAGE);
	for (i = 0; i < 256; i++)
		cbs[i] = abi_cb_fill32(dev->va + i * PAGE, PAGE, 1);
	cbs[255].dst = 0;
	tap_ret(abi_submit(&q, cbs, 256, &error_cb), -EFAULT,
		"refusal: the last of 256 blocks is invalid");
	tap_eq(error_cb, 255, "refusal: error_cb");
	abi_sleep_ms(50);
	for (i = 0; i < 256 && !((uint32_t *)dev->map)[i * PAGE / 4]; i++)
		;
	tap_eq(i, 256, "refusal: no block ran");
	tap_eq(abi_queue_query(fd, q.id).submitted, 0, "refusal: no job was queued");
	cbs[255].dst = dev->va;
	tap_ret(abi_run(&q, cbs, 256), 0, "refusal: with a valid last block all 256 run");
	abi_queue_free(&q);
}

int main(void)
{
	int fd = abi_open();
	uint64_t used = abi_memory(fd).used;
	struct abi_buf dev = abi_buf(fd, 4 * MIB, DRM_SPYRE_BO_DEVICE, 64 * MIB);

	test_timestamp(fd);
	test_fill(fd, &dev);
	test_copy(fd, &dev);
	test_dma(fd, &dev);
	test_boxes(fd);
	test_exec(fd, &dev);
	test_order(fd, &dev);
	test_many_queues(fd, &dev);
	test_sync(fd, &dev);
	test_unbind_behind_submit(fd, &dev);
	test_refused_runs_nothing(fd, &dev);
	abi_buf_free(fd, &dev);
	tap_ok(abi_memory_settles(fd, used), "all memory is back");
	return tap_done();
}
