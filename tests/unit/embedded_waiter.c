// SPDX-License-Identifier: MIT
/*
 * A thread that waits for a job of an embedded card runs the job itself if no worker has taken
 * it, and the card uses no more threads than it has.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <unistd.h>

#include "libspyre/backend/embedded.h"
#include "libspyre/runtime/context.h"
#include "runtime_check.h"

/* Too much for a job that runs inline when it is submitted. */
#define BYTES (4u << 20)
#define ITEMS 64
#define MOMENT_US 50000

enum spyre_stop __real_spyre_card_copy(struct spyre_host *host, void *job,
				       struct spyre_worker *self, u8 *dst, const u8 *src,
				       u64 bytes);
enum spyre_stop __wrap_spyre_card_copy(struct spyre_host *host, void *job,
				       struct spyre_worker *self, u8 *dst, const u8 *src,
				       u64 bytes);

/* Of the copies that the card has executed. */
static struct {
	pthread_t thread;
	atomic_int jobs, now, most;
	/* Each copy has a section of ITEMS items, takes long, or waits for @go. */
	bool has_section;
	bool takes_long;
	sem_t *go;
	/* Threads that have executed an item. */
	pthread_mutex_t lock;
	pthread_t threads[ITEMS];
	int num_threads;
} seen = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void item(void *arg, u32 index, struct spyre_worker *self)
{
	int i = 0;

	pthread_mutex_lock(&seen.lock);
	while (i < seen.num_threads && !pthread_equal(seen.threads[i], pthread_self()))
		i++;
	if (i == seen.num_threads)
		seen.threads[seen.num_threads++] = pthread_self();
	pthread_mutex_unlock(&seen.lock);
	usleep(1000);
}

/* The linker redirects all calls of the card's function here. */
enum spyre_stop __wrap_spyre_card_copy(struct spyre_host *host, void *job,
				       struct spyre_worker *self, u8 *dst, const u8 *src,
				       u64 bytes)
{
	const int now = atomic_fetch_add(&seen.now, 1) + 1;
	enum spyre_stop stop;

	if (now > atomic_load(&seen.most))
		atomic_store(&seen.most, now);
	seen.thread = pthread_self();
	if (seen.has_section)
		host->parallel(host, self, ITEMS, item, NULL);
	else if (seen.takes_long)
		usleep(MOMENT_US / 10);
	else if (seen.go)
		sem_wait(seen.go);
	stop = __real_spyre_card_copy(host, job, self, dst, src, bytes);
	atomic_fetch_sub(&seen.now, 1);
	atomic_fetch_add(&seen.jobs, 1);
	return stop;
}

static struct embedded_device *device_of(const spyre_context *context)
{
	return ((struct embedded_card *)context->card)->device;
}

/* The workers end as they do when the card is closed, which then finds no work left. */
static void stop_workers(spyre_context *context)
{
	struct embedded_device *device = device_of(context);

	pthread_mutex_lock(&device->lock);
	/* A worker publishes the end of a job before it looks for the next one. */
	while (device->running) {
		pthread_mutex_unlock(&device->lock);
		usleep(100);
		pthread_mutex_lock(&device->lock);
	}
	device->stop = true;
	pthread_mutex_unlock(&device->lock);
}

static spyre_devptr allocate(spyre_context *context)
{
	spyre_devptr memory;

	ck_ok(spyre_mem_alloc(context, BYTES, &memory));
	return memory;
}

/* Only the thread that waits without a limit can have run the job: there is no worker. */
START_TEST(runs_what_it_waits_for)
{
	spyre_context *context;
	spyre_stream *stream;
	spyre_devptr from, to;
	spyre_event *event;
	const uint8_t seven = 7;
	uint8_t byte = 0;

	setenv("SPYRE_EMBEDDED_THREADS", "1", 1);
	context = open_card();
	stream = get_stream(context, SPYRE_STREAM_DEFAULT);
	from = allocate(context);
	to = allocate(context);
	ck_ok(spyre_event_create(context, SPYRE_EVENT_NO_TIMING, &event));
	ck_ok(spyre_memset_async(stream, from, &seven, 1, BYTES));
	ck_ok(spyre_stream_synchronize(stream));
	stop_workers(context);
	for (int i = 1; i < 4; i++) {
		ck_ok(spyre_memcpy_d2d_async(stream, to, from, BYTES));
		ck_ok(spyre_event_record(event, stream));
		ck_ok(spyre_memcpy_d2d_async(stream, from, to, BYTES));
		ck_status(spyre_event_synchronize_for(event, 1), SPYRE_NOT_READY);
		ck_assert_int_eq(atomic_load(&seen.jobs), 2 * i - 2);
		/* Not more than it waits for: the second copy may take long. */
		ck_ok(spyre_event_synchronize(event));
		ck_assert_int_eq(atomic_load(&seen.jobs), 2 * i - 1);
		ck_ok(spyre_stream_synchronize(stream));
		ck_assert_int_eq(atomic_load(&seen.jobs), 2 * i);
		ck_assert(pthread_equal(seen.thread, pthread_self()));
	}
	ck_ok(spyre_memcpy_d2h(context, &byte, to + BYTES - 1, 1));
	ck_assert_uint_eq(byte, seven);
	ck_ok(spyre_context_destroy(context));
}
END_TEST

