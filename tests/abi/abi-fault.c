/* SPDX-License-Identifier: MIT */
/*
 * A context that fails is marked, refuses work and recovers by CONTEXT_RESET; the
 * data of other contexts does not change.
 */
#include "config.h"

#include "abi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xf86drm.h>
#ifdef HAVE_LIBURING
#include <liburing.h>
#endif

#include "prog.h"

#define VA (64 * MIB)
#define STICKS 1024u
#define BYTES ((uint64_t)STICKS * STICK)
#define LONG_VA (512 * MIB)

/* A file with a sum whose result is known, and work that takes hours. */
struct ctx {
	int fd;
	struct abi_queue queue;
	struct abi_buf mem, long_mem;
	uint32_t sum, forever;
	uint64_t args[3], long_args[3];
};

static struct ctx ctx_open(void)
{
	struct abi_prog sum = abi_prog_add(1, STICKS), forever = abi_prog_long();
	struct ctx c = { .fd = abi_open() };
	uint16_t *in;
	uint32_t i;

	c.queue = abi_queue(c.fd, 10000);
	c.mem = abi_buf(c.fd, 3 * BYTES, DRM_SPYRE_BO_DEVICE, VA);
	c.long_mem = abi_buf(c.fd, 3 * ABI_LONG_BYTES, DRM_SPYRE_BO_DEVICE, LONG_VA);
	c.sum = abi_prog_create(c.fd, &sum);
	c.forever = abi_prog_create(c.fd, &forever);
	in = c.mem.map;
	for (i = 0; i < 3; i++) {
		c.args[i] = VA + i * BYTES;
		c.long_args[i] = LONG_VA + i * ABI_LONG_BYTES;
	}
	for (i = 0; i < BYTES; i++)	/* two bytes each */
		in[BYTES / 2 + i] = abi_dl16((int)(i * 11 % 509) - 254);
	return c;
}

static void ctx_close(struct ctx *c)
{
	munmap(c->queue.results.map, c->queue.results.size);
	munmap(c->mem.map, c->mem.size);
	munmap(c->long_mem.map, c->long_mem.size);
	close(c->fd);
}

static struct drm_spyre_cb sum(struct ctx *c)
{
	return abi_cb_exec(c->sum, c->args, 3);
}

static struct drm_spyre_cb forever(struct ctx *c)
{
	return abi_cb_exec(c->forever, c->long_args, 3);
}

/* The bytes of the sum must equal those of @want, which the first call sets. */
static void ctx_check(struct ctx *c, uint8_t *want, bool first, const char *when)
{
	struct drm_spyre_cb cb = sum(c);

	memset(c->mem.map, 0xee, BYTES);
	tap_ret(abi_run(&c->queue, &cb, 1), 0, "%s: the sum runs", when);
	if (first)
		memcpy(want, c->mem.map, BYTES);
	else
		tap_ok(!memcmp(want, c->mem.map, BYTES), "%s: the same bytes", when);
}

