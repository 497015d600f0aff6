// SPDX-License-Identifier: GPL-2.0-only
/*
 * Execution of a job, its results and its fence.
 */
#include <linux/dma-fence.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "spyre_bo.h"
#include "spyre_charge.h"
#include "spyre_device.h"
#include "spyre_dma.h"
#include "spyre_engine.h"
#include "spyre_fault.h"
#include "spyre_file.h"
#include "spyre_inject.h"
#include "spyre_job.h"
#include "spyre_lx.h"
#include "spyre_peer.h"
#include "spyre_prime.h"
#include "spyre_program.h"
#include "spyre_queue.h"
#include "spyre_trace.h"

/*
 * Fences may be held by anyone for any time: they contain their own lock, refer
 * only to this code of the driver, and hold the module.
 */
struct spyre_fence {
	struct dma_fence base;
	/* of base */
	spinlock_t lock;
};

static const char *spyre_fence_driver_name(struct dma_fence *fence)
{
	return "spyre_vdev";
}

static const char *spyre_fence_timeline_name(struct dma_fence *fence)
{
	return "queue";
}

static void spyre_fence_free(struct rcu_head *rcu)
{
	kfree(container_of(rcu, struct spyre_fence, base.rcu));
	/* The module's exit waits for this callback with rcu_barrier(). */
	module_put(THIS_MODULE);
}

static void spyre_fence_release(struct dma_fence *fence)
{
	call_rcu(&fence->rcu, spyre_fence_free);
}

static const struct dma_fence_ops spyre_fence_ops = {
	.get_driver_name = spyre_fence_driver_name,
	.get_timeline_name = spyre_fence_timeline_name,
	.release = spyre_fence_release,
};

struct dma_fence *spyre_fence_alloc(void)
{
	struct spyre_fence *fence = kzalloc(sizeof(*fence), SPYRE_GFP);

	return fence ? &fence->base : NULL;
}

void spyre_fence_init(struct dma_fence *base, u64 context, u64 seqno)
{
	struct spyre_fence *fence = container_of(base, struct spyre_fence, base);

	__module_get(THIS_MODULE);
	spin_lock_init(&fence->lock);
	dma_fence_init(base, &spyre_fence_ops, &fence->lock, context, seqno);
}

static void spyre_fence_drop(struct dma_fence *base)
{
	if (!base)
		return;
	if (spyre_fence_is_public(base))
		dma_fence_put(base);
	else
		kfree(container_of(base, struct spyre_fence, base));
}

int spyre_job_stop_reason(struct spyre_job *job)
{
	int stop = READ_ONCE(job->stop);

	if (stop)
		return stop;
	if (READ_ONCE(job->queue->spyre->engine.gone))
		return -ENODEV;
	if (READ_ONCE(job->queue->error))
		return -ECANCELED;
	return job->has_peers ? spyre_peer_check_job(job) : 0;
}

/* @state is written last, because user space polls it. */
static void spyre_job_report(struct spyre_job *job, u32 index, int status,
			     const struct spyre_counters *cost, u64 start_ns, u64 end_ns)
{
	struct drm_spyre_cb_result *result;

	if (!job->results)
		return;
	result = &job->results[index];
	result->status = status;
	result->cycles = cost->cycles;
	result->bytes_read = cost->bytes_read;
	result->bytes_written = cost->bytes_written;
	result->macs = cost->macs;
	result->start_ns = start_ns;
	result->end_ns = end_ns;
	result->rdma = cost->rdma_read + cost->rdma_written;
	/* Pairs with the reader's acquire of @state: the other fields are visible then. */
	smp_store_release(&result->state, DRM_SPYRE_CB_DONE);
}

static void spyre_job_complete(struct spyre_job *job, int error, u64 cycles)
{
	trace_spyre_done(job, error, cycles);
	atomic64_inc(&job->queue->completed);
	if (error)
		dma_fence_set_error(job->done, error);
	dma_fence_signal(job->done);
}

void spyre_job_skip(struct spyre_job *job, int status)
{
	const struct spyre_counters none = {};
	u32 i;

	for (i = 0; i < job->num_cbs; i++)
		spyre_job_report(job, i, status, &none, 0, 0);
	spyre_engine_account(&job->queue->spyre->engine, &none, true);
	spyre_file_account(job->queue->sfile, 0, &none, true);
	spyre_job_complete(job, status, 0);
}

static enum spyre_stop spyre_job_exec(struct spyre_job *job, struct spyre_cb *cb,
				      struct spyre_runner *runner)
{
	struct spyre_engine *engine = runner->engine;
	const struct spyre_program *prog = &cb->exec.program->base;
	struct spyre_exec exec = {
		.host = &engine->host,
		.job = job,
		.prog = prog,
		.operand = cb->exec.operand,
		.lx = job->lx ? job->lx->core : NULL,
	};

	return spyre_card_exec(&exec, &runner->base);
}

static enum spyre_stop spyre_job_run_cb(struct spyre_job *job, struct spyre_cb *cb,
					struct spyre_runner *runner)
{
	struct spyre_host *host = &runner->engine->host;
	struct spyre_worker *self = &runner->base;

