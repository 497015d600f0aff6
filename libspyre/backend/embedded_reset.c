// SPDX-License-Identifier: MIT
/*
 * Failures and resets of embedded cards. A reset does not visit jobs: a context
 * counts its resets (the epoch) and a device its own (the generation). A job of
 * an older count, or of an epoch in which the context has failed, stops if it
 * runs and does not start if it waits.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <time.h>

#include "libspyre/backend/embedded.h"
#include "libspyre/telemetry/event_log.h"

/* Running jobs stop at the next tile, so this limit is a safety net only. */
#define RESET_TIMEOUT_S 10

/* This outlives the devices, which exist only while contexts have them open. */
static _Atomic uint64_t generations[EMBEDDED_MAX_CARDS];

uint64_t embedded_generation(int index)
{
	return atomic_load_explicit(&generations[index], memory_order_relaxed);
}

static bool is_stale(const struct embedded_card *card)
{
	return embedded_generation(card->device->index) != card->generation;
}

static bool is_faulted(const struct embedded_card *card)
{
	return atomic_load_explicit(&card->faulted, memory_order_relaxed) ==
	       atomic_load_explicit(&card->epoch, memory_order_relaxed) + 1ull;
}

bool embedded_card_lost(const struct embedded_card *card)
{
	return is_stale(card) || is_faulted(card);
}

static spyre_status stale_error(const struct embedded_card *card)
{
	return spyre_error(SPYRE_ERROR_DEVICE_RESET,
			   "embedded card %d was reset (generation %" PRIu64 ", the context is of %"
			   PRIu64 "): destroy the context and create another", card->device->index,
			   embedded_generation(card->device->index), card->generation);
}

spyre_status embedded_card_check(struct embedded_card *card)
{
	if (is_stale(card))
		return stale_error(card);
	if (is_faulted(card))
		return spyre_error(SPYRE_ERROR_CANCELLED,
				   "embedded card %d takes no work of this context, since work of it "
				   "had failed; spyre_context_get_state() says which",
				   card->device->index);
	return SPYRE_SUCCESS;
}

static _Atomic uint64_t *fault_total(struct spyre_telemetry_page *page, enum spyre_fault_kind kind)
{
	switch (kind) {
	case SPYRE_FAULT_KIND_TIMEOUT:
		return &page->faults_timeout;
	case SPYRE_FAULT_KIND_ACCESS:
		return &page->faults_access;
	case SPYRE_FAULT_KIND_ESCAPE:
		return &page->faults_escape;
	default:
		return &page->faults_compute;
	}
}

bool embedded_card_fault(struct embedded_job *job, enum spyre_fault_kind kind)
{
	struct embedded_card *card = (struct embedded_card *)job->queue->base.card;
	struct spyre_telemetry_page *page = card->device->page;
	bool first;

	/* As in the kernel, only the first fault counts until the context is reset. */
	first = atomic_exchange(&card->faulted, job->epoch + 1ull) != job->epoch + 1ull;
	if (first && page)
		spyre_telemetry_count(fault_total(page, kind), 1);
	embedded_device_look(card->device);
	return first;
}

void embedded_fault_log(const struct embedded_device *device, enum spyre_fault_kind kind)
{
	if (kind != SPYRE_FAULT_KIND_NONE && device->page)
		spyre_event_log(device->page, SPYRE_TELEMETRY_FAULT, (spyre_fault)kind, 0);
}

bool embedded_job_is_old(const struct embedded_job *job)
{
	const struct embedded_card *card = (struct embedded_card *)job->queue->base.card;

	return atomic_load_explicit(&card->epoch, memory_order_relaxed) != job->epoch ||
	       atomic_load_explicit(&card->faulted, memory_order_relaxed) == job->epoch + 1ull ||
	       is_stale(card);
}

spyre_status embedded_state(struct spyre_card *base, struct spyre_card_state *state)
{
	struct embedded_card *card = (struct embedded_card *)base;

	*state = (struct spyre_card_state){
		.health = is_stale(card) ? SPYRE_CONTEXT_STALE :
			  is_faulted(card) ? SPYRE_CONTEXT_FAULTED : SPYRE_CONTEXT_OK,
		.generation = card->generation,
		.card_generation = embedded_generation(card->device->index),
	};
	return SPYRE_SUCCESS;
}

spyre_status embedded_context_reset(struct spyre_card *base, bool repeated)
{
	struct embedded_card *card = (struct embedded_card *)base;

	if (is_stale(card))
		return stale_error(card);
	atomic_fetch_add(&card->epoch, 1);
	if (!repeated && card->device->page) {
		spyre_telemetry_count(&card->device->page->resets, 1);
		spyre_event_log(card->device->page, SPYRE_TELEMETRY_CONTEXT_RESET, 0, 0);
	}
	embedded_device_look(card->device);
	return SPYRE_SUCCESS;
}

/* Waits until the jobs of before the reset have ended. */
static spyre_status device_drain(struct embedded_device *device)
{
	struct timespec end;
	int err = 0;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += RESET_TIMEOUT_S;
	pthread_mutex_lock(&device->lock);
	while (!err && (device->running || !TAILQ_EMPTY(&device->runnable[0]) ||
			!TAILQ_EMPTY(&device->runnable[1])))
		err = pthread_cond_timedwait(&device->queue_idle, &device->lock, &end);
	pthread_mutex_unlock(&device->lock);
	if (!err)
		return SPYRE_SUCCESS;
	return spyre_error(SPYRE_ERROR_DEVICE_LOST,
			   "embedded card %d: work did not stop within %d s", device->index,
			   RESET_TIMEOUT_S);
}

spyre_status embedded_device_reset(int index, uint64_t *generation)
{
	struct embedded_device *device;
	spyre_status status;

	status = embedded_device_get(index, &device);
	if (status)
		return status;
	*generation = atomic_fetch_add(&generations[index], 1) + 1;
	if (device->page)
		spyre_telemetry_count(&device->page->generation, 1);
	embedded_device_look(device);
	status = device_drain(device);
	if (device->page)
		spyre_event_log(device->page, SPYRE_TELEMETRY_CARD_RESET, SPYRE_FAULT_NONE,
				*generation);
	embedded_device_put(device);
	return status;
}
