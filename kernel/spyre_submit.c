// SPDX-License-Identifier: GPL-2.0-only
/*
 * Submission, top-down: decode everything, check everything, resolve every
 * address to memory, take every reference and allocate all that the fences
 * need; then, when nothing can fail any more, publish the fences and queue
 * the job.  Both the SUBMIT ioctl and io_uring (spyre_uring.c) use this code.
 */
#include <linux/slab.h>
#include <linux/uaccess.h>

#include <drm/drm_drv.h>
#include <drm/drm_exec.h>

#include "spyre_array.h"
#include "spyre_bo.h"
#include "spyre_charge.h"
#include "spyre_compat.h"
#include "spyre_device.h"
#include "spyre_dma.h"
#include "spyre_file.h"
#include "spyre_job.h"
#include "spyre_peer.h"
#include "spyre_prime.h"
#include "spyre_program.h"
#include "spyre_queue.h"
#include "spyre_runner.h"
#include "spyre_submit.h"
#include "spyre_sync.h"
#include "spyre_trace.h"
#include "spyre_vm.h"

#define SPYRE_MAX_CBS 256
/* Modelled cycles and steps that any host completes in about ten microseconds. */
#define SPYRE_LIGHT_CYCLES 1024
#define SPYRE_LIGHT_WORK 1024
/* error_cb of an error that does not concern a control block */
#define SPYRE_NO_CB U32_MAX

static_assert(sizeof(struct drm_spyre_dma) == sizeof(struct spyre_dma_desc));
static_assert(offsetof(struct drm_spyre_dma, dim) == offsetof(struct spyre_dma_desc, dim));
static_assert(offsetof(struct drm_spyre_dma, bound) == offsetof(struct spyre_dma_desc, bound));
static_assert(offsetof(struct drm_spyre_dma, flags) == offsetof(struct spyre_dma_desc, flags));
static_assert(offsetof(struct drm_spyre_dma, bound[0].limit) ==
	      offsetof(struct spyre_dma_desc, box.device_offset));
static_assert(offsetof(struct drm_spyre_dma, bound[0].coef) ==
	      offsetof(struct spyre_dma_desc, box.device_stride));
static_assert(DRM_SPYRE_DMA_BOX == SPYRE_DMA_BOX);
static_assert((int)DRM_SPYRE_DMA_H2D == (int)SPYRE_DMA_H2D);
static_assert((int)DRM_SPYRE_DMA_D2H == (int)SPYRE_DMA_D2H);
static_assert((int)DRM_SPYRE_FORMAT_FP64 == (int)SPYRE_FMT_FP64);
static_assert((int)DRM_SPYRE_FORMAT_FP64 + 1 == (int)SPYRE_FMT_COUNT);

/* State of a submission while it is checked. */
struct spyre_submission {
	struct drm_file *file;
	struct spyre_file *sfile;
	struct drm_spyre_submit *args;
	struct spyre_queue *queue;
	/* registered buffer that the host spans lie in, or NULL */
	struct io_uring_cmd *fixed;
	/* -EAGAIN instead of waiting for a fence */
	bool nowait;
	struct drm_spyre_cb *cbs;
	struct spyre_syncs syncs;
	/* operand pointers, and their device addresses, not yet given to a control block */
	u8 **operands;
	u64 *addresses;
	/* descriptor of the next DMA control block, in the job's allocation */
	struct spyre_dma_desc *descs;
	struct spyre_job *job;
	/* filled, if not NULL, when the job has been queued */
	struct spyre_submitted *submitted;
};

static bool spyre_any(const void *bytes, size_t size)
{
	return memchr_inv(bytes, 0, size);
}

/* Memory that an address was resolved to: a BO, which the job holds, and the offset in it. */
struct spyre_place {
	struct spyre_bo *bo;
	u64 offset;
};

static int spyre_resolve_place(struct spyre_submission *s, u64 va, u64 size, bool write,
			       u8 **vaddr, struct spyre_place *place)
{
	struct spyre_job *job = s->job;
	struct spyre_bo *bo;
	u8 *mapped;

	bo = spyre_vm_find(s->sfile->vm, va, size, write, &place->offset);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	job->bos[job->num_bos++] = bo;
	place->bo = bo;
	mapped = spyre_bo_map(bo, place->offset, size);
	if (IS_ERR(mapped))
		return PTR_ERR(mapped);
	*vaddr = mapped;
	return 0;
}