/* Workers, which have slept meanwhile, get the jobs that nothing waits for. */
START_TEST(hands_on_the_rest)
{
	spyre_stream *streams[2];
	spyre_context *context;
	spyre_devptr from, to;
	spyre_event *event;

	setenv("SPYRE_EMBEDDED_THREADS", "1", 1);
	context = open_card();
	from = allocate(context);
	to = allocate(context);
	ck_ok(spyre_event_create(context, SPYRE_EVENT_NO_TIMING, &event));
	for (int i = 0; i < 2; i++)
		streams[i] = get_stream(context, i + 1);
	seen.takes_long = true;
	for (int i = 0; i < 20; i++) {
		ck_ok(spyre_memcpy_d2d_async(streams[0], to, from, BYTES));
		ck_ok(spyre_event_record(event, streams[0]));
		/* The next job of its own stream, or the job of another one. */
		ck_ok(spyre_stream_wait_event(streams[1], event));
		ck_ok(spyre_memcpy_d2d_async(streams[i % 2], to, from, BYTES));
		ck_ok(spyre_event_synchronize(event));
		while (spyre_stream_query(streams[i % 2]) == SPYRE_NOT_READY)
			usleep(1000);
		ck_assert_int_eq(atomic_load(&seen.jobs), 2 * i + 2);
	}
	ck_ok(spyre_context_destroy(context));
}
END_TEST

static void *let_go(void *argument)
{
	usleep(MOMENT_US);
	for (int i = 0; i < 2; i++)
		sem_post(argument);
	return NULL;
}

/* While the card's only thread executes a job, a thread that waits for another one sleeps. */
START_TEST(leaves_jobs_to_a_busy_card)
{
	spyre_stream *streams[2];
	spyre_context *context;
	pthread_t thread;
	sem_t go;

	sem_init(&go, 0, 0);
	seen.go = &go;
	setenv("SPYRE_EMBEDDED_THREADS", "1", 1);
	context = open_card();
	for (int i = 0; i < 2; i++) {
		streams[i] = get_stream(context, i + 1);
		ck_ok(spyre_memcpy_d2d_async(streams[i], allocate(context), allocate(context),
					     BYTES));
		/* The worker has the first job before anything waits. */
		while (!i && !atomic_load(&seen.now))
			usleep(100);
	}
	ck_assert_int_eq(pthread_create(&thread, NULL, let_go, &go), 0);
	ck_ok(spyre_stream_synchronize(streams[1]));
	ck_ok(spyre_stream_synchronize(streams[0]));
	ck_assert_int_eq(atomic_load(&seen.jobs), 2);
	ck_assert_int_eq(atomic_load(&seen.most), 1);
	pthread_join(thread, NULL);
	ck_ok(spyre_context_destroy(context));
	sem_destroy(&go);
}
END_TEST

/* A section of the waiting thread has as many helpers as a worker's: one less than threads. */
START_TEST(has_no_more_helpers)
{
	spyre_context *context;
	spyre_stream *stream;
	spyre_devptr memory[2];

	setenv("SPYRE_EMBEDDED_THREADS", "2", 1);
	context = open_card();
	stream = get_stream(context, SPYRE_STREAM_DEFAULT);
	for (int i = 0; i < 2; i++)
		memory[i] = allocate(context);
	seen.has_section = true;
	for (int i = 0; i < 10; i++) {
		seen.num_threads = 0;
		ck_ok(spyre_memcpy_d2d_async(stream, memory[0], memory[1], BYTES));
		ck_ok(spyre_stream_synchronize(stream));
		ck_assert_int_ge(seen.num_threads, 1);
		ck_assert_int_le(seen.num_threads, 2);
	}
	ck_ok(spyre_context_destroy(context));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("embedded_waiter");
	TCase *tcase = tcase_create("waiter");

	setenv("SPYRE_BACKEND", "embedded", 1);
	tcase_add_test(tcase, runs_what_it_waits_for);
	tcase_add_test(tcase, hands_on_the_rest);
	tcase_add_test(tcase, leaves_jobs_to_a_busy_card);
	tcase_add_test(tcase, has_no_more_helpers);
	suite_add_tcase(suite, tcase);
	return suite_run(suite);
}
