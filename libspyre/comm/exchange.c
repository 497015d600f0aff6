// SPDX-License-Identifier: MIT
/*
 * Transfers progress together: each iteration queues copies for the free slots of all sends and
 * for the messages that have arrived, waits for these copies, and then posts and releases the
 * slots. It sleeps when no transfer can continue.
 */
#include <inttypes.h>
#include <stdio.h>

#include "libspyre/backend/futex.h"
#include "libspyre/comm/exchange.h"
#include "libspyre/comm/fabric.h"
#include "libspyre/comm/shm.h"

/* Messages of a link in one iteration: half of its slots, so that both ends can work. */
#define MESSAGES 4
/* A sleeping rank looks this often for a failure of its own stream, which does not ring. */
#define CHECK_NS 50000000

/* First message of an operation on a link: what the sending rank is executing. */
struct greeting {
	uint32_t kind;
	uint32_t op;
	float factor;
	uint32_t format;
	uint32_t root;
	/* Of the caller's layout, 0 for parts, which may be those of any layout. */
	uint32_t layout;
	uint64_t order;
	uint64_t bytes;
};

struct exchange {
	struct comm_op *op;
	enum comm_class class;
	struct comm_transfer *all;
	uint32_t n;
	/* Copies were queued in this iteration; a transfer continued. */
	bool copies;
	bool moved;
};

static void describe(const struct greeting *greeting, char *text, size_t bytes)
{
	const char *format = spyre_format_name((spyre_format)greeting->format);

	snprintf(text, bytes, "%s %" PRIu64 " of %" PRIu64 " bytes of %s, operator %u, root %u",
		 greeting->kind <= COMM_POINT_TO_POINT ? comm_kind_name(greeting->kind) : "unknown",
		 greeting->order, greeting->bytes, format ? format : "no format", greeting->op,
		 greeting->root);
}

static struct greeting greeting_of(const struct exchange *exchange,
				   const struct comm_transfer *transfer)
{
	const struct comm_op *op = exchange->op;

	return (struct greeting){
		.kind = op->kind, .op = op->reduction.op, .factor = op->reduction.factor,
		.format = transfer->total ? transfer->part.format : SPYRE_FORMAT_INVALID,
		.root = op->root, .layout = op->layout,
		.order = transfer->order,
		.bytes = transfer->total,
	};
}

/* True if both ranks execute the same. */
static bool agree(struct greeting a, struct greeting b, bool layouts)
{
	if (!layouts || !a.layout || !b.layout)
		a.layout = b.layout = 0;
	return !memcmp(&a, &b, sizeof(a));
}

static spyre_status check_greeting(const struct exchange *exchange,
				   const struct comm_transfer *transfer, const void *message,
				   uint32_t bytes)
{
	const struct greeting own = greeting_of(exchange, transfer);
	char here[128], there[128];
	struct greeting other = { 0 };

	/* The slot is shared with the sender, so it is read once. */
	if (bytes == sizeof(other))
		memcpy(&other, message, sizeof(other));
	if (bytes == sizeof(other) && agree(own, other, true))
		return SPYRE_SUCCESS;
	describe(&own, here, sizeof(here));
	describe(&other, there, sizeof(there));
	return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH, "rank %u executes %s, but this rank %s; all "
			   "ranks must call the same collectives in the same order with the same "
			   "arguments", transfer->peer, bytes == sizeof(other) ? there :
			   "another part of a collective", bytes == sizeof(other) &&
			   agree(own, other, false) ? "has another layout" : here);
}

static bool transfer_ends(const struct comm_transfer *transfer)
{
	return transfer->greeted && transfer->done == transfer->bytes;
}

/* Bytes of the message that begins at @at of the transfer. */
static uint32_t message_bytes(const struct comm_transfer *transfer, uint64_t at)
{
	const uint64_t left = transfer->bytes - at;

	return left > transfer->link->comm->chunk ? transfer->link->comm->chunk : (uint32_t)left;
}

static spyre_status queue_copy(struct exchange *exchange, struct comm_transfer *transfer,
			       uint64_t at, void *slot, uint32_t bytes)
{
	spyre_stream *inner = exchange->op->comm->inner[exchange->class];

	TRY(comm_part_copy(inner, &transfer->part, transfer->offset + at, slot, bytes,
			   transfer->direction));
	exchange->copies = true;
	return SPYRE_SUCCESS;
}

static spyre_status begin_send(struct exchange *exchange, struct comm_transfer *transfer)
{
	struct comm_link *link = transfer->link;
	uint64_t at = transfer->done;

	while (transfer->messages < MESSAGES) {
		void *slot = link->ops->reserve(link, transfer->messages);
		uint32_t bytes;

		if (!slot)
			break;
		if (!transfer->greeted) {
			const struct greeting greeting = greeting_of(exchange, transfer);

			memcpy(slot, &greeting, sizeof(greeting));
			bytes = sizeof(greeting);
			transfer->greeted = transfer->greets = true;
			transfer->sizes[transfer->messages++] = bytes;
			continue;
		}
		bytes = message_bytes(transfer, at);
		if (!bytes)
			break;
		TRY(queue_copy(exchange, transfer, at, slot, bytes));
		transfer->sizes[transfer->messages++] = bytes;
		at += bytes;
	}
	return SPYRE_SUCCESS;
}

