/* SPDX-License-Identifier: MIT */
/* Submission through io_uring: the same jobs and errors, without a call per job. */
#include "config.h"

#include "abi.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <liburing.h>
#include <linux/dma-buf.h>
#include <xf86drm.h>

#include "dmabuf-peers.h"
#include "fence.h"
#include "prog.h"

#define VA (64 * MIB)
#define BATCH 64u

static struct io_uring ring;

static void ring_open(unsigned int flags)
{
	struct io_uring_params params = { .flags = flags };
	int ret = io_uring_queue_init_params(2 * BATCH, &ring, &params);

	if (ret == -EPERM || ret == -ENOSYS)
		tap_skip_all("io_uring is not available: %s", strerror(-ret));
	if (ret)
		tap_bail("io_uring_queue_init: %s", strerror(-ret));
}

static struct drm_spyre_submit submission(uint32_t queue, const struct drm_spyre_cb *cbs,
					  uint32_t count)
{
	return (struct drm_spyre_submit){
		.queue_id = queue,
		.cbs = { .stride = sizeof(*cbs), .count = count, .array = PTR(cbs) },
	};
}

static struct io_uring_sqe *push(int fd, const struct drm_spyre_submit *args, uint64_t data)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

	if (!sqe)
		tap_bail("the ring is full");
	memset(sqe, 0, ring.flags & IORING_SETUP_SQE128 ? 128 : 64);
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = fd;
	sqe->cmd_op = DRM_SPYRE_URING_SUBMIT;
	sqe->user_data = data;
	if (ring.flags & IORING_SETUP_SQE128)
		memcpy(sqe->cmd, args, sizeof(*args));
	return sqe;
}

/* Returns res of the next completion; sets *extra to its first extra word. */
static int reap(uint64_t *extra, uint64_t *data)
{
	struct io_uring_cqe *cqe;
	int ret = io_uring_wait_cqe(&ring, &cqe);

	if (ret)
		tap_bail("io_uring_wait_cqe: %s", strerror(-ret));
	ret = cqe->res;
	if (extra)
		*extra = ring.flags & IORING_SETUP_CQE32 ? cqe->big_cqe[0] : 0;
	if (data)
		*data = cqe->user_data;
	io_uring_cqe_seen(&ring, cqe);
	return ret;
}

static int one(int fd, const struct drm_spyre_submit *args, uint64_t *extra)
{
	push(fd, args, 1);
	io_uring_submit(&ring);
	return reap(extra, NULL);
}

static void test_jobs(int fd, struct abi_buf *dev, const char *how)
{
	struct abi_queue q = abi_queue(fd, 0);
	struct drm_spyre_cb cbs[BATCH];
	bool large = ring.flags & IORING_SETUP_CQE32;
	uint64_t extra = 0, data, seen = 0;
	struct drm_spyre_submit args;
	uint32_t i, bad = 0;

	cbs[0] = abi_cb_fill32(dev->va, MIB, 0x12345678);
	args = submission(q.id, cbs, 1);
	args.result_handle = q.results.handle;
	tap_ret(one(fd, &args, &extra), 0, "%s: a fill", how);
	tap_eq(*(uint32_t *)dev->map, 0x12345678, "%s: the fill is done when its CQE arrives", how);
	if (large) {
		tap_eq(extra, abi_results(&q)->cycles, "%s: the CQE has its cycles", how);
		tap_ok(extra > 0, "%s: they are not 0", how);
	}

	for (i = 0; i < BATCH; i++) {
		cbs[i] = abi_cb_fill32(dev->va + i * PAGE, PAGE, i);
		args = submission(q.id, &cbs[i], 1);
		push(fd, &args, i);
	}
	io_uring_submit(&ring);
	for (i = 0; i < BATCH; i++) {
		bad += reap(NULL, &data) != 0;
		seen |= 1ull << data;
	}
	tap_eq(bad, 0, "%s: 64 submissions with one call", how);
	tap_ok(seen == ~0ull, "%s: each has its own CQE", how);
	for (i = 0, bad = 0; i < BATCH; i++)
		bad += *(uint32_t *)((uint8_t *)dev->map + i * PAGE) != i;
	tap_eq(bad, 0, "%s: each did its work", how);
	tap_eq(abi_queue_query(fd, q.id).completed, BATCH + 1, "%s: the queue counted them", how);
	abi_queue_free(&q);
}