static void test_query(void)
{
	struct drm_spyre_context_info *info = abi_guard(sizeof(*info)), now;
	struct drm_spyre_dev_query query = { .type = DRM_SPYRE_DEV_QUERY_CONTEXT };
	struct ctx c = ctx_open();
	struct drm_spyre_cb cb = sum(&c);
	uint64_t used;

	tap_ret(abi_ioctl(c.fd, DRM_IOCTL_SPYRE_DEV_QUERY, &query), 0, "query: the size");
	tap_eq(query.size, sizeof(*info), "query: it is the size of the struct");
	query.pointer = PTR(info);
	tap_ret(abi_ioctl(c.fd, DRM_IOCTL_SPYRE_DEV_QUERY, &query), 0,
		"query: a struct at a page's end");
	tap_ok(info->id > 0, "query: the context has an id");
	tap_eq(info->state, DRM_SPYRE_CONTEXT_OK, "query: a new context is not faulted");
	tap_ok(!info->error && !info->fault && !info->fault_queue && !info->fault_job &&
	       !info->fault_cb && !info->fault_ns, "query: a new context has no fault record");
	tap_eq(info->num_queues, 1, "query: it counts one queue");
	tap_ok(!info->jobs && !info->errors && !info->cycles && !info->busy_ns && !info->macs &&
	       !info->bytes_read && !info->bytes_written && !info->preempted,
	       "query: no completed job is counted");
	used = info->memory_used;
	tap_ok(used >= c.mem.size + c.long_mem.size, "query: its memory is counted (%llu)",
	       (unsigned long long)used);
	tap_ret(abi_run(&c.queue, &cb, 1), 0, "query: a job completes");
	now = abi_context(c.fd);
	tap_eq(now.jobs, 1, "query: the job is counted");
	tap_eq(now.errors, 0, "query: it is not counted as failed");
	tap_eq(now.cycles, abi_results(&c.queue)->cycles, "query: its cycles are counted");
	tap_eq(now.bytes_read, 2 * BYTES, "query: its bytes read are counted");
	tap_eq(now.bytes_written, BYTES, "query: its bytes written are counted");
	tap_ok(now.busy_ns > 0, "query: its time is counted");
	tap_eq(now.id, info->id, "query: the id is unchanged");
	ctx_close(&c);
	abi_guard_free(info, sizeof(*info));
}

/* The calls that a faulted context still accepts, and those that it refuses. */
static void test_refusals(struct ctx *c, struct abi_queue *sibling)
{
	struct drm_spyre_cb stamp = abi_cb_timestamp();
	struct abi_prog prog = abi_prog_add(1, 1);
	uint32_t id = 0, handle, program;
	struct abi_buf extra;

	tap_ret(abi_submit(sibling, &stamp, 1, NULL), -ECANCELED,
		"faulted: the other queue refuses work");
	tap_eq(abi_queue_query(c->fd, sibling->id).state, DRM_SPYRE_QUEUE_KILLED,
	       "faulted: the other queue is killed");
	tap_ret(abi_queue_query(c->fd, sibling->id).error, -ECANCELED,
		"faulted: its error is ECANCELED");
	tap_ret(abi_queue_create(c->fd, 0, 0, &id), -ECANCELED, "faulted: QUEUE_CREATE is refused");
	tap_eq(id, 0, "faulted: no id is written");
	tap_ret(abi_bo(c->fd, PAGE, DRM_SPYRE_BO_HOST, &handle), 0, "faulted: BO_CREATE works");
	abi_gem_close(c->fd, handle);
	extra = abi_buf(c->fd, PAGE, DRM_SPYRE_BO_DEVICE, 1ull << 33);
	tap_ret(abi_unbind(c->fd, 1ull << 33, PAGE), 0, "faulted: VM_BIND works");
	abi_buf_free(c->fd, &extra);
	program = abi_prog_create(c->fd, &prog);
	tap_ret(abi_prog_destroy(c->fd, program), 0, "faulted: PROGRAM_CREATE works");
}

#ifdef HAVE_LIBURING
static void test_uring(struct ctx *c, struct abi_queue *sibling)
{
	struct io_uring_params params = { .flags = IORING_SETUP_SQE128 | IORING_SETUP_CQE32 };
	struct drm_spyre_cb stamp = abi_cb_timestamp();
	struct drm_spyre_submit args = {
		.queue_id = sibling->id,
		.cbs = { .stride = sizeof(stamp), .count = 1, .array = PTR(&stamp) },
	};
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
	struct io_uring ring;
	int ret;

	ret = io_uring_queue_init_params(4, &ring, &params);
	if (ret) {
		tap_skip(strerror(-ret), "faulted: io_uring");
		return;
	}
	sqe = io_uring_get_sqe(&ring);
	if (!sqe)
		tap_bail("the ring is full");
	memset(sqe, 0, 128);
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = c->fd;
	sqe->cmd_op = DRM_SPYRE_URING_SUBMIT;
	memcpy(sqe->cmd, &args, sizeof(args));
	io_uring_submit(&ring);
	if (io_uring_wait_cqe(&ring, &cqe))
		tap_bail("io_uring_wait_cqe");
	tap_ret(cqe->res, -ECANCELED, "faulted: io_uring returns the error of SUBMIT");
	io_uring_cqe_seen(&ring, cqe);
	io_uring_queue_exit(&ring);
}
#else
static void test_uring(struct ctx *c, struct abi_queue *sibling)
{
	(void)c;
	(void)sibling;
	tap_skip("built without liburing", "faulted: io_uring");
}
#endif