/* Resolves a device range to a kernel address; the job gets a reference to the BO. */
static int spyre_resolve(struct spyre_submission *s, u64 va, u64 size, bool write, u8 **vaddr)
{
	struct spyre_place place;

	return spyre_resolve_place(s, va, size, write, vaddr, &place);
}

static int spyre_decode_exec(struct spyre_submission *s, const struct drm_spyre_cb *in,
			     struct spyre_cb *cb)
{
	const struct spyre_program *prog;
	u64 args[SPYRE_MAX_OPERANDS];
	u32 i;
	int ret;

	if (in->desc || in->dst || in->src || in->size || in->host_addr || in->host_handle ||
	    in->pattern_size || in->host_offset || spyre_any(in->pattern, sizeof(in->pattern)))
		return -EINVAL;
	cb->exec.program = spyre_program_lookup(s->sfile, in->program);
	if (!cb->exec.program)
		return -ENOENT;
	prog = &cb->exec.program->base;
	if (in->num_args != prog->header->num_operands)
		return -EINVAL;
	if (copy_from_user(args, u64_to_user_ptr(in->args), in->num_args * sizeof(args[0])))
		return -EFAULT;

	if (prog->header->num_cores > hweight32(s->queue->claim.partition))
		return -EINVAL;

	cb->cost = prog->cost;
	s->job->cores = max_t(u32, s->job->cores, prog->header->num_cores);
	s->job->lx_bytes = max(s->job->lx_bytes, prog->header->lx_bytes);
	s->job->lx_kept |= prog->header->lx_kept != 0;
	cb->exec.operand = s->operands;
	cb->exec.address = s->addresses;
	memcpy(s->addresses, args, in->num_args * sizeof(args[0]));
	s->operands += in->num_args;
	s->addresses += in->num_args;
	for (i = 0; i < in->num_args; i++) {
		const struct spyre_prog_operand *op = &prog->operands[i];

		if (!IS_ALIGNED(args[i], DRM_SPYRE_STICK_BYTES))
			return -EINVAL;
		if (!op->extent)
			continue;
		ret = spyre_resolve(s, args[i], op->extent, op->flags & SPYRE_OPERAND_WRITE,
				    &cb->exec.operand[i]);
		if (ret)
			return ret;
	}
	return 0;
}

static int spyre_resolve_host(struct spyre_submission *s, const struct drm_spyre_cb *in,
			      bool write, struct spyre_host_span *span)
{
	struct spyre_job *job = s->job;
	struct spyre_bo *bo;
	u8 *vaddr;

	if (!in->size)
		return -EINVAL;
	if (!in->host_handle) {
		if (in->host_offset)
			return -EINVAL;
		if (s->fixed)
			return spyre_host_span_fixed(span, s->fixed, in->host_addr, in->size,
						     write);
		return spyre_host_span_pin(span, s->sfile, in->host_addr, in->size, write);
	}

	if (in->host_addr)
		return -EINVAL;
	bo = spyre_bo_lookup_host(s->file, in->host_handle);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	job->bos[job->num_bos++] = bo;
	vaddr = spyre_bo_map(bo, in->host_offset, in->size);
	if (IS_ERR(vaddr))
		return PTR_ERR(vaddr);
	span->vaddr = vaddr;
	span->bytes = in->size;
	return bo->import ? spyre_import_sync_add(job, bo, write) : 0;
}

static int spyre_decode_dma(struct spyre_submission *s, const struct drm_spyre_cb *in,
			    struct spyre_cb *cb)
{
	struct spyre_dma_desc *desc = s->descs++;
	u64 va, device_bytes;
	bool h2d;
	int ret;

	if (in->program || in->num_args || in->args || in->pattern_size ||
	    spyre_any(in->pattern, sizeof(in->pattern)))
		return -EINVAL;
	if (copy_from_user(desc, u64_to_user_ptr(in->desc), sizeof(*desc)))
		return -EFAULT;
	cb->dma.desc = desc;
	if (spyre_any(desc->reserved, sizeof(desc->reserved)) ||
	    spyre_dma_check(desc, &device_bytes, &cb->cost) != SPYRE_STOP_NONE ||
	    spyre_dma_check_host(desc, in->size) != SPYRE_STOP_NONE)
		return -EINVAL;