static void test_errors(int fd, struct abi_buf *dev)
{
	struct abi_queue q = abi_queue(fd, 0);
	struct drm_spyre_cb cbs[2] = {
		abi_cb_fill32(dev->va, PAGE, 1), abi_cb_fill32(dev->va, PAGE, 1)
	};
	struct drm_spyre_submit args = submission(NEVER, cbs, 2);
	uint64_t extra;
	struct io_uring_sqe *sqe;

	tap_ret(one(fd, &args, NULL), -ENOENT, "no such queue");
	args = submission(q.id, cbs, 2);
	args.flags = 1;
	tap_ret(one(fd, &args, NULL), -EINVAL, "unknown flag");
	args = submission(q.id, cbs, 2);
	cbs[1].size = 3;
	tap_ret(one(fd, &args, &extra), -EINVAL, "a bad control block");
	tap_eq(extra, 1, "the CQE has the index of the bad control block");
	args = submission(q.id, abi_hole(), 2);
	tap_ret(one(fd, &args, NULL), -EFAULT, "control blocks at an unmapped address");
	sqe = push(fd, &args, 1);
	sqe->cmd_op = 77;
	io_uring_submit(&ring);
	tap_ret(reap(NULL, NULL), -ENOTTY, "unknown command");
	tap_eq(abi_queue_query(fd, q.id).submitted, 0, "refused requests queue nothing");
	cbs[1] = cbs[0];
	args = submission(q.id, cbs, 2);
	sqe = push(fd, &args, 1);
	sqe->flags |= IOSQE_ASYNC;
	io_uring_submit(&ring);
	tap_ret(reap(NULL, NULL), 0, "submission by a worker of io_uring");
	abi_queue_free(&q);
}

static struct io_uring_sqe *push_queue(int fd, const struct drm_spyre_submit *args, uint64_t data)
{
	struct io_uring_sqe *sqe = push(fd, args, data);

	sqe->cmd_op = DRM_SPYRE_URING_QUEUE;
	return sqe;
}

static void test_fixed(int fd, struct abi_buf *dev)
{
	const uint64_t bytes = 3 * PAGE + 1024;
	struct abi_queue q = abi_queue(fd, 0);
	struct drm_spyre_dma down = abi_dma_raw(DRM_SPYRE_DMA_H2D, bytes);
	struct drm_spyre_dma up = abi_dma_raw(DRM_SPYRE_DMA_D2H, bytes);
	struct drm_spyre_submit args;
	struct drm_spyre_cb cbs[2];
	struct io_uring_sqe *sqe;
	struct iovec buffer = { .iov_len = 16 * PAGE };
	uint8_t *memory;
	uint32_t i, bad = 0;

	if (posix_memalign(&buffer.iov_base, PAGE, buffer.iov_len))
		tap_bail("no memory");
	memory = buffer.iov_base;
	for (i = 0; i < buffer.iov_len; i++)
		memory[i] = (uint8_t)(i * 7 + i / 251);
	if (io_uring_register_buffers(&ring, &buffer, 1))
		tap_bail("io_uring_register_buffers: %s", strerror(errno));

	/* Copies there and back, from the middle of a page to the middle of another. */
	cbs[0] = abi_cb_dma(&down, dev->va, memory + 512, bytes);
	cbs[1] = abi_cb_dma(&up, dev->va, memory + 8 * PAGE + 256, bytes);
	args = submission(q.id, cbs, 2);
	sqe = push(fd, &args, 1);
	sqe->rw_flags = IORING_URING_CMD_FIXED;
	sqe->buf_index = 0;
	io_uring_submit(&ring);
	tap_ret(reap(NULL, NULL), 0, "DMA from and to a registered buffer");
	for (i = 0; i < bytes; i++)
		bad += memory[8 * PAGE + 256 + i] != (uint8_t)((i + 512) * 7 + (i + 512) / 251);
	tap_eq(bad, 0, "the bytes of the round trip are the same");

	cbs[0].host_addr = PTR(memory + 13 * PAGE);
	sqe = push(fd, &args, 1);
	sqe->rw_flags = IORING_URING_CMD_FIXED;
	io_uring_submit(&ring);
	tap_ret(reap(NULL, NULL), -EFAULT, "a span that extends past the buffer");
	sqe = push(fd, &args, 1);
	sqe->rw_flags = IORING_URING_CMD_FIXED;
	sqe->buf_index = 1;
	io_uring_submit(&ring);
	tap_ret(reap(NULL, NULL), -EFAULT, "no such buffer");
	cbs[0].host_addr = PTR(memory + 512);
	sqe = push_queue(fd, &args, 7);
	sqe->rw_flags = IORING_URING_CMD_FIXED;
	io_uring_submit(&ring);
	tap_ret(reap(NULL, NULL), -EINVAL, "QUEUE with a registered buffer");
	io_uring_unregister_buffers(&ring);
	free(buffer.iov_base);
	abi_queue_free(&q);
}

