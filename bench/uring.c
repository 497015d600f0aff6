// SPDX-License-Identifier: MIT
/*
 * Submissions by io_uring, straight on the node: against an ioctl that does
 * nothing, and against as many NOPs through the same ring, which is what the
 * ring itself costs.
 */
#include "config.h"

#include "bench/bench.h"

#include <stdio.h>

#ifdef HAVE_LIBURING
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <liburing.h>
#include <xf86drm.h>

#include <uapi/drm/spyre_accel.h>

#define ENTRIES 64
#define ROUNDS 20

struct uring {
	struct io_uring ring;
	int fd;
	struct drm_spyre_submit submit;
	struct drm_spyre_cb cb[64];
	uint32_t op;		/* DRM_SPYRE_URING_* */
	int batch;		/* entries for one call */
};

static void prepare(struct uring *u, struct io_uring_sqe *sqe, bool nop)
{
	memset(sqe, 0, 2 * sizeof(*sqe));
	if (nop) {
		sqe->opcode = IORING_OP_NOP;
		return;
	}
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = u->fd;
	sqe->cmd_op = u->op;
	memcpy(sqe->cmd, &u->submit, sizeof(u->submit));
}

/* Hands a batch in and takes its answers. */
static bool one_batch(struct uring *u, bool nop)
{
	struct io_uring_cqe *cqe;
	int ret;

	for (int i = 0; i < u->batch; i++) {
		struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);

		/* A polling thread answers before it gives the entries back. */
		while (!sqe) {
			io_uring_sqring_wait(&u->ring);
			sqe = io_uring_get_sqe(&u->ring);
		}
		prepare(u, sqe, nop);
	}
	ret = io_uring_submit(&u->ring);
	for (int i = 0; i < u->batch && ret >= 0; i++) {
		ret = io_uring_wait_cqe(&u->ring, &cqe);
		if (ret < 0)
			break;
		ret = cqe->res;
		io_uring_cqe_seen(&u->ring, cqe);
	}
	if (ret < 0)
		fprintf(stderr, "spyre-bench: io_uring: %s\n", strerror(-ret));
	return ret >= 0;
}

/* An in-order queue: what waits for this is what waits for all before it. */
static bool settle(struct uring *u)
{
	const uint32_t op = u->op;
	const int batch = u->batch;
	bool ok;

	u->op = DRM_SPYRE_URING_SUBMIT;
	u->batch = 1;
	ok = one_batch(u, false);
	u->op = op;
	u->batch = batch;
	return ok;
}

static double run_batches(struct uring *u, bool nop)
{
	double took = 0, start;

	for (int i = 0; i < ROUNDS; i++) {
		start = bench_now();
		if (!one_batch(u, nop))
			return -1;
		took += bench_now() - start;
		if (!nop && u->op == DRM_SPYRE_URING_QUEUE && !settle(u))
			return -1;
	}
	return took / ROUNDS / u->batch;
}

static double run_submit(void *state)
{
	return run_batches(state, false);
}

static double run_nop(void *state)
{
	return run_batches(state, true);
}

static double run_empty(void *state)
{
	struct uring *u = state;
	const double start = bench_now();

	for (int i = 0; i < 1000; i++) {
		struct drm_spyre_dev_query query = { .type = DRM_SPYRE_DEV_QUERY_CARD };

		if (drmIoctl(u->fd, DRM_IOCTL_SPYRE_DEV_QUERY, &query))
			return -1;
	}
	return (bench_now() - start) / 1000;
}

static bool open_all(struct uring *u, const char *node, bool polled)
{
	struct drm_spyre_queue_create queue = { .priority = DRM_SPYRE_PRIORITY_LOW };
	struct io_uring_params params = {
		.flags = IORING_SETUP_SQE128 | IORING_SETUP_CQE32 |
			 (polled ? IORING_SETUP_SQPOLL : 0),
		.sq_thread_idle = 100,
	};
	int ret;

	u->fd = open(node, O_RDWR | O_CLOEXEC);
	if (u->fd < 0 || drmIoctl(u->fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, &queue)) {
		fprintf(stderr, "spyre-bench: cannot use %s: %s\n", node, strerror(errno));
		return false;
	}
	ret = io_uring_queue_init_params(ENTRIES, &u->ring, &params);
	if (ret) {
		fprintf(stderr, "spyre-bench: no ring: %s\n", strerror(-ret));
		return false;
	}
	for (int i = 0; i < 64; i++)
		u->cb[i].type = DRM_SPYRE_CB_TIMESTAMP;
	u->submit.queue_id = queue.queue_id;
	u->submit.cbs.stride = sizeof(u->cb[0]);
	u->submit.cbs.array = (uintptr_t)u->cb;
	return true;
}

static bool measure(struct uring *u, struct bench_report *report,
		    const struct bench_options *options, const char *name, bool nop)
{
	const struct bench_pair pair = { run_submit, nop ? run_nop : run_empty, u, 0 };
	struct bench_result result = { .unit = "us" };

	snprintf(result.name, sizeof(result.name), "%s", name);
	snprintf(result.peer, sizeof(result.peer), "%s", nop ? "io_uring NOP, the same way" :
		 "empty ioctl (DEV_QUERY)");
	if (!bench_interleave(&pair, options->samples, &result))
		return false;
	bench_add_time(report, &result, 1e6);
	return true;
}

bool bench_uring(struct bench_report *report, const struct bench_options *options)
{
	static const struct {
		const char *name;
		uint32_t op, cbs;
		int batch;
		bool nop, polled;
	} kind[] = {
		{ "VM: io_uring, 1 control block", DRM_SPYRE_URING_QUEUE, 1, 1, false, false },
		{ "VM: io_uring, 1 control block", DRM_SPYRE_URING_QUEUE, 1, 1, true, false },
		{ "VM: io_uring, 64 control blocks", DRM_SPYRE_URING_QUEUE, 64, 1, false, false },
		{ "VM: io_uring, batch of 64, each", DRM_SPYRE_URING_QUEUE, 1, 64, false, false },
		{ "VM: io_uring, batch of 64, each", DRM_SPYRE_URING_QUEUE, 1, 64, true, false },
		{ "VM: io_uring, 1 + wait for its CQE", DRM_SPYRE_URING_SUBMIT, 1, 1, true, false },
		{ "VM: io_uring, batch of 64 + wait, each", DRM_SPYRE_URING_SUBMIT, 1, 64, true,
		  false },
		{ "VM: SQPOLL, 1 control block", DRM_SPYRE_URING_QUEUE, 1, 1, true, true },
		{ "VM: SQPOLL, batch of 64, each", DRM_SPYRE_URING_QUEUE, 1, 64, true, true },
	};
	bool ok = true;

	for (size_t i = 0; ok && i < sizeof(kind) / sizeof(kind[0]); i++) {
		struct uring *u = calloc(1, sizeof(*u));

		if (!bench_wanted(options, kind[i].name)) {
			free(u);
			continue;
		}
		ok = u && open_all(u, options->node, kind[i].polled);
		if (ok) {
			u->op = kind[i].op;
			u->batch = kind[i].batch;
			u->submit.cbs.count = kind[i].cbs;
			ok = measure(u, report, options, kind[i].name, kind[i].nop);
			io_uring_queue_exit(&u->ring);
		}
		if (u && u->fd >= 0)
			close(u->fd);
		free(u);
	}
	return ok;
}

#else

bool bench_uring(struct bench_report *report, const struct bench_options *options)
{
	fputs("spyre-bench: built without liburing: no rows of io_uring\n", stderr);
	return true;
}

#endif