static void test_mark(const struct drm_spyre_context_info *info, uint32_t queue, uint64_t before)
{
	tap_eq(info->state, DRM_SPYRE_CONTEXT_FAULTED, "record: the context is faulted");
	tap_eq(info->fault, DRM_SPYRE_FAULT_TIMEOUT, "record: the kind is timeout");
	tap_ret(info->error, -ETIME, "record: errno");
	tap_eq(info->fault_queue, queue, "record: queue");
	tap_eq(info->fault_job, 2, "record: second job");
	tap_eq(info->fault_cb, 1, "record: second control block");
	tap_ok(info->fault_ns > before && info->fault_ns <= abi_now_ns(), "record: time");
}

static void test_fault(struct ctx *other, uint8_t *want)
{
	struct ctx c = ctx_open();
	struct abi_queue late = abi_queue(c.fd, 100), sibling = abi_queue(c.fd, 0);
	struct drm_spyre_cb stamp = abi_cb_timestamp(), cbs[3] = { stamp, forever(&c), stamp };
	struct drm_spyre_cb_result *r = abi_results(&late);
	struct drm_spyre_sync after, none = { 0 };
	struct drm_spyre_context_info info;
	uint64_t before = abi_now_ns();
	uint32_t queues = 0;

	ctx_check(&c, want, false, "before");
	tap_ret(abi_submit(&late, &stamp, 1, NULL), 0, "a short job");
	memset(abi_results(&sibling), 0, sizeof(*r));
	tap_ret(abi_submit(&late, cbs, 3, NULL), 0, "a job that runs for hours");
	after = (struct drm_spyre_sync){ .handle = late.syncobj, .point = late.point };
	tap_ret(abi_submit_sync(&sibling, &stamp, 1, after, none), 0,
		"a job of another queue waits for its fence");
	ctx_check(other, want, false, "meanwhile, other context");
	tap_ret(abi_wait(&late, 20000), 0, "the fence of the long job signals");
	tap_ret(r[0].status, 0, "the block before it succeeded");
	tap_ret(r[1].status, -ETIME, "the block past the limit reports ETIME");
	tap_ret(r[2].status, -ECANCELED, "the block behind it reports ECANCELED");
	tap_ret(abi_wait(&sibling, 20000), 0, "the other queue's fence signals");
	tap_ret(abi_results(&sibling)->status, -ECANCELED,
		"the job of the other queue reports ECANCELED");
	info = abi_context(c.fd);
	test_mark(&info, late.id, before);
	test_refusals(&c, &sibling);
	test_uring(&c, &sibling);
	ctx_check(other, want, false, "after, other context");

	tap_ret(abi_context_reset(c.fd, &queues), 0, "CONTEXT_RESET");
	tap_eq(queues, 3, "CONTEXT_RESET: reports three dead queues");
	tap_eq(abi_context(c.fd).state, DRM_SPYRE_CONTEXT_OK,
	       "CONTEXT_RESET: the context is no longer faulted");
	tap_eq(abi_context(c.fd).fault, DRM_SPYRE_FAULT_NONE,
	       "CONTEXT_RESET: the fault record is cleared");
	tap_eq(abi_context(c.fd).errors, 2, "CONTEXT_RESET: two failed jobs stay counted");
	tap_ret(abi_submit(&c.queue, &stamp, 1, NULL), -ECANCELED, "CONTEXT_RESET: queues stay dead");
	abi_queue_free(&c.queue);
	abi_queue_free(&late);
	abi_queue_free(&sibling);
	c.queue = abi_queue(c.fd, 0);
	ctx_check(&c, want, false, "after CONTEXT_RESET, new queue, old program and memory");
	ctx_close(&c);
}

