// SPDX-License-Identifier: GPL-2.0-only
/*
 * Queues: each is a drm_gpu_scheduler with one entity, so that its jobs start
 * in order, after their waits, and are monitored while they run.
 *
 * The first failure kills a queue, and the other queues of its file
 * (spyre_fault.c).  Later jobs complete with -ECANCELED.
 */
#include <linux/capability.h>
#include <linux/err.h>
#include <linux/ktime.h>
#include <linux/slab.h>

#include <drm/drm_drv.h>

#include "spyre_arbiter.h"
#include "spyre_card.h"
#include "spyre_charge.h"
#include "spyre_compat.h"
#include "spyre_device.h"
#include "spyre_engine.h"
#include "spyre_fault.h"
#include "spyre_file.h"
#include "spyre_job.h"
#include "spyre_queue.h"
#include "spyre_runner.h"
#include "spyre_trace.h"

#define SPYRE_QUEUES_PER_FILE 256
#define SPYRE_TIMEOUT_MS 10000
#define SPYRE_TIMEOUT_MAX_MS 60000
/*
 * Number of jobs of a queue in the engine: enough to hide the scheduler's latency,
 * but few, because each job that enters restarts the hang timer.  That timer is
 * for jobs that do not reach the end of a tile; all others check their time
 * themselves (spyre_engine_tile()).
 */
#define SPYRE_QUEUE_CREDITS 4

/* Queues are released here, because work of the schedulers' workqueue cannot stop itself. */
static struct workqueue_struct *spyre_release_wq;

