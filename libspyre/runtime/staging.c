// SPDX-License-Identifier: MIT
/*
 * Pinned memory for copies that go through the host. A few blocks are kept,
 * because faulting in new pages takes longer than the copies.
 */
#include "libspyre/runtime/context.h"

#define MAX_KEPT (UINT64_C(64) << 20)

spyre_status spyre_staging_get(struct spyre_context *context, size_t *bytes, void **memory)
{
	struct spyre_staging *s = &context->staging;
	int best = -1;

	pthread_mutex_lock(&s->lock);
	for (int i = 0; i < SPYRE_STAGING_BLOCKS; i++)
		if (s->block[i].bytes >= *bytes && s->block[i].bytes / 4 <= *bytes &&
		    (best < 0 || s->block[i].bytes < s->block[best].bytes))
			best = i;
	if (best >= 0) {
		*bytes = s->block[best].bytes;
		*memory = s->block[best].memory;
		s->kept -= *bytes;
		s->block[best].bytes = 0;
	}
	pthread_mutex_unlock(&s->lock);
	return best >= 0 ? SPYRE_SUCCESS : context->ops->host_alloc(context->card, *bytes, memory);
}

void spyre_staging_put(struct spyre_context *context, void *memory, size_t bytes)
{
	struct spyre_staging *s = &context->staging;
	bool kept = false;

	pthread_mutex_lock(&s->lock);
	for (int i = 0; i < SPYRE_STAGING_BLOCKS && !kept && s->kept + bytes <= MAX_KEPT; i++) {
		if (s->block[i].bytes)
			continue;
		s->block[i].memory = memory;
		s->block[i].bytes = bytes;
		s->kept += bytes;
		kept = true;
	}
	pthread_mutex_unlock(&s->lock);
	if (!kept)
		context->ops->host_free(context->card, memory, bytes);
}

void spyre_staging_drop(struct spyre_context *context)
{
	struct spyre_staging *s = &context->staging;

	for (int i = 0; i < SPYRE_STAGING_BLOCKS; i++)
		if (s->block[i].bytes)
			context->ops->host_free(context->card, s->block[i].memory,
						s->block[i].bytes);
	pthread_mutex_destroy(&s->lock);
}
