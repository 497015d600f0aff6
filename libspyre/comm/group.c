// SPDX-License-Identifier: MIT
/* Groups: calls of one thread that are queued together. */
#include <stdlib.h>

#include "libspyre/base/array.h"
#include "libspyre/comm/direct.h"

/* Initialised by the first spyre_group_begin(), since its address is not a constant. */
static _Thread_local struct comm_ops grouped;
static _Thread_local uint32_t depth;

static void drop_all(void)
{
	struct comm_op *op;

	while ((op = STAILQ_FIRST(&grouped))) {
		STAILQ_REMOVE_HEAD(&grouped, link);
		comm_op_free(op);
	}
}

/* Appends the messages of @op to those of @to. */
static spyre_status merge(struct comm_op *to, struct comm_op *op)
{
	const size_t count = to->num_messages + op->num_messages;

	if (!spyre_array_reserve(&to->messages, &to->max_messages, count, sizeof(*to->messages)))
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory for a group");
	memcpy(to->messages + to->num_messages, op->messages,
	       op->num_messages * sizeof(*op->messages));
	to->num_messages = count;
	comm_op_free(op);
	return SPYRE_SUCCESS;
}

spyre_status comm_group_add(struct comm_op *op)
{
	struct comm_op *other;
	spyre_status status;

	if (!depth)
		return comm_op_queue(op);
	STAILQ_FOREACH(other, &grouped, link) {
		if (op->kind != COMM_POINT_TO_POINT || other->kind != op->kind ||
		    other->comm != op->comm || other->stream != op->stream)
			continue;
		status = merge(other, op);
		if (status)
			comm_op_free(op);
		return status;
	}
	STAILQ_INSERT_TAIL(&grouped, op, link);
	return SPYRE_SUCCESS;
}

/* Finds the first call of each rank of @op's communicator; false if one is missing. */
static bool find_family(struct comm_op *op, struct comm_op **ops)
{
	struct comm_family *family = op->comm->family;
	struct comm_op *other;
	uint32_t found = 0;

	for (uint32_t i = 0; family && i < family->size; i++) {
		STAILQ_FOREACH(other, &grouped, link) {
			if (other->comm != family->comms[i] || other->kind == COMM_POINT_TO_POINT)
				continue;
			ops[i] = other;
			found++;
			break;
		}
	}
	return family && found == family->size;
}

/* Queues the first call of the group, with those of the other ranks if they are in the group. */
static spyre_status queue_first(void)
{
	struct comm_op *op = STAILQ_FIRST(&grouped), *ops[SPYRE_COMM_MAX_RANKS];

	if (op->kind != COMM_POINT_TO_POINT && find_family(op, ops) &&
	    comm_direct_possible(ops, op->comm->size)) {
		const uint32_t size = op->comm->size;

		for (uint32_t i = 0; i < size; i++)
			STAILQ_REMOVE(&grouped, ops[i], comm_op, link);
		return comm_direct_queue(ops, size);
	}
	STAILQ_REMOVE_HEAD(&grouped, link);
	return comm_op_queue(op);
}

spyre_status spyre_group_begin(void)
{
	if (!depth++)
		STAILQ_INIT(&grouped);
	return SPYRE_SUCCESS;
}

spyre_status spyre_group_end(void)
{
	spyre_status status = SPYRE_SUCCESS;

	if (!depth)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "spyre_group_end: this thread has no "
				   "group; call spyre_group_begin() first");
	if (--depth)
		return SPYRE_SUCCESS;
	while (!status && !STAILQ_EMPTY(&grouped))
		status = queue_first();
	drop_all();
	return status;
}
