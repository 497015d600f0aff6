// SPDX-License-Identifier: MIT
/* Queues of an embedded card: order, waits between queues, points. */
#define _GNU_SOURCE
#include <stdlib.h>

#include "libspyre/backend/embedded.h"
#include "libspyre/base/environment.h"
#include "libspyre/base/error.h"

/* Longest time that a waiter spins; sleeping and waking cost about as much. */
#define WAIT_SPIN_NS 4000

/* Adds the queue to the blocked ones, or removes it; caller holds the lock. */
static void queue_block(struct embedded_queue *queue, bool blocked)
{
	if (queue->blocked == blocked)
		return;
	if (blocked)
		TAILQ_INSERT_TAIL(&queue->device->blocked, queue, link);
	else
		TAILQ_REMOVE(&queue->device->blocked, queue, link);
	queue->blocked = blocked;
}

/* Lists the queue as runnable if its first job may start; caller holds the lock. */
static bool queue_ready(struct embedded_queue *queue)
{
	struct embedded_job *job = TAILQ_FIRST(&queue->jobs);

	if (queue->state != EMBEDDED_QUEUE_IDLE || !job || job->pending_waits)
		return false;
	queue_block(queue, embedded_job_watches(job, queue->device));
	if (queue->blocked)
		return false;
	queue->state = EMBEDDED_QUEUE_RUNNABLE;
	TAILQ_INSERT_TAIL(&queue->device->runnable[queue->class], queue, link);
	return true;
}

void embedded_device_look(struct embedded_device *device)
{
	struct embedded_queue *queue, *next;
	bool ready = false;

	pthread_mutex_lock(&device->lock);
	for (queue = TAILQ_FIRST(&device->blocked); queue; queue = next) {
		next = TAILQ_NEXT(queue, link);
		ready |= queue_ready(queue);
	}
	pthread_mutex_unlock(&device->lock);
	if (ready)
		embedded_kick(device);
}

static void release_dependents(struct embedded_queue *queue)
{
	uint64_t completed = atomic_load(&queue->timeline->completed);
	struct embedded_wait *wait, *next;

	for (wait = TAILQ_FIRST(&queue->dependents); wait; wait = next) {
		next = TAILQ_NEXT(wait, link);
		if (wait->point > completed)
			continue;
		TAILQ_REMOVE(&queue->dependents, wait, link);
		wait->on = NULL;
		if (--wait->job->pending_waits == 0)
			queue_ready(wait->job->queue);
	}
}

struct embedded_lx *embedded_queue_lx(struct embedded_queue *queue)
{
	return &((struct embedded_card *)queue->base.card)->lx[queue->class];
}

void embedded_queue_retire(struct embedded_queue *queue)
{
	TAILQ_REMOVE(&queue->jobs, TAILQ_FIRST(&queue->jobs), link);
	queue->state = EMBEDDED_QUEUE_IDLE;
	if (!TAILQ_EMPTY(&queue->dependents))
		release_dependents(queue);
	if (!queue_ready(queue) && TAILQ_EMPTY(&queue->jobs))
		pthread_cond_broadcast(&queue->device->queue_idle);
}

void embedded_queue_advance(struct embedded_queue *queue, uint64_t point)
{
	embedded_timeline_advance(queue->timeline, point);
	if (atomic_load(&queue->waiters)) {
		atomic_fetch_add(&queue->wake, 1);
		spyre_futex_wake(&queue->wake, INT_MAX);
	}
}

spyre_status embedded_queue_create(struct spyre_card *card, int priority,
				   struct spyre_queue **out)
{
	struct embedded_queue *queue;
	uint32_t timeout_ms;

	TRY(embedded_card_check((struct embedded_card *)card));
	TRY(spyre_env_timeout_ms(&timeout_ms));
	queue = calloc(1, sizeof(*queue));
	if (queue)
		queue->base.results = aligned_alloc(64, SPYRE_QUEUE_RESULTS *
						    sizeof(*queue->base.results));
	if (queue && queue->base.results)
		queue->timeline = embedded_timeline_new();
	if (!queue || !queue->timeline) {
		if (queue)
			free(queue->base.results);
		free(queue);
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "no memory for a queue of the embedded card");
	}
	for (uint32_t i = 0; i < SPYRE_QUEUE_RESULTS; i++)
		queue->base.results[i] = (struct spyre_command_result){ 0 };
	queue->base.card = card;
	queue->device = ((struct embedded_card *)card)->device;
	queue->class = priority < 0 ? 0 : 1;
	queue->timeout_ns = timeout_ms * 1000000ull;
	TAILQ_INIT(&queue->jobs);
	TAILQ_INIT(&queue->dependents);
	*out = &queue->base;
	return SPYRE_SUCCESS;
}

/* Moves the jobs that have not started from the queue to @jobs; caller holds the lock. */
static void queue_strip(struct embedded_queue *queue, struct embedded_job_list *jobs)
{
	struct embedded_job *running = NULL, *job;

	if (queue->state == EMBEDDED_QUEUE_RUNNING)
		running = TAILQ_FIRST(&queue->jobs);
	while ((job = running ? TAILQ_NEXT(running, link) : TAILQ_FIRST(&queue->jobs))) {
		for (uint32_t i = 0; i < job->num_waits; i++)
			if (job->waits[i].on)
				TAILQ_REMOVE(&job->waits[i].on->dependents, &job->waits[i], link);
		TAILQ_REMOVE(&queue->jobs, job, link);
		TAILQ_INSERT_TAIL(jobs, job, link);
	}
	if (queue->state == EMBEDDED_QUEUE_RUNNABLE) {
		TAILQ_REMOVE(&queue->device->runnable[queue->class], queue, link);
		queue->state = EMBEDDED_QUEUE_IDLE;
	}
	queue_block(queue, false);
}

