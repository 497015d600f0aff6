// SPDX-License-Identifier: MIT
/* Control blocks, syncs, and both ways to submit them. */
#include "config.h"

#include "tests/fuzz/ioctl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#ifdef HAVE_LIBURING
#include <liburing.h>
#endif

/* A raw move, a padded one, or a box. */
static void fill_desc(struct drm_spyre_dma *d, const struct fz_call *c)
{
	uint32_t i, lanes;

	memset(d, 0, sizeof(*d));
	d->direction = c->p[1] < 250 ? c->p[1] & 1 : c->p[1];
	d->host_format = c->p[2] < 16 ? DRM_SPYRE_FORMAT_IEEE_FP32 : c->p[2] % 22;
	d->device_format = c->p[3] < 16 ? d->host_format : c->p[3] % 22;
	d->num_dims = c->p[4] < 224 ? 1 + c->p[4] % 3 : c->p[4] % 10;
	lanes = d->device_format == DRM_SPYRE_FORMAT_SEN169_FP16 ? 64 : 32;
	for (i = 0; i < 8; i++) {
		d->dim[i].count = i + 1 == d->num_dims ? lanes : 1 + c->p[5] % 8;
		d->dim[i].host_stride = i + 1 == d->num_dims ? 4 : 128u * (c->p[6] % 4);
	}
	if (c->p[7] >= 192) {
		d->num_bounds = 1 + c->p[7] % 2;
		d->bound[0].limit = c->p[8];
		d->bound[0].coef[c->p[9] % 8] = fz_special(c->p[10]);
	}
	if (c->p[7] >= 128 && c->p[7] < 192) {
		d->flags = DRM_SPYRE_DMA_BOX;
		d->bound[0].limit = c->p[8] < 192 ? 4u * c->p[8] : fz_special(c->p[8]);
		for (i = 0; i < d->num_dims && i < 8; i++)
			d->bound[0].coef[i] = i + 1 == d->num_dims ? 4 : 128u * (c->p[9] % 4);
		if (c->p[10] >= 192)
			d->bound[0].coef[c->p[9] % 8] = fz_special(c->p[10]);
	}
	d->host_offset = c->p[11] < 192 ? 0 : fz_special(c->p[11]);
}

static void fill_dma(struct fz_world *w, const struct fz_call *c, struct fz_file *file,
		     struct drm_spyre_cb *cb, struct drm_spyre_dma *desc)
{
	struct fz_call poke = *c;

	fill_desc(desc, c);
	/* Every second poke changes the descriptor. */
	if (c->poke_at & 1)
		fz_poke(&poke, desc, sizeof(*desc));
	cb->desc = fz_pointer(w, c->p[13], desc);
	cb->size = c->p[12] < 128 ? sizeof(w->arena->host) / 2 : fz_bytes(c->p[12]);
	if (desc->direction == DRM_SPYRE_DMA_H2D)
		cb->dst = fz_va(c->p[8] & 31);
	else
		cb->src = fz_va(c->p[8] & 31);
	if (c->p[9] & 1) {
		cb->host_handle = fz_pick(&file->bo, c->p[10]);
		cb->host_offset = c->p[6] < 128 ? 0 : fz_bytes(c->p[6]);
		if (c->p[12] < 128)
			cb->size = 16 * 4096;
	} else {
		cb->host_addr = fz_pointer(w, c->p[10], w->arena->host + (c->p[6] & 0xf0));
	}
}

/* Rows between a BO, whatever its kind, and an address. */
static void fill_peer(struct fz_world *w, const struct fz_call *c, struct fz_file *file,
		      struct drm_spyre_cb *cb, struct drm_spyre_peer_copy *copy)
{
	struct fz_call poke = *c;

	*copy = (struct drm_spyre_peer_copy){
		.direction = c->p[1] < 250 ? c->p[1] & 1 : c->p[1],
		.handle = fz_pick(&file->bo, c->p[2]),
		.offset = c->p[3] < 192 ? 64u * c->p[3] : fz_bytes(c->p[3]),
		.rows = c->p[4] < 224 ? 1 + c->p[4] % 64 : fz_special(c->p[4]),
		.row_bytes = c->p[5] < 224 ? 1 + 37u * c->p[5] : fz_bytes(c->p[5]),
	};
	copy->stride = copy->row_bytes + (c->p[6] < 224 ? c->p[6] : fz_special(c->p[6]));
	copy->local_stride = c->p[7] < 128 ? copy->stride :
			     c->p[7] < 224 ? copy->row_bytes + c->p[7] : fz_special(c->p[7]);
	if (c->poke_at & 1)
		fz_poke(&poke, copy, sizeof(*copy));
	cb->desc = fz_pointer(w, c->p[13], copy);
	if (copy->direction == DRM_SPYRE_PEER_WRITE)
		cb->src = fz_va(c->p[8]);
	else
		cb->dst = fz_va(c->p[8]);
}

