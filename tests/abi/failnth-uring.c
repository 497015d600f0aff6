/* SPDX-License-Identifier: MIT */
/* A submission through io_uring whose allocations fail in turn. */
#include "config.h"

#include "failnth.h"

#include <errno.h>
#include <string.h>

#ifdef ABI_URING
#include <liburing.h>

static struct io_uring ring;
static bool have_ring;

/* A failed io_uring_enter() leaves its entry in the ring, so each call has its own ring. */
static void prepare_ring(struct fail_ctx *c)
{
	struct io_uring_params params = { .flags = IORING_SETUP_SQE128 | IORING_SETUP_CQE32 };
	int ret = io_uring_queue_init_params(4, &ring, &params);

	(void)c;
	have_ring = !ret;
	if (ret && ret != -EPERM && ret != -ENOSYS)
		tap_bail("io_uring_queue_init: %s", strerror(-ret));
}

static int call_uring(struct fail_ctx *c)
{
	struct drm_spyre_dma down = abi_dma_raw(DRM_SPYRE_DMA_H2D, PAGE);
	struct drm_spyre_cb cbs[2] = {
		abi_cb_fill32(FAIL_VA, FAIL_BYTES, c->round),
		abi_cb_dma(&down, FAIL_VA + PAGE, c->user + 100, PAGE),
	};
	struct drm_spyre_sync done = {
		.handle = c->queue.syncobj,
		.flags = DRM_SPYRE_SYNC_SIGNAL,
		.point = c->queue.point + 1,
	};
	struct drm_spyre_submit args = {
		.queue_id = c->queue.id,
		.cbs = { .stride = sizeof(cbs[0]), .count = 2, .array = PTR(cbs) },
		.syncs = { .stride = sizeof(done), .count = 1, .array = PTR(&done) },
		.result_handle = c->queue.results.handle,
	};
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
	int ret;

	if (!have_ring)
		return -EOPNOTSUPP;
	sqe = io_uring_get_sqe(&ring);
	if (!sqe)
		tap_bail("the ring is full");
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = c->fd;
	sqe->cmd_op = DRM_SPYRE_URING_SUBMIT;
	memcpy(sqe->cmd, &args, sizeof(args));
	ret = io_uring_submit(&ring);
	if (ret != 1)
		return ret < 0 ? ret : -EAGAIN;
	do
		ret = io_uring_wait_cqe(&ring, &cqe);
	while (ret == -EINTR || ret == -ENOMEM || ret == -EFAULT || ret == -EAGAIN);
	if (ret)
		return ret;
	ret = cqe->res;
	io_uring_cqe_seen(&ring, cqe);
	if (!ret)
		c->queue.point++;
	return ret;
}

static void release_ring(struct fail_ctx *c)
{
	(void)c;
	if (have_ring)
		io_uring_queue_exit(&ring);
}

const struct fail_call fail_uring_calls[] = {
	{ "uring_cmd", prepare_ring, call_uring, NULL, release_ring, false },
	{ 0 }
};
#else
const struct fail_call fail_uring_calls[] = { { 0 } };
#endif
