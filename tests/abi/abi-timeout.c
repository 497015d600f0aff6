/* SPDX-License-Identifier: MIT */
/* A program that runs too long fails its own context and no other. */
#include "abi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xf86drm.h>

#include "prog.h"

#define VA (64 * MIB)
#define STICKS 1024u
#define MAX_FILLS 256
#define BYTES ((uint64_t)STICKS * STICK)

/* A file with a queue and a program whose result is known. */
struct worker {
	int fd;
	struct abi_queue queue;
	struct abi_buf mem;	/* out, a, b */
	uint32_t program;
	uint64_t args[3];
};

static struct worker worker_init(int fd)
{
	struct abi_prog prog = abi_prog_add(1, STICKS);
	struct worker w = { .fd = fd };
	uint16_t *in;
	uint32_t i;

	w.queue = abi_queue(fd, 10000);
	w.mem = abi_buf(fd, 3 * BYTES, DRM_SPYRE_BO_DEVICE, VA);
	w.program = abi_prog_create(fd, &prog);
	in = w.mem.map;
	for (i = 0; i < 3; i++)
		w.args[i] = VA + i * BYTES;
	for (i = 0; i < BYTES; i++)	/* a and b, two bytes each */
		in[BYTES / 2 + i] = abi_dl16((int)(i * 7 % 509) - 254);
	return w;
}

static void worker_free(struct worker *w)
{
	abi_prog_destroy(w->fd, w->program);
	abi_buf_free(w->fd, &w->mem);
	abi_queue_free(&w->queue);
}

/* Runs the sum; the bytes must equal those of @want, which the first run sets. */
static void worker_check(struct worker *w, uint8_t *want, bool first, const char *when)
{
	struct drm_spyre_cb cb = abi_cb_exec(w->program, w->args, 3);

	memset(w->mem.map, 0xee, BYTES);
	tap_ret(abi_run(&w->queue, &cb, 1), 0, "%s: work completes", when);
	if (first)
		memcpy(want, w->mem.map, BYTES);
	else
		tap_ok(!memcmp(want, w->mem.map, BYTES), "%s: the same bytes", when);
}

struct victim {
	int fd;
	struct abi_queue queue;
	struct abi_buf mem;
	uint32_t program;
	uint64_t args[3];
};

static struct victim victim_init(int fd, uint32_t timeout_ms)
{
	struct abi_prog prog = abi_prog_long();
	struct victim v = { .fd = fd };
	int i;

	v.queue = abi_queue(fd, timeout_ms);
	v.mem = abi_buf(fd, 3 * ABI_LONG_BYTES, DRM_SPYRE_BO_DEVICE, 512 * MIB);
	v.program = abi_prog_create(fd, &prog);
	for (i = 0; i < 3; i++)
		v.args[i] = v.mem.va + i * ABI_LONG_BYTES;
	return v;
}

