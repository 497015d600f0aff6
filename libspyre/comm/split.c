// SPDX-License-Identifier: MIT
/*
 * New communicators of the ranks of an old one. The ranks exchange letters over their control
 * connections, which work even after the communicator has failed: their colours first, then the
 * id that the first rank of each group creates.
 */
#include <stdlib.h>

#include "libspyre/comm/comm.h"

struct color {
	int32_t color;
	int32_t key;
};

/* The ranks of a group in their new order. */
struct members {
	uint32_t rank[SPYRE_COMM_MAX_RANKS];
	uint32_t count;
};

static spyre_status check(spyre_comm *comm, const void *out, const char *function,
			  const char *name)
{
	if (!comm || !out)
		return spyre_null_argument(function, comm ? name : "comm");
	return spyre_context_check(comm->context);
}

/*
 * Fails the communicator if the ranks could not exchange their letters: those that are left would
 * be read by the next split, and other ranks wait for letters that will not come.
 */
static spyre_status exchanged(spyre_comm *comm, spyre_status status)
{
	return status ? comm_fail(comm, status, true) : status;
}

/*
 * The caller's options for the new communicator, with the old one's limit as the default. The
 * limit holds for the letters too: ranks that recover from a short one arrive later than that.
 */
static spyre_comm_config new_config(const spyre_comm *comm, const spyre_comm_config *config)
{
	spyre_comm_config own = { .struct_size = sizeof(own) };

	if (config)
		spyre_struct_write(&own, sizeof(own), config, config->struct_size);
	if (!own.timeout_ms)
		own.timeout_ms = comm->timeout_ns / 1000000;
	own.timeout_ms = comm_timeout_ms(own.timeout_ms);
	return own;
}

/* Sends this rank's colour to all others and collects theirs. */
static spyre_status exchange_colors(spyre_comm *comm, struct color *colors, uint64_t timeout_ms)
{
	for (uint32_t i = 0; i < comm->size; i++)
		if (i != comm->rank)
			TRY(comm_letter_send(comm, i, COMM_LETTER_COLOR, &colors[comm->rank],
					     sizeof(colors[0])));
	for (uint32_t i = 0; i < comm->size; i++)
		if (i != comm->rank)
			TRY(comm_letter_wait(comm, i, COMM_LETTER_COLOR, &colors[i],
					     sizeof(colors[i]), timeout_ms));
	return SPYRE_SUCCESS;
}

/* Inserts @rank behind those with the same or a smaller key. */
static void insert(struct members *members, const struct color *colors, uint32_t rank)
{
	uint32_t at = members->count++;

	for (; at && colors[members->rank[at - 1]].key > colors[rank].key; at--)
		members->rank[at] = members->rank[at - 1];
	members->rank[at] = rank;
}

/* Passes the id of the new communicator, which its first rank creates, to all of @members. */
static spyre_status share_id(spyre_comm *comm, const struct members *members, uint32_t kind,
			     spyre_comm_id *id, uint64_t timeout_ms)
{
	if (members->rank[0] != comm->rank)
		return comm_letter_wait(comm, members->rank[0], kind, id, sizeof(*id), timeout_ms);
	TRY(spyre_comm_get_id(id));
	for (uint32_t i = 1; i < members->count; i++)
		TRY(comm_letter_send(comm, members->rank[i], kind, id, sizeof(*id)));
	return SPYRE_SUCCESS;
}

static spyre_status join(spyre_comm *comm, const struct members *members, const spyre_comm_id *id,
			 const spyre_comm_config *config, spyre_comm **joined)
{
	uint32_t rank = 0;

	while (members->rank[rank] != comm->rank)
		rank++;
	return spyre_comm_init_rank(comm->context, members->count, id, rank, config, joined);
}

spyre_status spyre_comm_split(spyre_comm *comm, int32_t color, int32_t key,
			      const spyre_comm_config *config, spyre_comm **split)
{
	struct color colors[SPYRE_COMM_MAX_RANKS];
	struct members members = { .count = 0 };
	spyre_comm_config own;
	spyre_status status;
	spyre_comm_id id;

	TRY(check(comm, split, "spyre_comm_split", "split"));
	TRY(comm_check(comm));
	if (color < SPYRE_COMM_NO_COLOR)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "spyre_comm_split: invalid colour %d: "
				   "expected 0 or above, or SPYRE_COMM_NO_COLOR", color);
	*split = NULL;
	colors[comm->rank] = (struct color){ color, key };
	own = new_config(comm, config);
	status = exchanged(comm, exchange_colors(comm, colors, own.timeout_ms));
	if (status)
		return spyre_error_prefix(status, "spyre_comm_split");
	if (color == SPYRE_COMM_NO_COLOR)
		return SPYRE_SUCCESS;
	for (uint32_t i = 0; i < comm->size; i++)
		if (colors[i].color == color)
			insert(&members, colors, i);
	status = exchanged(comm, share_id(comm, &members, COMM_LETTER_SPLIT_ID, &id,
					  own.timeout_ms));
	if (!status)
		status = join(comm, &members, &id, &own, split);
	return status ? spyre_error_prefix(status, "spyre_comm_split") : status;
}

static spyre_status list_survivors(spyre_comm *comm, const uint32_t *excluded, uint32_t n,
				   struct members *members)
{
	bool out[SPYRE_COMM_MAX_RANKS] = { false };

	for (uint32_t i = 0; i < n; i++) {
		if (excluded[i] >= comm->size)
			return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "spyre_comm_shrink: %u is not "
					   "a rank of a communicator of %u", excluded[i], comm->size);
		out[excluded[i]] = true;
	}
	if (out[comm->rank])
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "spyre_comm_shrink: rank %u is excluded "
				   "and cannot take part; destroy its communicator", comm->rank);
	for (uint32_t i = 0; i < comm->size; i++)
		if (!out[i])
			members->rank[members->count++] = i;
	return SPYRE_SUCCESS;
}

spyre_status spyre_comm_shrink(spyre_comm *comm, const uint32_t *excluded, uint32_t num_excluded,
			       const spyre_comm_config *config, spyre_comm **shrunk)
{
	struct members members = { .count = 0 };
	spyre_comm_config own;
	spyre_status status;
	spyre_comm_id id;

	TRY(check(comm, shrunk, "spyre_comm_shrink", "shrunk"));
	if (num_excluded && !excluded)
		return spyre_null_argument("spyre_comm_shrink", "excluded");
	*shrunk = NULL;
	TRY(list_survivors(comm, excluded, num_excluded, &members));
	own = new_config(comm, config);
	status = share_id(comm, &members, COMM_LETTER_SHRINK_ID, &id, own.timeout_ms);
	if (!status)
		status = join(comm, &members, &id, &own, shrunk);
	return status ? spyre_error_prefix(status, "spyre_comm_shrink") : status;
}