static int call_cb(struct fz_world *w, const struct fz_call *c, struct fz_file *file)
{
	struct drm_spyre_cb *cb;
	uint32_t program, i;
	uint64_t *args;

	if (w->num_cbs == FZ_PENDING)
		return -EDQUOT;
	args = w->arena->args[w->num_cbs];
	cb = &w->arena->cb[w->num_cbs];
	memset(cb, 0, sizeof(*cb));
	cb->type = c->p[0] < 250 ? 1 + c->p[0] % 6 : c->p[0] - 250;
	switch (cb->type) {
	case DRM_SPYRE_CB_EXEC:
		program = fz_pick(&file->program, c->p[1]);
		cb->program = program >> 8;
		cb->num_args = c->p[2] < 240 ? program & 255 : fz_special(c->p[3]);
		for (i = 0; i < FZ_ARGS; i++)
			args[i] = fz_va(c->p[4 + i % 8]);
		cb->args = fz_pointer(w, c->p[13], args);
		break;
	case DRM_SPYRE_CB_DMA:
		fill_dma(w, c, file, cb, &w->arena->desc[w->num_cbs]);
		break;
	case DRM_SPYRE_CB_PEER_COPY:
		fill_peer(w, c, file, cb, &w->arena->peer[w->num_cbs]);
		break;
	case DRM_SPYRE_CB_COPY:
		cb->src = fz_va(c->p[1]);
		/* fall through */
	case DRM_SPYRE_CB_FILL:
		cb->dst = fz_va(c->p[2]);
		cb->size = fz_bytes(c->p[3]);
		if (cb->type == DRM_SPYRE_CB_FILL) {
			cb->pattern_size = c->p[4] < 240 ? 1u << c->p[4] % 5 : c->p[4];
			cb->pattern[0] = c->p[5] & ((cb->pattern_size & 15) < 2 ? 0xff : ~0ull);
		}
		break;
	}
	if ((cb->type != DRM_SPYRE_CB_DMA && cb->type != DRM_SPYRE_CB_PEER_COPY) ||
	    !(c->poke_at & 1))
		fz_poke(c, cb, sizeof(*cb));
	w->num_cbs++;
	return 0;
}

static int call_sync(struct fz_world *w, const struct fz_call *c, struct fz_file *file)
{
	struct drm_spyre_sync *sync;

	if (w->num_syncs == FZ_PENDING)
		return -EDQUOT;
	sync = &w->arena->sync[w->num_syncs++];
	*sync = (struct drm_spyre_sync){
		.handle = fz_pick(&file->syncobj, c->p[0]),
		.flags = c->p[1] & 3 ? DRM_SPYRE_SYNC_SIGNAL : 0,
		.point = c->p[2] < 240 ? c->p[2] % 8 : fz_special(c->p[2]),
	};
	fz_poke(c, sync, sizeof(*sync));
	return 0;
}

static struct drm_spyre_submit submission(struct fz_world *w, const struct fz_call *c,
					  struct fz_file *file)
{
	struct drm_spyre_submit args = {
		.queue_id = fz_pick(&file->queue, c->p[0]),
		.cbs = fz_array(w, c->p[1], c->p[2], c->p[3], w->arena->cb,
				sizeof(w->arena->cb[0]), w->num_cbs),
		/* At most one array ends at the edge. */
		.syncs = fz_array(w, c->p[4] & ~0x40, c->p[5], c->p[6], w->arena->sync,
				  sizeof(w->arena->sync[0]), w->num_syncs),
	};

	if (c->p[7] & 1) {
		args.result_handle = fz_pick(&file->bo, c->p[8]);
		args.result_offset = c->p[9] < 192 ? 64u * (c->p[9] & 7) : fz_special(c->p[9]);
	}
	/* Sometimes blocks are kept for another submission. */
	if (c->p[10] < 128) {
		w->num_cbs = 0;
		w->num_syncs = 0;
	}
	return args;
}

#ifdef HAVE_LIBURING
static struct io_uring ring;
static bool has_ring, no_ring;
static uint32_t in_flight;

static uint32_t setup_flags;

static bool open_ring(struct fz_world *w)
{
	struct io_uring_params params = {
		.flags = IORING_SETUP_SQE128 | IORING_SETUP_CQE32 | setup_flags,
		.sq_thread_idle = 1,
	};
	struct iovec buffer = { .iov_base = w->arena->host, .iov_len = sizeof(w->arena->host) };

	if (!has_ring && !no_ring) {
		has_ring = !io_uring_queue_init_params(16, &ring, &params);
		no_ring = !has_ring;
		if (has_ring)
			io_uring_register_buffers(&ring, &buffer, 1);
	}
	return has_ring;
}

