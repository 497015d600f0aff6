// SPDX-License-Identifier: MIT
/*
 * Work that a stream cannot submit at once: host functions, waits for work that
 * has not been submitted, and operations that follow these. A thread of the
 * stream processes the list in order and sleeps while it is empty. Each stream
 * has its own thread, so that a host function may wait for any other stream.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "libspyre/runtime/stream.h"

/* How long a wait for another stream's thread overlooks that its own stream was reset. */
#define LOOK_NS 10000000

enum item_kind {
	ITEM_WORK,
	ITEM_WAIT,
	ITEM_HOST_FN,
};

struct spyre_stream_item {
	struct spyre_stream_item *next;
	enum item_kind kind;
	uint64_t seq;
	union {
		struct spyre_work work;
		struct spyre_pending_wait wait;
		struct {
			spyre_host_fn fn;
			void *data;
		} host;
	};
	/* ITEM_WORK: the commands, followed by the arguments that they point to. */
	struct spyre_command commands[];
};

static _Thread_local const struct spyre_stream *own_stream;

bool spyre_in_stream_thread(const struct spyre_stream *stream)
{
	return own_stream && (!stream || own_stream == stream);
}

/* Copies @work so that it outlives the caller's; commands of a graph are not copied. */
static struct spyre_stream_item *item_copy_work(const struct spyre_work *work)
{
	uint32_t n = work->segment ? 0 : work->num_commands;
	struct spyre_stream_item *item;

	item = malloc(sizeof(*item) + spyre_commands_bytes(work->commands, n));
	if (!item)
		return NULL;
	item->kind = ITEM_WORK;
	item->work = *work;
	if (work->segment) {
		spyre_segment_ref(work->segment);
	} else {
		item->work.commands = item->commands;
		spyre_commands_copy(item->commands, work->commands, n);
	}
	if (work->kernel) {
		spyre_kernel_ref(work->kernel);
		kernel_variant_ref(work->kernel, work->variant);
	}
	if (work->mark)
		atomic_fetch_add(&work->mark->refs, 1);
	return item;
}

/* Frees the copy of @work. If it was @submitted, its record owns staging and mark. */
static void item_free_work(struct spyre_stream *stream, struct spyre_stream_item *item,
			   bool submitted)
{
	struct spyre_work *work = &item->work;

	if (!submitted && work->staging)
		spyre_staging_put(stream->context, work->staging, work->staging_bytes);
	if (!submitted && work->mark) {
		work->mark->failed = true;
		atomic_store(&work->mark->done, true);
	}
	if (work->mark)
		spyre_mark_unref(work->mark);
	if (work->kernel) {
		kernel_variant_put(work->kernel, work->variant);
		spyre_kernel_unref(work->kernel);
	}
	if (work->segment)
		spyre_segment_unref(work->segment);
}

/* Waits for all operations before @seq, which are submitted or done; no lock held. */
static void wait_before(struct spyre_stream *stream, uint64_t seq)
{
	if (!spyre_stream_reached(stream, seq - 1))
		stream->context->ops->wait(stream->queue, seq - 1, INT64_MAX);
}

/* Marks an operation that the host ended as reached. Drops the held lock meanwhile. */
static void finish_on_host(struct spyre_stream *stream, uint64_t seq)
{
	pthread_mutex_unlock(&stream->lock);
	wait_before(stream, seq);
	pthread_mutex_lock(&stream->lock);
	spyre_stream_retire(stream, seq - 1);
	atomic_store(&stream->host_done, seq);
}

static void run_work(struct spyre_stream *stream, struct spyre_stream_item *item)
{
	spyre_status status = stream->error;

	if (!status) {
		status = spyre_work_submit(stream, &item->work, item->seq);
		if (status)
			spyre_stream_fail(stream, status, item->work.what, item->seq);
	}
	if (status)
		finish_on_host(stream, item->seq);
	item_free_work(stream, item, !status);
}

/* Waits until @stream has submitted @seq, or for a moment. */
static void wait_progress(struct spyre_stream *stream, uint64_t seq)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_nsec += LOOK_NS;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	pthread_mutex_lock(&stream->lock);
	if (atomic_load(&stream->submitted) < seq && !spyre_stream_reached(stream, seq))
		pthread_cond_timedwait(&stream->progress, &stream->lock, &until);
	pthread_mutex_unlock(&stream->lock);
}

static void run_wait(struct spyre_stream *stream, struct spyre_stream_item *item)
{
	struct spyre_stream *other = item->wait.stream;
	uint64_t seq = item->wait.seq;
	spyre_status status;

	/* A reset of this stream cannot signal the other one's progress, so it is looked for. */
	while (!stream->error && atomic_load(&other->submitted) < seq &&
	       !spyre_stream_reached(other, seq)) {
		pthread_mutex_unlock(&stream->lock);
		wait_progress(other, seq);
		pthread_mutex_lock(&stream->lock);
	}

	status = stream->error;
	if (!status)
		status = spyre_stream_add_wait(stream, other, seq);
	if (!status) {
		struct spyre_command command = { .type = SPYRE_COMMAND_TIMESTAMP };
		struct spyre_work work = {
			.what = "wait", .commands = &command, .num_commands = 1,
		};

		status = spyre_work_submit(stream, &work, item->seq);
		if (status)
			spyre_stream_fail(stream, status, "wait for an event", item->seq);
	}
	if (status)
		finish_on_host(stream, item->seq);
	spyre_stream_unref(other);
}