static void test_queue_dies(struct victim *v)
{
	struct drm_spyre_cb cbs[3] = {
		abi_cb_timestamp(), abi_cb_exec(v->program, v->args, 3), abi_cb_timestamp(),
	};
	struct drm_spyre_cb_result *r = abi_results(&v->queue);
	struct drm_spyre_queue_query query;
	uint64_t start = abi_now_ns(), behind;
	struct drm_spyre_submit args = {
		.queue_id = v->queue.id,
		.cbs = { .stride = sizeof(cbs[0]), .count = 1, .array = PTR(&cbs[0]) },
		.result_handle = v->queue.results.handle,
		.result_offset = 8 * sizeof(*r),
	};

	memset(r, 0, 16 * sizeof(*r));
	tap_ret(abi_submit(&v->queue, cbs, 3, NULL), 0, "timeout: the long program is accepted");
	/* One more behind it, which never starts. */
	tap_ret(abi_ioctl(v->fd, DRM_IOCTL_SPYRE_SUBMIT, &args), 0,
		"timeout: a submission behind it is accepted");
	tap_ret(abi_wait(&v->queue, 30000), 0, "timeout: its fence signals");
	behind = (abi_now_ns() - start) / 1000000;
	tap_ok(behind >= 90 && behind < 10000, "timeout: it signals after %llu ms (limit 100)",
	       (unsigned long long)behind);
	tap_ret(r[0].status, 0, "timeout: the block before it succeeded");
	tap_eq(r[1].state, DRM_SPYRE_CB_DONE, "timeout: the long block has a result");
	tap_ret(r[1].status, -ETIME, "timeout: the long block reports ETIME");
	tap_eq(r[2].state, DRM_SPYRE_CB_DONE, "timeout: the block behind it has a result");
	tap_ret(r[2].status, -ECANCELED, "timeout: it reports ECANCELED");
	for (start = abi_now_ns(); abi_now_ns() - start < 5000000000ull;)
		if (__atomic_load_n(&r[8].state, __ATOMIC_ACQUIRE) == DRM_SPYRE_CB_DONE)
			break;
	tap_eq(r[8].state, DRM_SPYRE_CB_DONE, "timeout: the submission behind it has a result");
	tap_ret(r[8].status, -ECANCELED, "timeout: it reports ECANCELED");
	query = abi_queue_query(v->fd, v->queue.id);
	tap_eq(query.state, DRM_SPYRE_QUEUE_KILLED, "timeout: the queue is killed");
	tap_ret(query.error, -ETIME, "timeout: the queue's first error");
	tap_eq(query.submitted, 2, "timeout: submitted jobs");
	tap_eq(query.completed, 2, "timeout: completed jobs");
	tap_ret(abi_submit(&v->queue, cbs, 1, NULL), -ECANCELED, "timeout: the queue refuses work");
}

/* Modelled cycles are not host time: a program with almost no modelled cost is stopped as well. */
static void test_cheap(void)
{
	struct abi_prog prog = abi_prog_cheap();
	struct victim v = { .fd = abi_open() };
	struct drm_spyre_cb cb;

	v.queue = abi_queue(v.fd, 100);
	v.mem = abi_buf(v.fd, MIB, DRM_SPYRE_BO_DEVICE, VA);
	v.program = abi_prog_create(v.fd, &prog);
	v.args[0] = VA;
	v.args[1] = VA + STICK;
	cb = abi_cb_exec(v.program, v.args, 2);
	tap_ret(abi_submit(&v.queue, &cb, 1, NULL), 0, "cheap: the program is accepted");
	tap_ret(abi_wait(&v.queue, 10000), 0, "cheap: its fence signals");
	tap_ret(abi_results(&v.queue)->status, -ETIME, "cheap: it was stopped by its limit");
	abi_queue_free(&v.queue);
	abi_buf_free(v.fd, &v.mem);
	close(v.fd);
}

/* So is a transfer without any element within the bounds. */
static void test_padding(void)
{
	struct drm_spyre_dma dma = {
		.direction = DRM_SPYRE_DMA_D2H,
		.host_format = DRM_SPYRE_FORMAT_SENINT8,
		.device_format = DRM_SPYRE_FORMAT_SENINT8,
		.num_dims = 3,
		.num_bounds = 1,	/* limit 0 */
		.dim = { { .count = 512 * MIB, .host_stride = 2 }, { .count = 1 }, { .count = 1 } },
	};
	struct victim v = { .fd = abi_open() };
	struct drm_spyre_cb cb;
	uint64_t start;

	v.queue = abi_queue(v.fd, 100);
	v.mem = abi_buf(v.fd, 512 * MIB, DRM_SPYRE_BO_DEVICE, VA);
	cb = abi_cb_dma_bo(&dma, VA, v.queue.results.handle, 0, PAGE);
	tap_ret(abi_submit(&v.queue, &cb, 1, NULL), 0, "padding: the transfer is accepted");
	start = abi_now_ns();
	tap_ret(abi_wait(&v.queue, 60000), 0, "padding: its fence signals");
	tap_ok(abi_now_ns() - start < 5000000000ull, "padding: it ends within seconds");
	abi_queue_free(&v.queue);
	abi_buf_free(v.fd, &v.mem);
	close(v.fd);
}

