// SPDX-License-Identifier: MIT
/*
 * Earlier readings of each card, and the shares that follow from two of them:
 * "busy in the last second" needs a reading of about a second ago, so a few
 * are kept per card and the best one is taken. Without an earlier reading the
 * shares are unknown, not estimated.
 */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "libspyre/base/array.h"
#include "libspyre/telemetry/sources.h"
#include "model/card.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
/* A reading that follows the last one sooner is not kept; KEPT of them cover 1.2 s. */
#define SPACING (200 * MS)
#define KEPT 7
/* Shorter windows are noise, longer ones are no longer "the last second". */
#define MIN_WINDOW (95 * MS)
#define MAX_WINDOW (2000 * MS)

struct sample {
	uint64_t timestamp_ns;
	uint64_t busy_ns;
	uint64_t macs;
	uint64_t bytes;
};

struct history {
	struct spyre_card_key key;
	struct sample sample[KEPT];	/* oldest first */
	int count;
};

static struct {
	pthread_mutex_t lock;
	struct history *card;
	int count;
	size_t capacity;
} past = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool same_card(const struct spyre_card_key *a, const struct spyre_card_key *b)
{
	return a->pid == b->pid && a->card == b->card && a->sequence == b->sequence &&
	       a->start_time == b->start_time;
}

static struct history *find(const struct spyre_card_key *key)
{
	int i;

	for (i = 0; i < past.count; i++)
		if (same_card(&past.card[i].key, key))
			return &past.card[i];
	return NULL;
}

static struct sample sample_of(const spyre_telemetry_card *card)
{
	return (struct sample){
		.timestamp_ns = card->timestamp_ns,
		.busy_ns = card->busy_ns,
		.macs = card->macs,
		.bytes = card->bytes_read + card->bytes_written,
	};
}

static void derive(spyre_telemetry_card *card, const struct sample *then, const struct sample *now)
{
	uint64_t window = now->timestamp_ns - then->timestamp_ns;
	uint64_t busy = now->busy_ns - then->busy_ns;

	/* The clock is read a little before or after the counter. */
	if (busy > window)
		busy = window;
	card->utilization = (uint32_t)((busy * 100 + window / 2) / window);
	if (card->properties.backend == SPYRE_BACKEND_EMBEDDED)
		spyre_power_model(busy, window, now->macs - then->macs, now->bytes - then->bytes,
				  &card->power_mw, &card->temperature_mc);
}

bool spyre_telemetry_compare(struct spyre_reading *reading)
{
	struct sample now = sample_of(&reading->card);
	const struct sample *best = NULL;
	const struct history *history;
	uint64_t age, off, best_off = UINT64_MAX;
	int i;

	if (reading->card.busy_ns == UINT64_MAX)
		return true;	/* waiting would not bring a reading */
	pthread_mutex_lock(&past.lock);
	history = find(&reading->key);
	for (i = 0; history && i < history->count; i++) {
		age = now.timestamp_ns - history->sample[i].timestamp_ns;
		off = age < SECOND ? SECOND - age : age - SECOND;
		if (age >= MIN_WINDOW && age <= MAX_WINDOW && off < best_off) {
			best = &history->sample[i];
			best_off = off;
		}
	}
	/* Counters that have decreased belong to an earlier load of the module. */
	if (best && best->busy_ns <= now.busy_ns && best->macs <= now.macs &&
	    best->bytes <= now.bytes)
		derive(&reading->card, best, &now);
	pthread_mutex_unlock(&past.lock);
	return best != NULL;
}

/*
 * Drops cards that were not read for long: they are gone or no longer watched. Cards are in another
 * order here than they are read in, so the last reading of one may be later than @now.
 */
static void forget(uint64_t now)
{
	int i, kept = 0;

	for (i = 0; i < past.count; i++) {
		const struct history *history = &past.card[i];
		const uint64_t last = history->sample[history->count - 1].timestamp_ns;

		if (last >= now || now - last <= MAX_WINDOW)
			past.card[kept++] = *history;
	}
	past.count = kept;
}

static struct history *add(const struct spyre_card_key *key, uint64_t now)
{
	forget(now);
	if (!spyre_array_reserve(&past.card, &past.capacity, (size_t)past.count + 1,
				 sizeof(*past.card)))
		return NULL;
	past.card[past.count] = (struct history){ .key = *key };
	return &past.card[past.count++];
}

void spyre_telemetry_remember(const struct spyre_reading *reading)
{
	struct sample sample = sample_of(&reading->card);
	struct history *history;

	pthread_mutex_lock(&past.lock);
	history = find(&reading->key);
	if (!history)
		history = add(&reading->key, sample.timestamp_ns);
	if (history && history->count &&
	    sample.timestamp_ns - history->sample[history->count - 1].timestamp_ns < SPACING)
		history = NULL;		/* the last reading is recent, perhaps of another thread */
	if (history) {
		if (history->count == KEPT)
			memmove(&history->sample[0], &history->sample[1],
				(KEPT - 1) * sizeof(sample));
		else
			history->count++;
		history->sample[history->count - 1] = sample;
	}
	pthread_mutex_unlock(&past.lock);
}