/* Runs also on a stream in error, because the function may have to free @data. */
static void run_host_fn(struct spyre_stream *stream, struct spyre_stream_item *item)
{
	pthread_mutex_unlock(&stream->lock);
	wait_before(stream, item->seq);
	item->host.fn(item->host.data);
	pthread_mutex_lock(&stream->lock);
	spyre_stream_retire(stream, item->seq - 1);
	atomic_store(&stream->host_done, item->seq);
}

static void *stream_main(void *arg)
{
	struct spyre_stream *stream = arg;
	struct spyre_stream_item *item;
	char name[16];

	own_stream = stream;
	snprintf(name, sizeof(name), "spyre-s%d", stream->id);
	pthread_setname_np(pthread_self(), name);
	pthread_mutex_lock(&stream->lock);
	for (;;) {
		while (!stream->items && !stream->stop)
			pthread_cond_wait(&stream->progress, &stream->lock);
		item = stream->items;
		if (!item)
			break;
		/* The item stays listed while it runs, so that later operations queue behind it. */
		if (item->kind == ITEM_WORK)
			run_work(stream, item);
		else if (item->kind == ITEM_WAIT)
			run_wait(stream, item);
		else
			run_host_fn(stream, item);
		stream->items = item->next;
		if (!stream->items)
			stream->items_tail = &stream->items;
		free(item);
		pthread_cond_broadcast(&stream->progress);
	}
	pthread_mutex_unlock(&stream->lock);
	return NULL;
}

static spyre_status thread_start(struct spyre_stream *stream)
{
	sigset_t all, old;
	int err;

	if (stream->has_thread)
		return SPYRE_SUCCESS;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&stream->thread, NULL, stream_main, stream);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		return spyre_error(SPYRE_ERROR_SYSTEM,
				   "stream %d cannot start its thread: %s; check ulimit -u",
				   stream->id, strerror(err));
	stream->has_thread = true;
	return SPYRE_SUCCESS;
}

static spyre_status item_append(struct spyre_stream *stream, struct spyre_stream_item *item,
				uint64_t *seq)
{
	spyre_status status = SPYRE_SUCCESS;

	if (!stream->items)
		status = spyre_stream_flush_waits(stream);
	if (!status)
		status = thread_start(stream);
	if (status)
		return status;
	item->next = NULL;
	item->seq = atomic_load(&stream->tail) + 1;
	atomic_store(&stream->tail, item->seq);
	*stream->items_tail = item;
	stream->items_tail = &item->next;
	if (seq)
		*seq = item->seq;
	pthread_cond_broadcast(&stream->progress);
	return SPYRE_SUCCESS;
}

spyre_status spyre_stream_defer_work(struct spyre_stream *stream, const struct spyre_work *work,
				     uint64_t *seq)
{
	struct spyre_stream_item *item = item_copy_work(work);

	if (!item)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "stream %d: no memory to queue the %s",
				   stream->id, work->what);
	/* The list is not empty, so its thread exists and appending cannot fail. */
	return item_append(stream, item, seq);
}

spyre_status spyre_stream_defer_wait(struct spyre_stream *stream, struct spyre_stream *other,
				     uint64_t seq)
{
	struct spyre_stream_item *item = malloc(sizeof(*item));
	spyre_status status;

	if (!item)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "stream %d: no memory for a wait",
				   stream->id);
	item->kind = ITEM_WAIT;
	item->wait.stream = spyre_stream_ref(other);
	item->wait.seq = seq;
	status = item_append(stream, item, NULL);
	if (status) {
		spyre_stream_unref(other);
		free(item);
	}
	return status;
}

spyre_status spyre_stream_defer_host_fn(struct spyre_stream *stream, spyre_host_fn fn, void *data,
					uint64_t *seq)
{
	struct spyre_stream_item *item = malloc(sizeof(*item));
	spyre_status status;

	if (!item)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "stream %d: no memory for a host function",
				   stream->id);
	item->kind = ITEM_HOST_FN;
	item->host.fn = fn;
	item->host.data = data;
	status = item_append(stream, item, seq);
	if (status)
		free(item);
	return status;
}

void spyre_stream_stop_thread(struct spyre_stream *stream)
{
	pthread_mutex_lock(&stream->lock);
	stream->stop = true;
	pthread_cond_broadcast(&stream->progress);
	pthread_mutex_unlock(&stream->lock);
	if (stream->has_thread)
		pthread_join(stream->thread, NULL);
	stream->has_thread = false;
}
