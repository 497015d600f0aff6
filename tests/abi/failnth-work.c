/* SPDX-License-Identifier: MIT */
/* Calls that concern programs, queues, work and resets. */
#include "failnth.h"

#include <errno.h>
#include <string.h>

#include <xf86drm.h>

static int call_program_create(struct fail_ctx *c)
{
	struct drm_spyre_program_create args;
	int ret = abi_prog_load(c->fd, c->image, c->image_size, &args);

	c->handle = args.handle;
	return ret;
}

static void destroy_program(struct fail_ctx *c)
{
	abi_prog_destroy(c->fd, c->handle);
}

static void prepare_program(struct fail_ctx *c)
{
	int ret = call_program_create(c);

	if (ret)
		tap_bail("PROGRAM_CREATE: %s", strerror(-ret));
}

static int call_program_destroy(struct fail_ctx *c)
{
	return abi_prog_destroy(c->fd, c->handle);
}

static int call_queue_create(struct fail_ctx *c)
{
	/* The context already has a runner for the other class. */
	return abi_queue_create(c->fd, c->high ? DRM_SPYRE_PRIORITY_HIGH :
				DRM_SPYRE_PRIORITY_LOW, 1000, &c->handle);
}

static void destroy_queue(struct fail_ctx *c)
{
	abi_queue_destroy(c->fd, c->handle);
}

static void prepare_queue(struct fail_ctx *c)
{
	int ret = call_queue_create(c);

	if (ret)
		tap_bail("QUEUE_CREATE: %s", strerror(-ret));
}

static int call_queue_destroy(struct fail_ctx *c)
{
	return abi_queue_destroy(c->fd, c->handle);
}

static int call_queue_query(struct fail_ctx *c)
{
	struct drm_spyre_queue_query args = { .queue_id = c->handle };

	return abi_ioctl(c->fd, DRM_IOCTL_SPYRE_QUEUE_QUERY, &args);
}

/* Submits one block of each kind, behind earlier work, with results. */
static int call_submit(struct fail_ctx *c)
{
	const uint64_t args[3] = { FAIL_VA, FAIL_VA + FAIL_BYTES, FAIL_VA + 2 * FAIL_BYTES };
	struct drm_spyre_dma down = abi_dma_raw(DRM_SPYRE_DMA_H2D, PAGE);
	struct drm_spyre_dma up = abi_dma_raw(DRM_SPYRE_DMA_D2H, PAGE);
	struct drm_spyre_peer_copy peer = {
		.direction = DRM_SPYRE_PEER_READ, .handle = c->dev.handle, .rows = 2,
		.row_bytes = 1000, .stride = 1500, .local_stride = 1500,
	};
	struct drm_spyre_sync before = { .handle = c->queue.syncobj, .point = c->queue.point };
	struct drm_spyre_cb cbs[] = {
		abi_cb_fill32(FAIL_VA, FAIL_BYTES, c->round),
		abi_cb_copy(FAIL_VA + FAIL_BYTES, FAIL_VA, FAIL_BYTES),
		abi_cb_dma(&down, FAIL_VA + PAGE, c->user + 100, PAGE),
		abi_cb_dma_bo(&up, FAIL_VA, c->host.handle, 0, PAGE),
		abi_cb_exec(c->program, args, 3),
		abi_cb_timestamp(),
		{ .type = DRM_SPYRE_CB_PEER_COPY, .desc = PTR(&peer),
		  .dst = FAIL_VA + FAIL_BYTES },
	};

	if (!before.point)
		before.handle = 0;
	memset(abi_results(&c->queue), 0xa5, sizeof(cbs));
	return abi_submit_sync(&c->queue, cbs, sizeof(cbs) / sizeof(cbs[0]), before,
			       (struct drm_spyre_sync){ 0 });
}

static void undo_submit(struct fail_ctx *c)
{
	struct drm_spyre_cb_result *r = abi_results(&c->queue);
	int ret = abi_wait(&c->queue, 60000), i;

	for (i = 0; !ret && i < 7; i++)
		ret = r[i].state != DRM_SPYRE_CB_DONE ? -EPROTO : r[i].status;
	if (ret || *(uint32_t *)c->host.map != c->round)
		tap_ok(false, "accepted work completes with the right result (%d, %x)", ret,
		       *(uint32_t *)c->host.map);
}

static int call_syncobj(struct fail_ctx *c)
{
	return drmSyncobjCreate(c->fd, 0, &c->handle) ? -errno : 0;
}

static void undo_syncobj(struct fail_ctx *c)
{
	drmSyncobjDestroy(c->fd, c->handle);
}

/* Kills the queues of a file, and therefore uses a separate one. */
static int call_context_reset(struct fail_ctx *c)
{
	struct drm_spyre_context_reset args = { 0 };

	return abi_ioctl(c->other, DRM_IOCTL_SPYRE_CONTEXT_RESET, &args);
}

const struct fail_call fail_work_calls[] = {
	{ "PROGRAM_CREATE", NULL, call_program_create, destroy_program, NULL, true },
	{ "PROGRAM_DESTROY", prepare_program, call_program_destroy, NULL, destroy_program, false },
	{ "QUEUE_CREATE", NULL, call_queue_create, destroy_queue, NULL, true },
	{ "QUEUE_QUERY", prepare_queue, call_queue_query, NULL, destroy_queue, false },
	{ "QUEUE_DESTROY", prepare_queue, call_queue_destroy, NULL, destroy_queue, false },
	{ "SYNCOBJ_CREATE", NULL, call_syncobj, undo_syncobj, NULL, true },
	{ "SUBMIT", NULL, call_submit, undo_submit, NULL, false },
	{ "CONTEXT_RESET", NULL, call_context_reset, NULL, NULL, false },
	{ 0 }
};

/* All files are stale or have lost their queues: starts over. */
static int call_reset(struct fail_ctx *c)
{
	struct drm_spyre_reset args = { 0 };

	return abi_ioctl(c->fd, DRM_IOCTL_SPYRE_RESET, &args);
}

const struct fail_call fail_reset_calls[] = {
	{ "RESET", NULL, call_reset, NULL, fail_renew, false },
	{ 0 }
};