/* Waiting for the scratchpads of another file's job does not count against the limit. */
static void test_lx(void)
{
	struct abi_prog slow = abi_prog_long(), quick = abi_prog_add(1, STICKS);
	struct victim v = { .fd = abi_open() }, w = { .fd = abi_open() };
	struct drm_spyre_cb cb, stamp = abi_cb_timestamp();
	struct abi_queue third;
	uint64_t start;
	int i;

	slow.lx_bytes = quick.lx_bytes = 2 * MIB;
	v.queue = abi_queue(v.fd, 1500);
	/* A third of the wait, and enough for the job on a processor that others use, too. */
	w.queue = abi_queue(w.fd, 500);
	third = abi_queue(w.fd, 500);
	v.mem = abi_buf(v.fd, 3 * ABI_LONG_BYTES, DRM_SPYRE_BO_DEVICE, VA);
	w.mem = abi_buf(w.fd, 3 * BYTES, DRM_SPYRE_BO_DEVICE, VA);
	v.program = abi_prog_create(v.fd, &slow);
	w.program = abi_prog_create(w.fd, &quick);
	for (i = 0; i < 3; i++) {
		v.args[i] = VA + i * ABI_LONG_BYTES;
		w.args[i] = VA + i * BYTES;
	}
	cb = abi_cb_exec(v.program, v.args, 3);
	tap_ret(abi_submit(&v.queue, &cb, 1, NULL), 0, "lx: a long program owns the scratchpads");
	abi_sleep_ms(50);
	cb = abi_cb_exec(w.program, w.args, 3);
	tap_ret(abi_submit(&third, &cb, 1, NULL), 0, "lx: another program waits for them");
	start = abi_now_ns();
	abi_queue_destroy(w.fd, third.id);
	tap_ok(abi_now_ns() - start < 1000000000ull, "lx: the waiting program can be destroyed");
	tap_ret(abi_submit(&w.queue, &cb, 1, NULL), 0, "lx: another file's job waits for them");
	tap_ret(abi_wait(&w.queue, 20000), 0, "lx: its fence signals");
	tap_ret(abi_results(&w.queue)->status, 0,
		"lx: it succeeds; waiting does not count against its limit");
	tap_ret(abi_run(&w.queue, &stamp, 1), 0, "lx: its queue accepts work");
	tap_ret(abi_wait(&v.queue, 20000), 0, "lx: the long program has ended");
	tap_ret(abi_results(&v.queue)->status, -ETIME, "lx: the long program reports ETIME");
	/* A mapping left behind would keep its file open. */
	munmap(third.results.map, third.results.size);
	abi_queue_free(&w.queue);
	abi_queue_free(&v.queue);
	abi_buf_free(w.fd, &w.mem);
	abi_buf_free(v.fd, &v.mem);
	close(w.fd);
	close(v.fd);
}

static uint64_t card_ns(struct abi_queue *q, uint32_t count)
{
	const struct drm_spyre_cb_result *r = abi_results(q);

	return r[count - 1].end_ns - r[0].start_ns;
}

/*
 * Runs @count fills of the whole buffer as one job; returns its execution time by
 * the card's clock.
 */
static uint64_t fill_ns(struct abi_queue *q, const struct abi_buf *mem, uint32_t count)
{
	struct drm_spyre_cb cb = abi_cb_fill32(mem->va, mem->size, 1), cbs[MAX_FILLS];
	uint32_t i;

	for (i = 0; i < count; i++)
		cbs[i] = cb;
	if (abi_run(q, cbs, count))
		tap_bail("fills");
	return card_ns(q, count);
}

/* Queues a job of @fills and three jobs behind it; returns true if its limit stopped it. */
static bool stopped_behind(struct victim *v, uint32_t fills, uint32_t limit_ms)
{
	struct drm_spyre_cb cbs[MAX_FILLS], stamp = abi_cb_timestamp();
	struct abi_queue behind;
	uint32_t i, bad = 0;
	int ret;

	for (i = 0; i < fills; i++)
		cbs[i] = abi_cb_fill32(v->mem.va, v->mem.size, i);
	tap_ret(abi_submit(&v->queue, cbs, fills, NULL), 0, "behind: a long job is accepted");
	/* Their results go elsewhere, since card_ns() reads those of the long job. */
	behind = v->queue;
	behind.results = abi_buf(v->fd, v->queue.results.size, DRM_SPYRE_BO_HOST, 0);
	for (i = 0; i < 3; i++) {
		abi_sleep_ms(limit_ms * 3 / 4);
		/* Refused once the job has been stopped. */
		ret = abi_submit(&behind, &stamp, 1, NULL);
		bad += ret && ret != -ECANCELED;
	}
	tap_eq(bad, 0, "behind: jobs are queued behind it");
	tap_ret(abi_wait(&behind, 60000), 0, "behind: its fence signals");
	abi_buf_free(v->fd, &behind.results);
	return abi_queue_query(v->fd, v->queue.id).error == -ETIME;
}

