// SPDX-License-Identifier: MIT
/* The thread that updates the files of metrics of the cards that this process has open. */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "libspyre/base/array.h"
#include "libspyre/base/error.h"
#include "libspyre/base/log.h"
#include "libspyre/telemetry/metrics.h"

struct watched {
	char bus_id[32];
	bool embedded;
	unsigned int contexts;
	struct spyre_metrics_file file;
};

static struct {
	pthread_mutex_t lock;	/* protects the rest */
	pthread_cond_t changed;	/* @count became 0 */
	struct watched *card;
	size_t count;
	size_t capacity;
	bool running;		/* there is a thread, which may be about to end */
} watch = { .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER };

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A child has neither the thread nor the contexts; the lock may be the thread's. */
static void in_child(void)
{
	pthread_mutex_init(&watch.lock, NULL);
	pthread_cond_init(&watch.changed, NULL);
	for (size_t i = 0; i < watch.count; i++)
		spyre_metrics_file_close(&watch.card[i].file);
	watch.count = 0;
	watch.running = false;
}

static void start(void)
{
	pthread_atfork(NULL, NULL, in_child);
}

/* Updates the files by the readings of @cards. The caller holds the lock. */
static void update(const spyre_telemetry_card *cards, int count)
{
	for (size_t i = 0; i < watch.count; i++)
		for (int k = 0; k < count; k++)
			if (cards[k].host_pid == (watch.card[i].embedded ? getpid() : 0) &&
			    !strcmp(cards[k].properties.bus_id, watch.card[i].bus_id))
				spyre_metrics_file_update(&watch.card[i].file, &cards[k]);
}

/* Reads all cards into @cards, which grows; -1 if that fails. */
static int read_cards(spyre_telemetry_card **cards, size_t *capacity)
{
	int count = 0;

	if (spyre_telemetry_cards(*cards, sizeof(**cards), (int)*capacity, &count))
		return -1;
	if ((size_t)count <= *capacity)
		return count;
	/* More cards came: the next reading has them. */
	if (!spyre_array_reserve(cards, capacity, (size_t)count, sizeof(**cards)))
		return -1;
	return read_cards(cards, capacity);
}

static void *run(void *unused)
{
	spyre_telemetry_card *cards = NULL;
	struct timespec until;
	size_t capacity = 0;
	int count;

	pthread_mutex_lock(&watch.lock);
	while (watch.count) {
		/* Reading takes a tenth of a second at first, so it is not done with the lock. */
		pthread_mutex_unlock(&watch.lock);
		count = read_cards(&cards, &capacity);
		pthread_mutex_lock(&watch.lock);
		update(cards, count);
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += SPYRE_METRICS_INTERVAL_MS / 1000;
		while (watch.count &&
		       pthread_cond_timedwait(&watch.changed, &watch.lock, &until) != ETIMEDOUT)
			;
	}
	watch.running = false;
	pthread_mutex_unlock(&watch.lock);
	free(cards);
	return unused;
}

static void run_thread(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	int error;

	if (watch.running)
		return;
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	error = pthread_create(&thread, &attr, run, NULL);
	pthread_attr_destroy(&attr);
	watch.running = !error;
	if (error)
		spyre_log(SPYRE_LOG_WARN, "SPYRE_METRICS: cannot create a thread: %s",
			  strerror(error));
}

static struct watched *find(const spyre_device_properties *properties)
{
	for (size_t i = 0; i < watch.count; i++)
		if (!strcmp(watch.card[i].bus_id, properties->bus_id))
			return &watch.card[i];
	return NULL;
}

void spyre_metrics_hold(const spyre_device_properties *properties)
{
	const char *pattern = secure_getenv("SPYRE_METRICS");
	struct watched *card;

	if (!pattern || !*pattern)
		return;
	pthread_once(&once, start);
	pthread_mutex_lock(&watch.lock);
	card = find(properties);
	if (!card && spyre_array_reserve(&watch.card, &watch.capacity, watch.count + 1,
					 sizeof(*card))) {
		card = &watch.card[watch.count++];
		memset(card, 0, sizeof(*card));
		memcpy(card->bus_id, properties->bus_id, sizeof(card->bus_id));
		card->embedded = properties->backend == SPYRE_BACKEND_EMBEDDED;
		spyre_metrics_file_open(&card->file, pattern, card->bus_id);
		run_thread();
	}
	if (card)
		card->contexts++;
	pthread_mutex_unlock(&watch.lock);
}

void spyre_metrics_release(const spyre_device_properties *properties)
{
	struct watched *card;

	pthread_mutex_lock(&watch.lock);
	card = find(properties);
	if (card && !--card->contexts) {
		spyre_metrics_file_close(&card->file);
		*card = watch.card[--watch.count];
		pthread_cond_broadcast(&watch.changed);
	}
	pthread_mutex_unlock(&watch.lock);
}