	h2d = desc->direction == SPYRE_DMA_H2D;
	va = h2d ? in->dst : in->src;
	if ((h2d ? in->src : in->dst) || !IS_ALIGNED(va, DRM_SPYRE_STICK_BYTES))
		return -EINVAL;
	ret = spyre_resolve(s, va, device_bytes, h2d, &cb->dma.device);
	if (ret)
		return ret;
	return spyre_resolve_host(s, in, !h2d, &cb->dma.host);
}

static int spyre_decode_copy(struct spyre_submission *s, const struct drm_spyre_cb *in,
			     struct spyre_cb *cb)
{
	u8 *src;
	int ret;

	if (in->program || in->num_args || in->args || in->desc || in->host_addr ||
	    in->host_handle || in->pattern_size || in->host_offset ||
	    spyre_any(in->pattern, sizeof(in->pattern)) || !in->size)
		return -EINVAL;
	ret = spyre_resolve(s, in->dst, in->size, true, &cb->linear.dst);
	if (!ret)
		ret = spyre_resolve(s, in->src, in->size, false, &src);
	if (ret)
		return ret;
	cb->linear.src = src;
	cb->linear.bytes = in->size;
	spyre_cost_linear(in->size, in->size, &cb->cost);
	return 0;
}

static int spyre_decode_fill(struct spyre_submission *s, const struct drm_spyre_cb *in,
			     struct spyre_cb *cb)
{
	const u32 pattern = in->pattern_size;

	if (in->program || in->num_args || in->args || in->desc || in->src || in->host_addr ||
	    in->host_handle || in->host_offset || !in->size)
		return -EINVAL;
	if (!is_power_of_2(pattern) || pattern > sizeof(in->pattern) || in->size % pattern)
		return -EINVAL;
	if (spyre_any((const u8 *)in->pattern + pattern, sizeof(in->pattern) - pattern))
		return -EINVAL;
	cb->linear.bytes = in->size;
	cb->linear.pattern_bytes = pattern;
	memcpy(cb->linear.pattern, in->pattern, sizeof(in->pattern));
	spyre_cost_linear(0, in->size, &cb->cost);
	return spyre_resolve(s, in->dst, in->size, true, &cb->linear.dst);
}

/* Resolves the far end of a copy; its device must be there, and its context in order. */
static int spyre_resolve_peer(struct spyre_submission *s, const struct drm_spyre_peer_copy *copy,
			      u64 bytes, struct spyre_cb *cb, u8 **vaddr)
{
	struct spyre_job *job = s->job;
	struct spyre_bo *bo, *far;
	u8 *mapped;

	bo = spyre_peer_lookup(s->file, copy->handle, cb->peer.write);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	job->bos[job->num_bos++] = bo;
	far = spyre_peer_far(bo);
	if (spyre_peer_check(far) || drm_dev_is_unplugged(far->base.base.dev))
		return -ENOLINK;
	mapped = spyre_bo_map(bo, copy->offset, bytes);
	if (IS_ERR(mapped))
		return PTR_ERR(mapped);
	cb->peer.far = far;
	*vaddr = mapped;
	return 0;
}

static int spyre_decode_peer(struct spyre_submission *s, const struct drm_spyre_cb *in,
			     struct spyre_cb *cb)
{
	struct drm_spyre_peer_copy copy;
	struct spyre_rows *rows = &cb->peer.rows;
	u64 va, dst_bytes, src_bytes;
	struct spyre_place near;
	u8 *local, *remote;
	bool write;
	int ret;

	if (in->program || in->num_args || in->args || in->size || in->host_addr ||
	    in->host_handle || in->pattern_size || in->host_offset ||
	    spyre_any(in->pattern, sizeof(in->pattern)))
		return -EINVAL;
	if (copy_from_user(&copy, u64_to_user_ptr(in->desc), sizeof(copy)))
		return -EFAULT;
	if (copy.direction > DRM_SPYRE_PEER_WRITE ||
	    spyre_any(copy.reserved, sizeof(copy.reserved)))
		return -EINVAL;
	write = copy.direction == DRM_SPYRE_PEER_WRITE;
	cb->peer.write = write;
	rows->rows = copy.rows;
	rows->row_bytes = copy.row_bytes;
	rows->dst_stride = write ? copy.stride : copy.local_stride;
	rows->src_stride = write ? copy.local_stride : copy.stride;
	if (spyre_rows_check(rows, &dst_bytes, &src_bytes) != SPYRE_STOP_NONE)
		return -EINVAL;
	va = write ? in->src : in->dst;
	if (write ? in->dst : in->src)
		return -EINVAL;

