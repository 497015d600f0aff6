// SPDX-License-Identifier: MIT
/* Uses of a context's memory by streams of other contexts. */
#include <stdlib.h>

#include "libspyre/base/array.h"
#include "libspyre/runtime/peer.h"

struct use {
	struct spyre_context *owner;
	struct spyre_stream *stream;	/* holds a reference */
	uint64_t seq;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct use *uses;
static uint32_t num_uses;
static size_t max_uses;
/* Copy of num_uses: programs without peer copies need not take the lock. */
static _Atomic uint32_t any;

/* The references of removed uses are dropped without the lock: the last one closes a card. */
static struct spyre_stream *remove_use(uint32_t i)
{
	struct spyre_stream *stream = uses[i].stream;

	uses[i] = uses[--num_uses];
	atomic_store(&any, num_uses);
	return stream;
}

static struct use *find_use(const struct spyre_context *owner, const struct spyre_stream *stream)
{
	for (uint32_t i = 0; i < num_uses; i++)
		if (uses[i].owner == owner && uses[i].stream == stream)
			return &uses[i];
	return NULL;
}

bool spyre_peer_use(struct spyre_context *owner, struct spyre_stream *stream, uint64_t seq)
{
	struct use *use;
	bool ok = true;

	pthread_mutex_lock(&lock);
	use = find_use(owner, stream);
	if (use && use->seq < seq) {
		use->seq = seq;
	} else if (!use) {
		ok = spyre_array_reserve(&uses, &max_uses, num_uses + 1, sizeof(*uses));
		if (ok)
			uses[num_uses++] = (struct use){ owner, spyre_stream_ref(stream), seq };
		atomic_store(&any, num_uses);
	}
	pthread_mutex_unlock(&lock);
	return ok;
}

static bool is_pending(const struct use *use, const struct spyre_context *owner)
{
	return use->owner == owner && !spyre_stream_reached(use->stream, use->seq);
}

struct spyre_free_point *spyre_peer_points(struct spyre_context *owner, uint32_t *count)
{
	struct spyre_free_point *points = NULL;
	uint32_t n = 0;

	*count = 0;
	if (!atomic_load(&any))
		return NULL;
	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < num_uses; i++)
		*count += is_pending(&uses[i], owner);
	if (*count)
		points = malloc(*count * sizeof(*points));
	/* A use may end meanwhile, so the second pass may find fewer. */
	for (uint32_t i = 0; points && i < num_uses && n < *count; i++) {
		if (!is_pending(&uses[i], owner))
			continue;
		points[n].stream = spyre_stream_ref(uses[i].stream);
		points[n++].seq = uses[i].seq;
	}
	if (points)
		*count = n;
	pthread_mutex_unlock(&lock);
	return points;
}

spyre_status spyre_peer_check_caller(struct spyre_context *owner)
{
	int stream = -1, card = -1;

	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < num_uses; i++) {
		if (!is_pending(&uses[i], owner) || !spyre_in_stream_thread(uses[i].stream))
			continue;
		stream = uses[i].stream->id;
		card = uses[i].stream->context->index;
	}
	pthread_mutex_unlock(&lock);
	if (stream < 0)
		return SPYRE_SUCCESS;
	return spyre_error(SPYRE_ERROR_BUSY,
			   "spyre_context_destroy: called in a host function of stream %d of card %d, "
			   "which copies from or to this context; call it from another thread", stream,
			   card);
}

/* Takes a use of @context's memory, or by a stream of @context, off the list. */
static bool take_use(const struct spyre_context *context, struct use *use)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < num_uses && !found; i++) {
		if (uses[i].owner != context && uses[i].stream->context != context)
			continue;
		*use = uses[i];
		remove_use(i);
		found = true;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

void spyre_peer_settle(struct spyre_context *context)
{
	struct use use;

	while (take_use(context, &use)) {
		/* An error means that the other card is lost, and the copy with it. */
		(void)spyre_stream_wait_seq(use.stream, use.seq, INT64_MAX);
		spyre_stream_unref(use.stream);
	}
}