static spyre_status begin_receive(struct exchange *exchange, struct comm_transfer *transfer)
{
	struct comm_link *link = transfer->link;
	uint64_t at = transfer->done;

	while (transfer->messages < MESSAGES) {
		uint32_t bytes, expected;
		const void *slot = link->ops->peek(link, transfer->messages, &bytes);

		if (!slot)
			break;
		if (!transfer->greeted) {
			TRY(check_greeting(exchange, transfer, slot, bytes));
			transfer->greeted = transfer->greets = true;
			transfer->sizes[transfer->messages++] = bytes;
			continue;
		}
		expected = message_bytes(transfer, at);
		if (!expected)
			break;
		if (bytes != expected)
			return spyre_error(SPYRE_ERROR_REMOTE, "rank %u sent %u bytes instead of %u",
					   transfer->peer, bytes, expected);
		TRY(queue_copy(exchange, transfer, at, (void *)slot, bytes));
		transfer->sizes[transfer->messages++] = bytes;
		at += bytes;
	}
	return SPYRE_SUCCESS;
}

/* Posts or releases the messages whose copies have ended. */
static spyre_status end_messages(struct comm_transfer *transfer)
{
	struct comm_link *link = transfer->link;
	_Atomic uint64_t *total = transfer->direction == COMM_SEND ? &link->comm->sent :
								     &link->comm->received;

	for (uint32_t i = 0; i < transfer->messages; i++) {
		TRY(transfer->direction == COMM_SEND ? link->ops->post(link, transfer->sizes[i]) :
						       link->ops->release(link));
		if (transfer->greets && !i)
			continue;
		transfer->done += transfer->sizes[i];
		atomic_fetch_add_explicit(total, transfer->sizes[i], memory_order_relaxed);
	}
	return SPYRE_SUCCESS;
}

static spyre_status iterate(struct exchange *exchange)
{
	exchange->copies = exchange->moved = false;
	for (uint32_t i = 0; i < exchange->n; i++) {
		struct comm_transfer *transfer = &exchange->all[i];

		transfer->messages = 0;
		transfer->greets = false;
		if (transfer_ends(transfer))
			continue;
		TRY(transfer->direction == COMM_SEND ? begin_send(exchange, transfer) :
						       begin_receive(exchange, transfer));
		exchange->moved |= transfer->messages;
	}
	if (exchange->copies)
		TRY(spyre_stream_synchronize(exchange->op->comm->inner[exchange->class]));
	for (uint32_t i = 0; i < exchange->n; i++)
		TRY(end_messages(&exchange->all[i]));
	return SPYRE_SUCCESS;
}

/*
 * A rank's last messages come before the news that it has left, so this is read before they are
 * looked for.
 */
static void note_gone(struct exchange *exchange)
{
	for (uint32_t i = 0; i < exchange->n; i++) {
		const struct comm_peer *peer = &exchange->op->comm->peers[exchange->all[i].peer];

		exchange->all[i].gone = peer->lost || peer->left;
	}
}

/* An error if a transfer waits for a rank that has left or ended. */
static spyre_status check_peers(const struct exchange *exchange)
{
	for (uint32_t i = 0; i < exchange->n; i++) {
		const struct comm_transfer *transfer = &exchange->all[i];
		const struct comm_peer *peer = &exchange->op->comm->peers[transfer->peer];

		if (transfer_ends(transfer) || !transfer->gone)
			continue;
		return spyre_error(SPYRE_ERROR_REMOTE, "rank %u (process %d on %s) %s", transfer->peer,
				   peer->address.pid, peer->address.host, peer->left ?
				   "has left the communicator" :
				   "has ended without leaving the communicator");
	}
	return SPYRE_SUCCESS;
}

static spyre_status timed_out(const struct exchange *exchange)
{
	const struct comm_op *op = exchange->op;
	char ranks[256] = "";
	size_t at = 0;

	for (uint32_t i = 0; i < exchange->n && at < sizeof(ranks) - 48; i++) {
		const struct comm_transfer *transfer = &exchange->all[i];

		if (!transfer_ends(transfer))
			at += snprintf(ranks + at, sizeof(ranks) - at, "%s%u (%" PRIu64 " of %" PRIu64
				       " bytes)", at ? ", " : "", transfer->peer,
				       transfer->greeted ? transfer->done : 0, transfer->bytes);
	}
	return spyre_error(SPYRE_ERROR_TIMEOUT, "the limit of %" PRIu64 " ms passed while waiting for "
			   "rank %s; it may be slow, or execute other work",
			   op->timeout_ns / 1000000, ranks);
}

static bool exchange_ends(const struct exchange *exchange)
{
	for (uint32_t i = 0; i < exchange->n; i++)
		if (!transfer_ends(&exchange->all[i]))
			return false;
	return true;
}

static spyre_status wait(struct exchange *exchange, uint32_t bell)
{
	struct comm_op *op = exchange->op;
	const int64_t now = spyre_now_ns();
	const int64_t until = now + CHECK_NS < op->deadline_ns ? now + CHECK_NS : op->deadline_ns;

	TRY(comm_op_check(op));
	TRY(check_peers(exchange));
	if (now >= op->deadline_ns)
		return timed_out(exchange);
	if (op->comm->fabric)
		comm_fabric_wait(op->comm, bell, until);
	else
		comm_shm_wait(op->comm, bell, until);
	return SPYRE_SUCCESS;
}

spyre_status comm_exchange(struct comm_op *op, enum comm_class class, struct comm_transfer *all,
			   uint32_t n, bool first)
{
	struct exchange exchange = { .op = op, .class = class, .all = all, .n = n };

	for (uint32_t i = 0; i < n; i++) {
		all[i].link = &op->comm->peers[all[i].peer].link[class][all[i].direction];
		all[i].greeted = !first;
		all[i].done = 0;
	}
	while (!exchange_ends(&exchange)) {
		const uint32_t bell = atomic_load(op->comm->bell);

		note_gone(&exchange);
		TRY(comm_fabric_progress(op->comm));
		TRY(iterate(&exchange));
		if (!exchange.moved)
			TRY(wait(&exchange, bell));
	}
	return SPYRE_SUCCESS;
}