	ret = spyre_resolve_place(s, va, write ? src_bytes : dst_bytes, !write, &local, &near);
	if (!ret)
		ret = spyre_resolve_peer(s, &copy, write ? dst_bytes : src_bytes, cb, &remote);
	if (ret)
		return ret;
	/* Offsets are compared, since a BO may be mapped at several kernel addresses. */
	if (near.bo == cb->peer.far &&
	    spyre_rows_overlap(rows, write ? copy.offset : near.offset,
			       write ? near.offset : copy.offset))
		return -EINVAL;
	cb->peer.dst = write ? remote : local;
	cb->peer.src = write ? local : remote;
	s->job->has_peers = true;
	cb->peer.link = spyre_peer_link(s->sfile->spyre, cb->peer.far);
	spyre_cost_rows(rows, cb->peer.link, write, &cb->cost);
	return 0;
}

static int spyre_decode_cb(struct spyre_submission *s, const struct drm_spyre_cb *in,
			   struct spyre_cb *cb)
{
	if (in->flags || spyre_any(in->reserved, sizeof(in->reserved)))
		return -EINVAL;
	cb->type = in->type;
	cb->dst = in->dst;
	cb->src = in->src;
	cb->size = in->size;
	switch (in->type) {
	case DRM_SPYRE_CB_EXEC:
		return spyre_decode_exec(s, in, cb);
	case DRM_SPYRE_CB_DMA:
		return spyre_decode_dma(s, in, cb);
	case DRM_SPYRE_CB_COPY:
		return spyre_decode_copy(s, in, cb);
	case DRM_SPYRE_CB_FILL:
		return spyre_decode_fill(s, in, cb);
	case DRM_SPYRE_CB_PEER_COPY:
		return spyre_decode_peer(s, in, cb);
	case DRM_SPYRE_CB_TIMESTAMP:
		return spyre_any(&in->program, sizeof(*in) - offsetof(typeof(*in), program)) ?
			-EINVAL : 0;
	default:
		cb->type = 0;
		return -EINVAL;
	}
}

/* One allocation for the job, its control blocks, descriptors, BO references and operands. */
static int spyre_submission_alloc_job(struct spyre_submission *s)
{
	const u32 num = s->args->cbs.count;
	u32 operands = 0, bos = 1, descs = 0, i;	/* 1: the results */
	struct spyre_job *job;

	for (i = 0; i < num; i++) {
		if (s->cbs[i].num_args > SPYRE_MAX_OPERANDS) {
			s->args->error_cb = i;
			return -EINVAL;
		}
		operands += s->cbs[i].num_args;
		descs += s->cbs[i].type == DRM_SPYRE_CB_DMA;
		bos += s->cbs[i].num_args + 2;
	}
	job = kvzalloc(struct_size(job, cbs, num) + descs * sizeof(*s->descs) +
		       bos * sizeof(*job->bos) +
		       operands * (sizeof(*s->operands) + sizeof(*s->addresses)), SPYRE_GFP);
	if (!job)
		return -ENOMEM;
	refcount_set(&job->parts, 1);
	job->num_cbs = num;
	s->descs = (struct spyre_dma_desc *)&job->cbs[num];
	job->bos = (struct spyre_bo **)(s->descs + descs);
	s->operands = (u8 **)(job->bos + bos);
	s->addresses = (u64 *)(s->operands + operands);
	s->job = job;

	job->done = spyre_fence_alloc();
	return job->done ? 0 : -ENOMEM;
}