static void reap(void)
{
	struct io_uring_cqe *cqe;

	while (in_flight && !io_uring_peek_cqe(&ring, &cqe)) {
		io_uring_cqe_seen(&ring, cqe);
		in_flight--;
	}
}

static void wait_ring(unsigned int us)
{
	struct __kernel_timespec timeout = { .tv_nsec = us * 1000 };
	struct io_uring_cqe *cqe;

	if (in_flight && has_ring)
		io_uring_wait_cqe_timeout(&ring, &cqe, &timeout);
	reap();
}

static int call_uring_submit(struct fz_world *w, const struct fz_call *c, struct fz_file *file)
{
	struct drm_spyre_submit args = submission(w, c, file);
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;
	int ret = -EINPROGRESS;

	if (!open_ring(w) || in_flight >= 8)
		return -EDQUOT;
	sqe = io_uring_get_sqe(&ring);
	if (!sqe)
		return -EDQUOT;
	if (!(c->poke_at & 1))
		fz_poke(c, &args, sizeof(args));
	memset(sqe, 0, 128);
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = file->fd;
	sqe->cmd_op = c->p[13] & 1 ? DRM_SPYRE_URING_QUEUE : DRM_SPYRE_URING_SUBMIT;
	if (c->p[11] >= 240)
		sqe->rw_flags = IORING_URING_CMD_FIXED;
	memcpy(sqe->cmd, &args, sizeof(args));
	if (c->poke_at & 1)
		fz_poke(c, (uint8_t *)sqe + 8, 56);	/* not its opcode and fd */
	/* Personality, links and fixed files do not concern the driver. */
	sqe->personality = 0;
	sqe->flags = c->p[12] >= 240 ? IOSQE_ASYNC : 0;
	in_flight++;
	io_uring_submit(&ring);
	/* A request that waits or is reissued must not read the SQE again. */
	if (c->p[13] & 2 && !(setup_flags & IORING_SETUP_SQPOLL))
		memset((uint8_t *)sqe + 16, c->p[10] ? c->p[10] : 0xa5, 112);
	if (!io_uring_peek_cqe(&ring, &cqe)) {
		ret = cqe->res;
		io_uring_cqe_seen(&ring, cqe);
		in_flight--;
	}
	return ret;
}

void fz_uring_reset(struct fz_world *w)
{
	open_ring(w);
	reap();
	if (in_flight)
		wait_ring(200);
	if (!in_flight && !setup_flags)
		return;
	if (has_ring)
		io_uring_queue_exit(&ring);
	fz_uring_forget();
	open_ring(w);
}

/* Replaces this ring by another while work may be in flight. */
static int call_uring_open(struct fz_world *w, const struct fz_call *c)
{
	static const uint32_t flags[] = {
		0, IORING_SETUP_COOP_TASKRUN, IORING_SETUP_SQPOLL,
		IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
	};

	if (has_ring)
		io_uring_queue_exit(&ring);
	fz_uring_forget();
	setup_flags = flags[c->p[0] % 4];
	return open_ring(w) ? 0 : -EDQUOT;
}

void fz_uring_forget(void)
{
	has_ring = false;
	no_ring = false;
	setup_flags = 0;
	in_flight = 0;
}

static int call_uring_wait(const struct fz_call *c)
{
	wait_ring(c->p[0] * 10u);
	return in_flight ? -ETIME : 0;
}
#else
static int call_uring_submit(struct fz_world *w, const struct fz_call *c, struct fz_file *file)
{
	submission(w, c, file);
	return -ENOSYS;
}

static int call_uring_wait(const struct fz_call *c)
{
	return c->p[0] ? 0 : -ENOSYS;
}

static int call_uring_open(struct fz_world *w, const struct fz_call *c)
{
	(void)w;
	return c->p[0] ? 0 : -ENOSYS;
}

void fz_uring_forget(void)
{
}

void fz_uring_reset(struct fz_world *w)
{
	(void)w;
}
#endif

int fz_call_submit(struct fz_world *w, const struct fz_call *c, struct fz_file *file)
{
	struct drm_spyre_submit args;

	switch (c->kind) {
	case FZ_CB: return call_cb(w, c, file);
	case FZ_SYNC: return call_sync(w, c, file);
	case FZ_URING_SUBMIT: return call_uring_submit(w, c, file);
	case FZ_URING_OPEN: return call_uring_open(w, c);
	case FZ_URING_WAIT: return call_uring_wait(c);
	default:
		args = submission(w, c, file);
		return fz_ioctl(w, c, file->fd, DRM_IOCTL_SPYRE_SUBMIT, &args);
	}
}