/* QUEUE completes when the work is queued, and its ring owns none of it. */
static void test_queue(int fd, struct abi_buf *dev)
{
	struct abi_prog p = abi_prog_long();
	struct abi_queue q = abi_queue(fd, 60000), other = abi_queue(fd, 0);
	uint32_t program = abi_prog_create(fd, &p), i;
	uint64_t operands[3] = { dev->va, dev->va + ABI_LONG_BYTES, dev->va + 2 * ABI_LONG_BYTES };
	struct drm_spyre_cb exec = abi_cb_exec(program, operands, 3), cbs[3];
	struct drm_spyre_submit args = submission(q.id, &exec, 1);
	struct io_uring_cqe *cqe;
	struct io_uring_sqe *sqe;
	uint64_t extra, data;

	push_queue(fd, &args, 5);
	tap_eq(io_uring_submit(&ring), 1, "QUEUE of an endless job completes its request");
	tap_ret(io_uring_peek_cqe(&ring, &cqe), 0, "its CQE is available when the call returns");
	tap_ret(reap(&extra, &data), 0, "its CQE reports success");
	tap_ok(extra == 0 && data == 5, "its CQE has its user_data and no further result");
	tap_eq(abi_queue_query(fd, q.id).completed, 0, "the job runs");

	for (i = 0; i < 3; i++)
		cbs[i] = abi_cb_fill32(dev->va, PAGE, i);
	cbs[2].dst = 1ull << 33;
	args = submission(other.id, cbs, 3);
	push_queue(fd, &args, 6);
	io_uring_submit(&ring);
	tap_ret(reap(&extra, NULL), -EFAULT, "QUEUE of a bad control block");
	tap_eq(extra, 2, "its CQE has the index of the bad control block");
	sqe = push_queue(fd, &args, 8);
	sqe->cmd_op = DRM_SPYRE_URING_QUEUE + 1;
	io_uring_submit(&ring);
	tap_ret(reap(NULL, NULL), -ENOTTY, "no such command");

	io_uring_queue_exit(&ring);
	tap_ret(abi_queue_query(fd, q.id).error, 0, "the job outlives its ring");
	tap_eq(abi_queue_query(fd, q.id).completed, 0, "it is still running");
	abi_queue_free(&q);
	abi_queue_free(&other);
	abi_prog_destroy(fd, program);
	ring_open(IORING_SETUP_SQE128 | IORING_SETUP_CQE32);
}

/* --- imported buffers that another driver uses --- */
#define HELD_UP 3		/* submissions, for one worker */

struct opener {
	struct abi_gate *gate;
	pthread_t thread;
	atomic_bool opened;
};

static void *open_later(void *arg)
{
	struct opener *opener = arg;

	abi_sleep_ms(500);
	atomic_store(&opener->opened, true);
	abi_gate_open(opener->gate);
	return NULL;
}

/* The gate's job appears to write the buffer. */
static void let_write(const struct peer *peer, const struct abi_gate *gate)
{
	struct dma_buf_import_sync_file args = {
		.flags = DMA_BUF_SYNC_WRITE, .fd = abi_sync_file(gate->fd, gate->syncobj),
	};

	if (ioctl(peer->fd, DMA_BUF_IOCTL_IMPORT_SYNC_FILE, &args))
		tap_bail("DMA_BUF_IOCTL_IMPORT_SYNC_FILE: %s", strerror(errno));
	close(args.fd);
}