	switch (cb->type) {
	case DRM_SPYRE_CB_EXEC:
		return spyre_job_exec(job, cb, runner);
	case DRM_SPYRE_CB_DMA:
		return spyre_card_dma(host, job, self, cb->dma.desc, cb->dma.device,
				      cb->dma.host.vaddr, cb->dma.host.bytes);
	case DRM_SPYRE_CB_COPY:
		return spyre_card_copy(host, job, self, cb->linear.dst, cb->linear.src,
				       cb->linear.bytes);
	case DRM_SPYRE_CB_FILL:
		return spyre_card_fill(host, job, self, cb->linear.dst, cb->linear.bytes,
				       cb->linear.pattern, cb->linear.pattern_bytes);
	case DRM_SPYRE_CB_PEER_COPY:
		trace_spyre_peer(job, cb);
		return spyre_card_copy_rows(host, job, self, &cb->peer.rows, cb->peer.dst,
					    cb->peer.src);
	default:	/* TIMESTAMP */
		return SPYRE_STOP_NONE;
	}
}

/* Runs control block @index unless the job has to stop, and returns its status. */
static int spyre_job_step(struct spyre_job *job, u32 index, struct spyre_runner *runner)
{
	struct spyre_cb *cb = &job->cbs[index];
	enum spyre_stop stop;
	int reason;

	/* A small block may end without any check of the time limit. */
	spyre_engine_tile(runner->engine, job);
	reason = spyre_job_stop_reason(job);
	if (reason)
		return spyre_fault_told(job, index, reason);
	WRITE_ONCE(job->queue->now_cb, index);
	stop = READ_ONCE(job->queue->spyre->inject.count) ? spyre_inject_job(job) : SPYRE_STOP_NONE;
	if (stop == SPYRE_STOP_NONE)
		stop = spyre_job_run_cb(job, cb, runner);
	if (stop == SPYRE_STOP_NONE)
		return 0;
	if (stop != SPYRE_STOP_CANCELLED)
		return spyre_fault_stopped(job, index, stop);
	return spyre_fault_told(job, index, spyre_job_stop_reason(job) ?: -ECANCELED);
}

void spyre_job_run(struct spyre_job *job, struct spyre_runner *runner)
{
	const struct spyre_counters none = {};
	struct spyre_file *sfile = job->queue->sfile;
	bool cookie = dma_fence_begin_signalling();
	struct spyre_counters sum = {};
	u64 now = ktime_get_ns(), start;
	int error = 0, status;
	u32 i;

	trace_spyre_run(job);
	atomic_inc(&sfile->health.running);
	WRITE_ONCE(job->check_ns, now + job->queue->timeout_ns);
	WRITE_ONCE(job->start_ns, now);
	WRITE_ONCE(job->queue->now_since, now);
	WRITE_ONCE(job->queue->now_job, job->done->seqno);
	for (i = 0; i < job->num_cbs; i++) {
		start = now;
		status = error ? (error == -ENODEV ? -ENODEV : -ECANCELED) :
				 spyre_job_step(job, i, runner);
		now = ktime_get_ns();
		if (!status)
			spyre_counters_add(&sum, &job->cbs[i].cost);
		spyre_job_report(job, i, status, status ? &none : &job->cbs[i].cost, start, now);
		error = error ?: status;
	}

	if (error)
		spyre_queue_kill(job->queue, error);
	spyre_file_account(sfile, now - job->start_ns - job->paused_ns, &sum, error);
	spyre_engine_account(runner->engine, &sum, error);
	WRITE_ONCE(job->queue->now_job, 0);
	/* The job may be freed from here on; the engine still holds its queue. */
	spyre_job_complete(job, error, sum.cycles);
	atomic_dec(&sfile->health.running);
	dma_fence_end_signalling(cookie);
}

static void spyre_cb_release(struct spyre_cb *cb)
{
	switch (cb->type) {
	case DRM_SPYRE_CB_EXEC:
		if (cb->exec.program)
			spyre_program_put(cb->exec.program);
		break;
	case DRM_SPYRE_CB_DMA:
		spyre_host_span_release(&cb->dma.host);
		break;
	}
}

struct spyre_job *spyre_job_get(struct spyre_job *job)
{
	refcount_inc(&job->parts);
	return job;
}

void spyre_job_put(struct spyre_job *job)
{
	struct dma_fence *done = job->done;
	u32 i;

	if (!refcount_dec_and_test(&job->parts))
		return;
	for (i = 0; i < job->num_cbs; i++)
		spyre_cb_release(&job->cbs[i]);
	spyre_import_sync_end(job);
	for (i = 0; i < job->num_bos; i++)
		spyre_bo_put(job->bos[i]);
	spyre_lx_put(job->lx);
	if (job->queue)
		spyre_queue_put(job->queue);
	kvfree(job);
	/* This must be last, since it may drop the last reference to the module. */
	spyre_fence_drop(done);
}

void spyre_job_free(struct spyre_job *job)
{
	struct dma_fence *done = job->done;

	/* The scheduler frees the jobs of a closed queue without running them. */
	if (done && spyre_fence_is_public(done) && !dma_fence_is_signaled(done))
		spyre_job_skip(job, spyre_job_stop_reason(job) ?: -ECANCELED);
	if (job->base.s_fence)
		drm_sched_job_cleanup(&job->base);
	spyre_job_put(job);
}