static void test_reset(void)
{
	struct drm_spyre_context_reset args = { .flags = 1 };
	struct ctx c = ctx_open();
	struct drm_spyre_cb cb = forever(&c), stamp = abi_cb_timestamp();
	uint32_t queues = 0;
	uint64_t start;

	tap_ret(abi_ioctl(c.fd, DRM_IOCTL_SPYRE_CONTEXT_RESET, &args), -EINVAL, "reset: unknown flag");
	tap_ret(abi_run(&c.queue, &stamp, 1), 0, "reset: the refused call changed nothing");
	memset(abi_results(&c.queue), 0, 64);
	abi_submit(&c.queue, &cb, 1, NULL);
	abi_submit(&c.queue, &stamp, 1, NULL);
	abi_sleep_ms(20);
	start = abi_now_ns();
	tap_ret(abi_context_reset(c.fd, &queues), 0, "reset: of a context with work for hours");
	tap_ok(abi_now_ns() - start < 5000000000ull, "reset: does not wait for the work");
	tap_eq(queues, 1, "reset: reports one dead queue");
	tap_ret(abi_wait(&c.queue, 5000), 0, "reset: the fences of the work signal");
	tap_ret(abi_results(&c.queue)->status, -ECANCELED, "reset: the work was cancelled");
	tap_eq(abi_context(c.fd).state, DRM_SPYRE_CONTEXT_OK,
	       "reset: a cancelled job does not count as a fault of the context");
	abi_queue_free(&c.queue);
	tap_ret(abi_context_reset(c.fd, &queues), 0, "reset: of a context without queues");
	tap_eq(queues, 0, "reset: reports no dead queue");
	c.queue = abi_queue(c.fd, 0);
	tap_ret(abi_run(&c.queue, &stamp, 1), 0, "reset: new work completes");
	ctx_close(&c);
}

/* Work that is cancelled on purpose is not a fault of any context. */
static void test_cancelled(void)
{
	struct ctx c = ctx_open();
	struct abi_queue q = abi_queue(c.fd, 0);
	struct drm_spyre_cb cb = forever(&c), stamp = abi_cb_timestamp();

	abi_submit(&q, &cb, 1, NULL);
	abi_sleep_ms(20);
	abi_queue_free(&q);
	tap_eq(abi_context(c.fd).state, DRM_SPYRE_CONTEXT_OK,
	       "cancelled: QUEUE_DESTROY causes no fault");
	tap_ret(abi_run(&c.queue, &stamp, 1), 0, "cancelled: other queues continue");
	ctx_close(&c);
}

/* A program that exceeds its limit again and again does not leak memory. */
static void test_again(uint64_t used, int fd)
{
	struct ctx c = ctx_open();
	struct drm_spyre_cb cb = forever(&c);
	struct abi_queue q;
	int i, bad = 0;

	for (i = 0; i < 10; i++) {
		q = abi_queue(c.fd, 10);
		bad += abi_submit(&q, &cb, 1, NULL) || abi_wait(&q, 20000);
		bad += abi_results(&q)->status != -ETIME;
		abi_queue_free(&q);
		bad += abi_context(c.fd).fault_job != 1 || abi_context_reset(c.fd, NULL);
	}
	tap_eq(bad, 0, "ten faults and resets in a row");
	ctx_close(&c);
	tap_ok(abi_memory_settles(fd, used), "all memory is back");
}

int main(void)
{
	int fd = abi_open();
	uint64_t used = abi_memory(fd).used;
	uint8_t *want = malloc(BYTES);
	struct ctx other = ctx_open();

	test_query();
	ctx_check(&other, want, true, "at first");
	test_fault(&other, want);
	test_reset();
	test_cancelled();
	ctx_check(&other, want, false, "at last");
	tap_eq(abi_context(other.fd).errors, 0, "the other context never failed");
	ctx_close(&other);
	test_again(used, fd);
	free(want);
	return tap_done();
}