int spyre_queue_init(void)
{
	spyre_release_wq = alloc_workqueue("spyre-release", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	return spyre_release_wq ? 0 : -ENOMEM;
}

void spyre_queue_exit(void)
{
	/* Releases that wait for a grace period have not been queued yet. */
	rcu_barrier();
	destroy_workqueue(spyre_release_wq);
}

static struct dma_fence *spyre_queue_run_job(struct drm_sched_job *sched_job)
{
	struct spyre_job *job = to_spyre_job(sched_job);
	/* The scheduler's reference is taken first, because the engine may finish the job. */
	struct dma_fence *done = dma_fence_get(job->done);
	int ret = spyre_job_stop_reason(job);

	/* A lost peer is a failure of this job's own: the engine reports it and kills the queue. */
	if (!ret || ret == -ENOLINK)
		ret = spyre_engine_push(&job->queue->spyre->engine, job);
	if (ret) {
		spyre_job_skip(job, ret);
		dma_fence_put(done);
		return ERR_PTR(ret);
	}
	return done;
}

static bool spyre_job_overran(struct spyre_job *job)
{
	struct spyre_queue *queue = job->queue;

	return spyre_engine_active_ns(&queue->spyre->engine, job) >= queue->timeout_ns;
}

/*
 * The timer starts when a job is passed to the engine, but the limit counts only
 * the slices of the job.  If the job is still within its limit, the timer is
 * started again.
 */
static enum drm_gpu_sched_stat spyre_queue_timedout_job(struct drm_sched_job *sched_job)
{
	struct spyre_job *job = to_spyre_job(sched_job);
	struct spyre_queue *queue = job->queue;
	struct spyre_engine *engine = &queue->spyre->engine;
	bool cookie;

	/*
	 * Stop the job before drm_sched_stop(), which waits for one that runs in run_job().
	 * The thread that runs it raises the fault, since it may have just ended.
	 */
	if (!dma_fence_is_signaled(job->done) && !READ_ONCE(queue->error) &&
	    spyre_job_overran(job)) {
		WRITE_ONCE(job->stop, -ETIME);
		spyre_engine_kick(engine, queue);
	}
	drm_sched_stop(&queue->sched, sched_job);
	cookie = dma_fence_begin_signalling();
	/* drm_sched_stop() has dropped the fences of the jobs that remain. */
	list_for_each_entry(sched_job, &queue->sched.pending_list, list) {
		job = to_spyre_job(sched_job);
		sched_job->s_fence->parent = dma_fence_get(job->done);
	}
	spyre_sched_start(&queue->sched);

	dma_fence_end_signalling(cookie);
	return SPYRE_SCHED_STAT_RESET;
}

static void spyre_queue_free_job(struct drm_sched_job *sched_job)
{
	spyre_job_free(to_spyre_job(sched_job));
}

static const struct drm_sched_backend_ops spyre_queue_ops = {
	.run_job = spyre_queue_run_job,
	.timedout_job = spyre_queue_timedout_job,
	.free_job = spyre_queue_free_job,
};

static void spyre_queue_release_work(struct work_struct *work)
{
	struct spyre_queue *queue = container_of(to_rcu_work(work), struct spyre_queue, release);

	drm_sched_fini(&queue->sched);
	mutex_destroy(&queue->lock);
	spyre_file_put(queue->sfile);
	spyre_card_release(queue->spyre);
	drm_dev_put(&queue->spyre->drm);
	kfree(queue);
}

static void spyre_queue_release(struct kref *ref)
{
	struct spyre_queue *queue = container_of(ref, struct spyre_queue, ref);

	/*
	 * A fence that the entity waited for may be waking its scheduler: the entity
	 * drops the fence before that has ended.  The fence's lock is held meanwhile,
	 * so a grace period suffices to wait for it.
	 */
	queue_rcu_work(spyre_release_wq, &queue->release);
}

void spyre_queue_put(struct spyre_queue *queue)
{
	if (IS_ERR_OR_NULL(queue))
		return;
	kref_put(&queue->ref, spyre_queue_release);
}

struct spyre_queue *spyre_queue_lookup(struct spyre_file *sfile, u32 id)
{
	struct spyre_queue *queue;

	xa_lock(&sfile->queues);
	queue = xa_load(&sfile->queues, id);
	if (queue)
		kref_get(&queue->ref);
	xa_unlock(&sfile->queues);
	return queue;
}

void spyre_queue_mark_dead(struct spyre_queue *queue, int error)
{
	if (!cmpxchg(&queue->error, 0, error))
		trace_spyre_queue_dead(queue, error);
}

void spyre_queue_kill(struct spyre_queue *queue, int error)
{
	spyre_queue_mark_dead(queue, error);
	spyre_engine_kick(&queue->spyre->engine, queue);
}

void spyre_queue_close(struct spyre_queue *queue)
{
	scoped_guard(mutex, &queue->lock)
		queue->closed = true;
	spyre_queue_kill(queue, -ECANCELED);
	/*
	 * drm_sched_entity_fini() takes the remaining jobs of the queue, but so does
	 * the scheduler's worker, which also puts the entity back into its list
	 * while it takes a job.  So the worker is stopped, and the timer, which would
	 * start it again.  The timer is no longer needed, because jobs that have
	 * begun have been told to stop.
	 */
	disable_delayed_work_sync(&queue->sched.work_tdr);
	drm_sched_wqueue_stop(&queue->sched);
	drm_sched_entity_fini(&queue->entity);
	drm_sched_wqueue_start(&queue->sched);
	spyre_engine_drain(&queue->spyre->engine, queue);
	spyre_queue_put(queue);
}

static struct spyre_queue *spyre_queue_alloc(struct spyre_file *sfile,
					     const struct drm_spyre_queue_create *args)
{
	const u32 timeout_ms = args->timeout_ms ?: SPYRE_TIMEOUT_MS;
	struct spyre_device *spyre = sfile->spyre;
	struct spyre_queue *queue = kzalloc(sizeof(*queue), SPYRE_GFP);
	struct drm_gpu_scheduler *sched;
	int ret;

	if (!queue)
		return ERR_PTR(-ENOMEM);
	ret = spyre_card_hold(spyre);
	if (ret)
		goto free;
	ret = spyre_sched_init(&queue->sched, &(struct drm_sched_init_args) {
		.ops = &spyre_queue_ops,
		.submit_wq = spyre->sched_wq,
		.timeout_wq = spyre->timeout_wq,
		.num_rqs = 1,
		.credit_limit = SPYRE_QUEUE_CREDITS,
		.timeout = msecs_to_jiffies(timeout_ms),
		.name = "spyre",
		.dev = spyre->drm.dev,
	});
	if (ret)
		goto release;
	sched = &queue->sched;
	ret = drm_sched_entity_init(&queue->entity, DRM_SCHED_PRIORITY_KERNEL, &sched, 1, NULL);
	if (ret)
		goto fini;

	kref_init(&queue->ref);
	mutex_init(&queue->lock);
	INIT_LIST_HEAD(&queue->jobs);
	INIT_LIST_HEAD(&queue->stopped);
	init_waitqueue_head(&queue->resume);
	INIT_RCU_WORK(&queue->release, spyre_queue_release_work);
	queue->priority = args->priority;
	queue->timeout_ns = (u64)timeout_ms * NSEC_PER_MSEC;
	queue->fence_context = dma_fence_context_alloc(1);
	queue->sfile = spyre_file_get(sfile);
	queue->spyre = spyre;
	drm_dev_get(&spyre->drm);
	queue->ctx_sched = &sfile->ctx_sched[args->priority];
	spyre_claim_init(&spyre->engine.arbiter, &queue->claim, &queue->ctx_sched->context,
			 args->core_first, args->core_count);
	return queue;

fini:
	drm_sched_fini(&queue->sched);
release:
	spyre_card_release(spyre);
free:
	kfree(queue);
	return ERR_PTR(ret);
}

/* Returns true if the card has the cores of the partition that @args names. */
static bool spyre_queue_partition_ok(const struct spyre_device *spyre,
				     const struct drm_spyre_queue_create *args)
{
	if (!args->core_count)
		return !args->core_first;
	return args->core_first < spyre->num_cores &&
	       args->core_count <= spyre->num_cores - args->core_first;
}

/* Publishes a queue, which can have jobs from then on; fails if the card is unplugged. */
static int spyre_queue_publish(struct spyre_queue *queue)
{
	struct xarray *queues = &queue->sfile->queues;
	int ret, idx;

	if (!drm_dev_enter(&queue->spyre->drm, &idx))
		return -ENODEV;
	ret = xa_alloc(queues, &queue->id, queue, XA_LIMIT(1, SPYRE_QUEUES_PER_FILE),
		       SPYRE_GFP);
	drm_dev_exit(idx);
	return ret == -EBUSY ? -ENOSPC : ret;
}

static int spyre_queue_make(struct spyre_file *sfile, struct drm_spyre_queue_create *args)
{
	struct spyre_queue *queue __free(spyre_queue_put) = NULL;
	int ret;

	if (spyre_file_is_stale(sfile))
		return -EIO;
	if (spyre_file_is_faulted(sfile))
		return -ECANCELED;
	ret = spyre_ctx_sched_open(&sfile->ctx_sched[args->priority], sfile->id);
	if (ret)
		return ret;

	queue = spyre_queue_alloc(sfile, args);
	if (IS_ERR(queue))
		return PTR_ERR(queue);
	/*
	 * The table has one reference and this call another: ids can be guessed, and
	 * QUEUE_DESTROY in another thread may drop the table's from here on.
	 */
	kref_get(&queue->ref);
	ret = spyre_queue_publish(queue);
	if (ret) {
		spyre_queue_close(queue);
		return ret;
	}
	args->queue_id = queue->id;
	/*
	 * Either a reset or a fault finds this queue, or its mark is seen here; pairs
	 * with spyre_ioctl_reset() and spyre_fault_stopped().
	 */
	smp_mb();
	if (spyre_file_is_stale(sfile))
		spyre_queue_kill(queue, -EIO);
	else if (spyre_file_is_faulted(sfile))
		spyre_queue_kill(queue, -ECANCELED);
	return 0;
}

int spyre_ioctl_queue_create(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct spyre_file *sfile = to_spyre_file(file);
	struct drm_spyre_queue_create *args = data;
	int ret;

	args->queue_id = 0;
	if (args->flags || args->priority > DRM_SPYRE_PRIORITY_HIGH ||
	    args->timeout_ms > SPYRE_TIMEOUT_MAX_MS ||
	    !spyre_queue_partition_ok(sfile->spyre, args))
		return -EINVAL;
	/* The work of all other users waits for the high class. */
	if (args->priority == DRM_SPYRE_PRIORITY_HIGH && !capable(CAP_SYS_NICE))
		return -EACCES;

	if (mutex_lock_killable(&sfile->health.creating))
		return -ERESTARTSYS;
	ret = spyre_queue_make(sfile, args);
	mutex_unlock(&sfile->health.creating);
	return ret;
}

int spyre_ioctl_queue_destroy(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct drm_spyre_queue_destroy *args = data;
	struct spyre_queue *queue;

	if (args->pad)
		return -EINVAL;
	queue = xa_erase(&to_spyre_file(file)->queues, args->queue_id);
	if (!queue)
		return -ENOENT;
	spyre_queue_close(queue);
	return 0;
}

int spyre_ioctl_queue_query(struct drm_device *drm, void *data, struct drm_file *file)
{
	struct spyre_queue *queue __free(spyre_queue_put) = NULL;
	struct drm_spyre_queue_query *args = data;
	const u32 pad = args->pad;

	*args = (struct drm_spyre_queue_query) { .queue_id = args->queue_id };
	if (pad)
		return -EINVAL;
	queue = spyre_queue_lookup(to_spyre_file(file), args->queue_id);
	if (!queue)
		return -ENOENT;

	args->error = READ_ONCE(queue->error);
	args->state = args->error ? DRM_SPYRE_QUEUE_KILLED : DRM_SPYRE_QUEUE_OK;
	args->completed = atomic64_read(&queue->completed);
	args->submitted = READ_ONCE(queue->submitted);
	return 0;
}
