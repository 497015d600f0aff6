// SPDX-License-Identifier: MIT
/*
 * Copies between two contexts of this process. The far end is resolved to a host address
 * like the near one. The runtime keeps the memory, and its context, until the job has ended.
 */
#define _GNU_SOURCE
#include <inttypes.h>

#include "libspyre/backend/embedded.h"

static spyre_status no_address(const char *end, uint64_t va, uint64_t bytes)
{
	return spyre_error(SPYRE_ERROR_INVALID_ADDRESS,
			   "the %s end of a peer copy: %" PRIu64 " bytes at 0x%" PRIx64
			   " are not within one mapped range of its context", end, bytes, va);
}

/* Host address of one end, whose bytes are populated unless they are few among the gaps. */
static uint8_t *resolve(struct embedded_card *card, const struct spyre_rows *rows, uint64_t va,
			uint64_t reach, bool write)
{
	struct embedded_map *map = embedded_find_map(card, va, reach);

	if (!map)
		return NULL;
	if (reach / 2 <= rows->rows * rows->row_bytes)
		embedded_warm(card, map, va, reach, write);
	return embedded_host(card, va);
}

static spyre_status check_rows(const struct spyre_rows *rows, uint64_t *dst, uint64_t *src)
{
	enum spyre_stop stop = spyre_rows_check(rows, dst, src);

	if (stop)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "peer copy of %" PRIu64 " rows of %" PRIu64 " bytes refused: %s",
				   rows->rows, rows->row_bytes, spyre_stop_name(stop));
	return SPYRE_SUCCESS;
}

spyre_status embedded_peer_resolve(const struct spyre_command *in, struct embedded_command *out)
{
	struct embedded_card *far = (struct embedded_card *)in->peer.card;
	uint64_t dst, src, reach;
	uint8_t *host;

	TRY(check_rows(&in->peer.rows, &dst, &src));
	if (embedded_card_lost(far))
		return spyre_error(SPYRE_ERROR_PEER_LOST,
				   "the context of embedded card %d at the far end of a peer copy has "
				   "failed, or its card was reset; reset or replace that context first",
				   far->device->index);
	reach = in->peer.sends ? dst : src;
	pthread_rwlock_rdlock(&far->maps_lock);
	host = resolve(far, &in->peer.rows, in->peer.remote, reach, in->peer.sends);
	pthread_rwlock_unlock(&far->maps_lock);
	if (!host)
		return no_address("far", in->peer.remote, reach);
	out->peer.card = far;
	out->peer.rows = in->peer.rows;
	if (in->peer.sends)
		out->peer.dst = host;
	else
		out->peer.src = host;
	return SPYRE_SUCCESS;
}

spyre_status embedded_peer_check(struct embedded_card *card, const struct spyre_command *in,
				 struct embedded_command *out)
{
	const struct spyre_rows *rows = &in->peer.rows;
	enum spyre_link link = spyre_link_between(card->base.link_index,
						  in->peer.card->link_index);
	uint64_t dst, src, reach;
	uint8_t *host;

	TRY(check_rows(rows, &dst, &src));
	reach = in->peer.sends ? src : dst;
	host = resolve(card, rows, in->peer.local, reach, !in->peer.sends);
	if (!host)
		return no_address("near", in->peer.local, reach);
	if (in->peer.sends)
		out->peer.src = host;
	else
		out->peer.dst = host;
	spyre_cost_rows(rows, link, in->peer.sends, &out->cost);
	return SPYRE_SUCCESS;
}

bool embedded_peer_lost(const struct embedded_job *job)
{
	for (uint32_t i = 0; i < job->num_commands; i++)
		if (job->commands[i].type == SPYRE_COMMAND_PEER &&
		    embedded_card_lost(job->commands[i].peer.card))
			return true;
	return false;
}

enum spyre_stop embedded_peer_run(struct spyre_host *host, struct embedded_job *job,
				  struct spyre_worker *self, const struct embedded_command *c)
{
	return spyre_card_copy_rows(host, job, self, &c->peer.rows, c->peer.dst, c->peer.src);
}