/*
 * A job two and a half times as long as its limit, and jobs that are queued behind
 * it before the previous one's timer has expired: they must not extend the limit.
 */
static void test_behind(void)
{
	struct victim v = { .fd = abi_open() };
	uint32_t limit_ms, fills;
	bool stopped;
	uint64_t one;

	v.queue = abi_queue(v.fd, 60000);
	v.mem = abi_buf(v.fd, 32 * MIB, DRM_SPYRE_BO_DEVICE, VA);
	fill_ns(&v.queue, &v.mem, 1);	/* the first use allocates memory */
	one = fill_ns(&v.queue, &v.mem, 4) / 4;
	/* At least 200 ms, or more if fills are slow: the submissions must be in time. */
	limit_ms = 200 + (uint32_t)(4 * one / 1000000);
	fills = (uint32_t)(limit_ms * 2500000ull / one) + 1;
	abi_queue_free(&v.queue);
	/* On a busy host the fills may be faster now than when they were measured. */
	do {
		fills = fills < MAX_FILLS ? fills : MAX_FILLS;
		v.queue = abi_queue(v.fd, limit_ms);
		stopped = stopped_behind(&v, fills, limit_ms);
		one = card_ns(&v.queue, fills);
		abi_queue_free(&v.queue);
		fills *= 3;
	} while (!stopped && one < limit_ms * 1000000ull && fills < 3 * MAX_FILLS);
	tap_ok(stopped, "behind: its limit of %u ms stopped it", limit_ms);
	abi_buf_free(v.fd, &v.mem);
	close(v.fd);
}

int main(void)
{
	int fd = abi_open(), other = abi_open();
	uint64_t used = abi_memory(fd).used;
	uint8_t *want = malloc(BYTES);
	struct worker same = worker_init(fd), apart = worker_init(other);
	struct victim v = victim_init(fd, 100);
	struct drm_spyre_card_info card = { 0 };
	struct drm_spyre_counters counters = { 0 };
	struct drm_spyre_dev_query query = { .size = sizeof(card), .pointer = PTR(&card) };
	struct drm_spyre_cb stamp = abi_cb_timestamp();
	uint64_t errors;

	worker_check(&same, want, true, "before, same file");
	worker_check(&apart, want, false, "before, other file");
	query = (struct drm_spyre_dev_query){ .type = DRM_SPYRE_DEV_QUERY_COUNTERS,
					      .size = sizeof(counters), .pointer = PTR(&counters) };
	abi_ioctl(fd, DRM_IOCTL_SPYRE_DEV_QUERY, &query);
	errors = counters.errors;
	test_queue_dies(&v);
	abi_ioctl(fd, DRM_IOCTL_SPYRE_DEV_QUERY, &query);
	tap_eq(counters.errors - errors, 2, "the card counted two failed jobs");
	tap_ret(abi_submit(&same.queue, &stamp, 1, NULL), -ECANCELED,
		"after, same file: its other queue refuses work");
	worker_check(&apart, want, false, "after, other file");
	tap_ret(abi_context_reset(fd, NULL), 0, "CONTEXT_RESET");
	abi_queue_free(&same.queue);
	same.queue = abi_queue(fd, 10000);
	worker_check(&same, want, false, "after the reset, same file, new queue");
	abi_queue_free(&v.queue);
	v.queue = abi_queue(fd, 100);
	test_queue_dies(&v);
	worker_check(&apart, want, false, "after the second, other file");
	test_cheap();
	test_padding();
	test_lx();
	test_behind();
	worker_check(&apart, want, false, "after the third, other file");
	worker_free(&same);
	worker_free(&apart);
	abi_queue_free(&v.queue);
	abi_prog_destroy(fd, v.program);
	abi_buf_free(fd, &v.mem);
	tap_ok(abi_memory_settles(fd, used), "all memory is back");
	free(want);
	return tap_done();
}
