// SPDX-License-Identifier: MIT
/* One context's view of an embedded card, its programs, and the vtable. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libspyre/backend/embedded.h"
#include "libspyre/base/environment.h"

static spyre_status card_open(int index, struct spyre_card **out)
{
	enum spyre_env_submit submit;
	struct embedded_card *card;
	spyre_status status;

	/* Embedded cards have one path only, but an invalid SPYRE_SUBMIT is an error here too. */
	status = spyre_env_submit(&submit);
	if (status)
		return status;
	card = calloc(1, sizeof(*card));
	if (!card)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "no memory for embedded card %d", index);
	status = embedded_device_get(index, &card->device);
	if (!status) {
		status = embedded_properties(index, &card->base.properties);
		if (!status)
			status = embedded_memory_init(card);
		if (status)
			embedded_device_put(card->device);
	}
	if (status) {
		free(card);
		return status;
	}
	card->base.ops = &spyre_backend_embedded;
	card->base.boxes = true;
	card->base.peers = true;
	card->base.link_index = index;
	card->generation = embedded_generation(index);
	/* The environment may have changed since the device was started. */
	card->base.properties.num_cores = card->device->config.cores;
	card->base.submit_path = SPYRE_SUBMIT_DIRECT;
	snprintf(card->base.submit_reason, sizeof(card->base.submit_reason),
		 "the card is in this process");
	card->base.properties.memory_bytes = card->device->config.lpddr_bytes;
	pthread_rwlock_init(&card->maps_lock, NULL);
	*out = &card->base;
	return SPYRE_SUCCESS;
}

static void card_close(struct spyre_card *base)
{
	struct embedded_card *card = (struct embedded_card *)base;

	embedded_memory_fini(card);
	embedded_device_put(card->device);
	pthread_rwlock_destroy(&card->maps_lock);
	free(card);
}

/* Keeps the image instead of a copy: the caller is this library, which forgets it. */
static spyre_status program_create(struct spyre_card *base, void **image, size_t bytes,
				   struct spyre_program_handle **out,
				   struct spyre_verify_error *why)
{
	struct embedded_card *card = (struct embedded_card *)base;
	struct embedded_program *program;
	spyre_status status = embedded_card_check(card);

	if (status)
		return status;
	program = calloc(1, sizeof(*program));
	if (!program)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "no memory for a program of %zu bytes", bytes);
	memset(why, 0, sizeof(*why));
	if (spyre_program_verify(*image, bytes, card->device->config.cores, &program->program,
				 why)) {
		free(program);
		return spyre_error(SPYRE_ERROR_VERIFY, "the card refused the program: %s",
				   spyre_stop_name(why->stop));
	}
	/* Programs live in segment 7 and count against the card's capacity. */
	program->charged = (bytes + SPYRE_VA_PAGE - 1) & ~(SPYRE_VA_PAGE - 1);
	if (!embedded_charge(card->device, program->charged)) {
		uint64_t charged = program->charged;

		free(program);
		return spyre_error(SPYRE_ERROR_OUT_OF_DEVICE_MEMORY,
				   "embedded card %d has no %" PRIu64
				   " bytes for a program; free device memory, or raise SPYRE_EMBEDDED_LPDDR_MIB",
				   card->device->index, charged);
	}
	atomic_init(&program->refs, 1);
	program->base.card = base;
	program->base.cost = program->program.cost;
	program->image = *image;
	*image = NULL;
	*out = &program->base;
	return SPYRE_SUCCESS;
}

void embedded_program_put(struct embedded_program *program)
{
	struct embedded_card *card = (struct embedded_card *)program->base.card;

	if (atomic_fetch_sub(&program->refs, 1) != 1)
		return;
	embedded_uncharge(card->device, program->charged);
	free(program->image);
	free(program);
}

static void program_destroy(struct spyre_program_handle *program)
{
	embedded_program_put((struct embedded_program *)program);
}

static spyre_status embedded_peer_index(int index, int32_t *card)
{
	*card = index;
	return SPYRE_SUCCESS;
}

const struct spyre_backend_ops spyre_backend_embedded = {
	.id = SPYRE_BACKEND_EMBEDDED,
	.count = embedded_count,
	.properties = embedded_properties,
	.peer_index = embedded_peer_index,
	.open = card_open,
	.close = card_close,
	.mem_info = embedded_mem_info,
	.mem_map = embedded_mem_map,
	.mem_unmap = embedded_mem_unmap,
	.host_alloc = embedded_host_alloc,
	.host_free = embedded_host_free,
	.program_create = program_create,
	.program_destroy = program_destroy,
	.queue_create = embedded_queue_create,
	.queue_destroy = embedded_queue_destroy,
	.submit = embedded_submit,
	.wait = embedded_wait_point,
	.completed = embedded_completed,
	.state = embedded_state,
	.context_reset = embedded_context_reset,
	.queue_renew = embedded_queue_renew,
	.device_reset = embedded_device_reset,
};