static int spyre_submission_results(struct spyre_submission *s)
{
	const struct drm_spyre_submit *args = s->args;
	const u64 bytes = args->cbs.count * sizeof(struct drm_spyre_cb_result);
	struct spyre_job *job = s->job;
	struct spyre_bo *bo;
	void *results;

	if (!args->result_handle)
		return args->result_offset ? -EINVAL : 0;
	bo = spyre_bo_lookup(s->file, args->result_handle, DRM_SPYRE_BO_HOST);
	if (IS_ERR(bo))
		return PTR_ERR(bo);
	job->bos[job->num_bos++] = bo;
	if (!IS_ALIGNED(args->result_offset, sizeof(struct drm_spyre_cb_result)))
		return -EINVAL;
	results = spyre_bo_map(bo, args->result_offset, bytes);
	if (IS_ERR(results))
		return PTR_ERR(results);
	job->results = results;
	return 0;
}

/* Makes the job wait for @fence, and consumes the reference. */
static int spyre_submission_wait(struct spyre_submission *s, struct dma_fence *fence)
{
	if (!fence)
		return 0;
	/* Jobs of the queue run in order anyway, and a signalled fence needs no wait. */
	if (fence->context == s->queue->fence_context || dma_fence_is_signaled(fence)) {
		dma_fence_put(fence);
		return 0;
	}
	return drm_sched_job_add_dependency(&s->job->base, fence);
}

static int spyre_submission_waits(struct spyre_submission *s)
{
	struct spyre_sync *sync;
	int ret;

	ret = spyre_syncs_find(&s->syncs, s->file);
	if (ret)
		return ret;
	spyre_for_each_sync(sync, &s->syncs) {
		ret = spyre_submission_wait(s, no_free_ptr(sync->fence));
		if (ret)
			return ret;
	}
	/* Read after the addresses were resolved, so that it covers all mappings found. */
	return spyre_submission_wait(s, spyre_vm_last_bind(s->sfile->vm));
}

static u64 spyre_job_cycles(const struct spyre_job *job)
{
	u64 cycles = 0;
	u32 i;

	for (i = 0; i < job->num_cbs; i++)
		cycles += job->cbs[i].cost.cycles;
	return cycles;
}

/*
 * Returns whether the job is light, and runs without switching threads.  Modelled cycles
 * alone do not suffice: loop iterations cost none, and repeated points cost as much as one.
 */
static bool spyre_job_is_light(const struct spyre_job *job)
{
	u64 work = 0, cycles = 0;
	u32 i;

	for (i = 0; i < job->num_cbs; i++) {
		const struct spyre_cb *cb = &job->cbs[i];

		cycles += cb->cost.cycles;
		if (cb->type == DRM_SPYRE_CB_EXEC)
			work += cb->exec.program->base.work;
		/* Most of a small copy's cycles are those of the link, which no host waits for. */
		if (cb->type == DRM_SPYRE_CB_PEER_COPY)
			cycles -= min(cb->cost.cycles, spyre_cost_link_start(cb->peer.link));
	}
	return !job->lx_bytes && work <= SPYRE_LIGHT_WORK && cycles <= SPYRE_LIGHT_CYCLES;
}

/*
 * Takes the scratchpads for the job's programs; all of the card's if one of them keeps
 * LX, since a larger image in place of this one would not have its contents.
 */
static int spyre_submission_lx(struct spyre_submission *s)
{
	struct spyre_job *job = s->job;
	struct spyre_lx *lx;

	if (!job->lx_bytes)
		return 0;
	lx = spyre_ctx_sched_lx(s->queue->ctx_sched,
				job->lx_kept ? s->sfile->spyre->num_cores : job->cores,
				job->lx_kept ? SPYRE_LX_BYTES : job->lx_bytes);
	if (IS_ERR(lx))
		return PTR_ERR(lx);
	job->lx = lx;
	return 0;
}

/* Does everything that can fail. */
static int spyre_submission_prepare(struct spyre_submission *s)
{
	struct spyre_queue *queue = s->queue;
	struct spyre_job *job;
	u32 i;
	int ret;

	if (READ_ONCE(queue->error))
		return -ECANCELED;
	ret = spyre_submission_alloc_job(s);
	if (ret)
		return ret;
	job = s->job;
	ret = spyre_sched_job_init(&job->base, &queue->entity, 1, queue, s->file->client_id);
	if (ret)
		return ret;
	/* The table of dependencies is charged to the caller's cgroup. */
	job->base.dependencies.xa_flags |= XA_FLAGS_ACCOUNT;
	kref_get(&queue->ref);
	job->queue = queue;

	ret = spyre_submission_results(s);
	if (ret)
		return ret;
	for (i = 0; i < job->num_cbs; i++) {
		ret = spyre_decode_cb(s, &s->cbs[i], &job->cbs[i]);
		if (ret) {
			s->args->error_cb = i;
			return ret;
		}
	}
	job->light = spyre_job_is_light(job);
	ret = spyre_submission_lx(s);
	if (!ret)
		ret = spyre_submission_waits(s);
	if (ret)
		return ret;
	return spyre_import_sync_begin(job, s->nowait);
}