static void job_cancel(struct embedded_job *job)
{
	struct embedded_queue *queue = job->queue;

	for (uint32_t i = 0; i < job->num_commands; i++) {
		struct spyre_command_result *result = &queue->base.results[job->first_result + i];

		result->status = -ECANCELED;
		__atomic_store_n(&result->state, 1, __ATOMIC_RELEASE);
	}
	embedded_count_job(queue->device, true);
	embedded_queue_advance(queue, job->point);
	embedded_job_free(job);
}

void embedded_queue_destroy(struct spyre_queue *base)
{
	struct embedded_queue *queue = (struct embedded_queue *)base;
	struct embedded_device *device = queue->device;
	struct embedded_job_list jobs = TAILQ_HEAD_INITIALIZER(jobs);
	struct embedded_job *job;
	bool released;

	pthread_mutex_lock(&device->lock);
	queue_strip(queue, &jobs);
	while (queue->state != EMBEDDED_QUEUE_IDLE)
		pthread_cond_wait(&device->queue_idle, &device->lock);
	pthread_mutex_unlock(&device->lock);
	while ((job = TAILQ_FIRST(&jobs))) {
		TAILQ_REMOVE(&jobs, job, link);
		job_cancel(job);
	}
	pthread_mutex_lock(&device->lock);
	released = !TAILQ_EMPTY(&queue->dependents);
	release_dependents(queue);
	pthread_mutex_unlock(&device->lock);
	if (released)
		embedded_kick(device);
	embedded_timeline_put(queue->timeline);
	free(queue->base.results);
	free(queue);
}

/* A reset preceded this, so the queue's jobs end without being cancelled here. */
spyre_status embedded_queue_renew(struct spyre_queue *base, int priority)
{
	struct embedded_queue *queue = (struct embedded_queue *)base;
	struct embedded_device *device = queue->device;

	pthread_mutex_lock(&device->lock);
	while (!TAILQ_EMPTY(&queue->jobs))
		pthread_cond_wait(&device->queue_idle, &device->lock);
	queue->failed = false;
	pthread_mutex_unlock(&device->lock);
	return SPYRE_SUCCESS;
}

static void job_enlist_waits(struct embedded_job *job, const struct spyre_submission *s)
{
	for (uint32_t i = 0; i < s->num_waits; i++) {
		struct embedded_queue *on = (struct embedded_queue *)s->waits[i].queue;
		struct embedded_wait *wait = &job->waits[i];

		wait->on = NULL;
		wait->timeline = NULL;
		if (atomic_load(&on->timeline->completed) >= s->waits[i].point)
			continue;
		wait->job = job;
		wait->point = s->waits[i].point;
		if (on->base.card != job->queue->base.card) {
			wait->timeline = embedded_timeline_get(on->timeline);
			job->has_watches = true;
			continue;
		}
		wait->on = on;
		TAILQ_INSERT_TAIL(&on->dependents, wait, link);
		job->pending_waits++;
	}
}

spyre_status embedded_submit(struct spyre_queue *base, const struct spyre_submission *s)
{
	struct embedded_queue *queue = (struct embedded_queue *)base;
	struct embedded_device *device = queue->device;
	struct embedded_job *job;
	bool ready;

	TRY(embedded_card_check((struct embedded_card *)base->card));
	TRY(embedded_workers_start(device));
	TRY(embedded_job_create(queue, s, &job));
	pthread_mutex_lock(&device->lock);
	job_enlist_waits(job, s);
	TAILQ_INSERT_TAIL(&queue->jobs, job, link);
	/* The workers run jobs that arrived or became ready meanwhile. */
	ready = embedded_inline_serve(queue) ? embedded_work_left(device) : queue_ready(queue);
	pthread_mutex_unlock(&device->lock);
	if (ready)
		embedded_kick(device);
	return SPYRE_SUCCESS;
}

static bool reached(struct embedded_queue *queue, uint64_t point)
{
	return atomic_load(&queue->timeline->completed) >= point;
}

static bool spin_reached(struct embedded_queue *queue, uint64_t point)
{
	uint64_t spin_end;
	bool good = false;

	if (!spyre_spin_begin(&queue->spin))
		return false;
	spin_end = spyre_now_ns() + WAIT_SPIN_NS;
	do {
		for (int i = 0; i < 16 && !good; i++) {
			spyre_cpu_relax();
			good = reached(queue, point);
		}
	} while (!good && spyre_now_ns() < spin_end);
	spyre_spin_end(&queue->spin, good);
	return good;
}

spyre_status embedded_wait_point(struct spyre_queue *base, uint64_t point, int64_t deadline_ns)
{
	struct embedded_queue *queue = (struct embedded_queue *)base;
	bool in_time = true;

	if (reached(queue, point))
		return SPYRE_SUCCESS;
	/* A job may take longer than a limit of the wait. */
	if (deadline_ns == INT64_MAX)
		embedded_waiter_serve(queue, point);
	if (reached(queue, point) || spin_reached(queue, point))
		return SPYRE_SUCCESS;
	atomic_fetch_add(&queue->waiters, 1);
	while (in_time) {
		uint32_t wake = atomic_load(&queue->wake);

		if (reached(queue, point))
			break;
		in_time = spyre_futex_wait(&queue->wake, wake, deadline_ns);
	}
	atomic_fetch_sub(&queue->waiters, 1);
	return reached(queue, point) ? SPYRE_SUCCESS : SPYRE_NOT_READY;
}

uint64_t embedded_completed(struct spyre_queue *queue)
{
	return atomic_load_explicit(&((struct embedded_queue *)queue)->timeline->completed,
				    memory_order_acquire);
}