/* Submissions that must wait for the buffer do not delay other work. */
static void held_up(int fd, struct abi_buf *dev, struct peer *peer, uint32_t handle, uint32_t op)
{
	const char *how = op == DRM_SPYRE_URING_QUEUE ? "imported, QUEUE" : "imported";
	struct drm_spyre_dma up = abi_dma_raw(DRM_SPYRE_DMA_H2D, PAGE);
	struct drm_spyre_cb cb = abi_cb_dma_bo(&up, dev->va, handle, 0, PAGE);
	struct drm_spyre_cb stamp = abi_cb_timestamp();
	struct abi_queue q = abi_queue(fd, 0), other = abi_queue(fd, 0);
	struct drm_spyre_submit args = submission(q.id, &cb, 1);
	struct abi_gate gate = abi_gate();
	struct opener opener = { .gate = &gate };
	uint64_t data = 0, seen = 0, word = 0x1000 + op;
	int i;

	let_write(peer, &gate);
	*(uint64_t *)dev->map = 0;
	pthread_create(&opener.thread, NULL, open_later, &opener);
	for (i = 0; i < HELD_UP; i++)
		push(fd, &args, (uint64_t)i)->cmd_op = op;
	io_uring_submit(&ring);
	tap_ok(!atomic_load(&opener.opened), "%s: io_uring_enter() does not wait for the fence", how);
	/* The worker must not read the bytes that user space writes now, neither now nor later. */
	memset(ring.sq.sqes, 0xff, 2 * BATCH * 128);
	args = submission(other.id, &stamp, 1);
	push(fd, &args, HELD_UP);
	io_uring_submit(&ring);
	tap_ret(reap(NULL, &data), 0, "%s: the ring accepts other requests", how);
	tap_ok(data == HELD_UP && !atomic_load(&opener.opened),
	       "%s: the fence is still unsignalled", how);
	tap_eq(abi_queue_query(fd, q.id).submitted, 0, "%s: nothing is queued yet", how);
	*(uint64_t *)peer->map = word;
	pthread_join(opener.thread, NULL);
	for (i = 0; i < HELD_UP; i++) {
		tap_ret(reap(NULL, &data), 0,
			"%s: the fence signals, submission %d is queued", how, i);
		seen |= 1ull << data;
	}
	tap_eq(seen, (1ull << HELD_UP) - 1, "%s: each CQE reports success", how);
	for (i = 0; i < 20000 && abi_queue_query(fd, q.id).completed < HELD_UP; i++)
		abi_sleep_ms(1);
	tap_eq(abi_queue_query(fd, q.id).completed, HELD_UP, "%s: all jobs complete", how);
	tap_eq(*(uint64_t *)dev->map, word, "%s: it reads the last write", how);
	abi_queue_free(&q);
	abi_queue_free(&other);
	abi_gate_free(&gate);
}

/* The ring is closed while a worker waits. */
static void exit_held_up(int fd, struct abi_buf *dev, struct peer *peer, uint32_t handle)
{
	struct drm_spyre_dma up = abi_dma_raw(DRM_SPYRE_DMA_H2D, PAGE);
	struct drm_spyre_cb cb = abi_cb_dma_bo(&up, dev->va, handle, 0, PAGE);
	struct abi_queue q = abi_queue(fd, 0);
	struct drm_spyre_submit args = submission(q.id, &cb, 1);
	struct abi_gate gate = abi_gate();
	uint64_t start = abi_now_ns();

	let_write(peer, &gate);
	push(fd, &args, 7);
	io_uring_submit(&ring);
	abi_sleep_ms(100);
	io_uring_queue_exit(&ring);
	tap_ok(abi_now_ns() - start < 5000000000ull, "imported: the ring ends while a worker waits");
	abi_sleep_ms(300);
	abi_gate_free(&gate);
	abi_sleep_ms(100);
	tap_eq(abi_queue_query(fd, q.id).submitted, 0,
	       "imported: the waiting request queues nothing");
	abi_queue_free(&q);
	ring_open(IORING_SETUP_SQE128 | IORING_SETUP_CQE32);
}