/* Publishes the job. This neither allocates, fails nor waits, since unplug may wait for it. */
static void spyre_submission_publish(struct spyre_submission *s)
{
	struct spyre_queue *queue = s->queue;
	struct spyre_job *job = s->job;

	lockdep_assert_held(&queue->lock);
	drm_sched_job_arm(&job->base);
	spyre_fence_init(job->done, queue->fence_context, ++queue->submitted);

	spyre_syncs_publish(&s->syncs, job->done);
	spyre_import_sync_publish(job);
	if (s->submitted) {
		s->submitted->done = dma_fence_get(job->done);
		s->submitted->queue = queue;
		kref_get(&queue->ref);
		s->submitted->cycles = spyre_job_cycles(job);
	}
	s->job = NULL;
	trace_spyre_submit(job);
	drm_sched_entity_push_job(&job->base);
}

/* Fails only if the queue was killed or the card was unplugged meanwhile. */
static int spyre_submission_push(struct spyre_submission *s)
{
	struct spyre_queue *queue = s->queue;
	int idx;

	guard(mutex)(&queue->lock);
	if (queue->closed || READ_ONCE(queue->error))
		return -ECANCELED;
	/* From here on there are no copies from user space, page faults or waits for others. */
	if (!drm_dev_enter(&queue->spyre->drm, &idx))
		return -ENODEV;
	spyre_submission_publish(s);
	drm_dev_exit(idx);
	return 0;
}

/* Submits with the imported buffers locked; few jobs have any. */
static int spyre_submission_commit(struct spyre_submission *s)
{
	struct drm_exec exec;
	int ret;

	if (!s->job->import_syncs)
		return spyre_submission_push(s);
	ret = spyre_import_sync_lock(s->job, &exec);
	if (!ret)
		ret = spyre_submission_push(s);
	drm_exec_fini(&exec);
	return ret;
}

static void spyre_submission_cleanup(struct spyre_submission *s)
{
	spyre_syncs_release(&s->syncs);
	if (s->job)
		spyre_job_free(s->job);
}

int spyre_submit(struct drm_file *file, struct drm_spyre_submit *args,
		 struct io_uring_cmd *fixed, bool nowait, struct spyre_submitted *submitted)
{
	struct drm_spyre_cb *cbs __free(kvfree) = NULL;
	struct spyre_queue *queue __free(spyre_queue_put) = NULL;
	struct spyre_submission s = {
		.file = file, .sfile = to_spyre_file(file), .args = args, .fixed = fixed,
		.nowait = nowait,
	};
	int ret;

	args->error_cb = SPYRE_NO_CB;
	if (args->flags)
		return -EINVAL;
	if (spyre_file_is_stale(s.sfile))
		return -EIO;
	queue = spyre_queue_lookup(s.sfile, args->queue_id);
	if (!queue)
		return -ENOENT;
	cbs = spyre_array_get(&args->cbs, sizeof(*cbs), 1, SPYRE_MAX_CBS);
	if (IS_ERR(cbs))
		return PTR_ERR(cbs);
	s.queue = queue;
	s.cbs = cbs;
	s.submitted = submitted;
	ret = spyre_syncs_read(&s.syncs, &args->syncs);
	if (!ret)
		ret = spyre_submission_prepare(&s);
	if (!ret)
		ret = spyre_submission_commit(&s);
	spyre_submission_cleanup(&s);
	/* If an unplug killed the queue, report the unplug. */
	if (ret == -ECANCELED && drm_dev_is_unplugged(&s.sfile->spyre->drm))
		ret = -ENODEV;
	return ret;
}

int spyre_ioctl_submit(struct drm_device *drm, void *data, struct drm_file *file)
{
	return spyre_submit(file, data, NULL, false, NULL);
}