static void test_imported(int fd, struct abi_buf *dev)
{
	unsigned int workers[2] = { 1, 1 };
	struct peer peer;
	uint32_t handle = 0;

	if (peer_heap(&peer, PAGE) && peer_udmabuf(&peer, PAGE) && peer_vgem(&peer, PAGE)) {
		tap_skip("no driver to import from", "imported buffers");
		return;
	}
	if (drmPrimeFDToHandle(fd, peer.fd, &handle))
		tap_bail("PRIME import: %s", strerror(errno));
	/* The second one waits for the first one's worker, its SQE long overwritten. */
	if (io_uring_register_iowq_max_workers(&ring, workers))
		tap_bail("io_uring_register_iowq_max_workers");
	held_up(fd, dev, &peer, handle, DRM_SPYRE_URING_SUBMIT);
	held_up(fd, dev, &peer, handle, DRM_SPYRE_URING_QUEUE);
	exit_held_up(fd, dev, &peer, handle);
	abi_gem_close(fd, handle);
	peer_free(&peer);
}

/* A ring with hours of work in flight can be closed soon. */
static void test_exit(int fd, struct abi_buf *dev)
{
	struct abi_prog p = abi_prog_long();
	struct abi_queue q = abi_queue(fd, 60000), other = abi_queue(fd, 0);
	uint32_t program = abi_prog_create(fd, &p);
	uint64_t args[3] = { dev->va, dev->va + ABI_LONG_BYTES, dev->va + 2 * ABI_LONG_BYTES };
	struct drm_spyre_cb cb = abi_cb_exec(program, args, 3), stamp = abi_cb_timestamp();
	struct drm_spyre_submit submit = submission(q.id, &cb, 1);
	uint64_t start;

	push(fd, &submit, 1);
	io_uring_submit(&ring);
	abi_sleep_ms(100);
	start = abi_now_ns();
	io_uring_queue_exit(&ring);
	while (abi_queue_query(fd, q.id).completed < 1 && abi_now_ns() - start < 20000000000ull)
		abi_sleep_ms(10);
	tap_eq(abi_queue_query(fd, q.id).completed, 1, "a ring that ends stops its work");
	tap_ok(abi_now_ns() - start < 10000000000ull,
	       "the work ends long before the queue's limit");
	tap_ret(abi_queue_query(fd, q.id).error, -ECANCELED, "its queue reports the cancellation");
	tap_ret(abi_run(&other, &stamp, 1), 0, "another queue continues");
	abi_prog_destroy(fd, program);
	abi_queue_free(&other);
	abi_queue_free(&q);
}

int main(void)
{
	int fd = abi_open();
	uint64_t used = abi_memory(fd).used;
	struct abi_buf dev = abi_buf(fd, 4 * MIB, DRM_SPYRE_BO_DEVICE, VA);
	struct drm_spyre_cb stamp = abi_cb_timestamp();
	struct drm_spyre_submit args = submission(1, &stamp, 1);

	ring_open(0);
	tap_ret(one(fd, &args, NULL), -EINVAL, "a ring of small SQEs");
	io_uring_queue_exit(&ring);
	ring_open(IORING_SETUP_SQE128);
	test_jobs(fd, &dev, "small CQEs");
	io_uring_queue_exit(&ring);
	ring_open(IORING_SETUP_SQE128 | IORING_SETUP_CQE32 | IORING_SETUP_SQPOLL);
	test_jobs(fd, &dev, "SQPOLL");
	io_uring_queue_exit(&ring);
	ring_open(IORING_SETUP_SQE128 | IORING_SETUP_CQE32);
	test_jobs(fd, &dev, "large CQEs");
	test_errors(fd, &dev);
	test_fixed(fd, &dev);
	test_queue(fd, &dev);
	test_imported(fd, &dev);
	test_exit(fd, &dev);
	abi_buf_free(fd, &dev);
	tap_ok(abi_memory_settles(fd, used), "all memory is back");
	return tap_done();
}
