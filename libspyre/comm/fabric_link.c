// SPDX-License-Identifier: MIT
#include "config.h"

#include <inttypes.h>

#include "libspyre/backend/futex.h"
#include "libspyre/comm/fabric_link.h"

/* Completions that are read at a time. */
#define BATCH 16
/*
 * A rank that leaves closes its connections after its last message, and one whose process ends
 * is reported by its control connection. A broken connection is an error of its own if neither
 * is known after this time.
 */
#define GRACE_NS 1000000000

/* A message's tag names its link and slot; @sender is the rank that sends it. */
static uint64_t tag_of(const struct fabric_request *request)
{
	const struct fabric_end *end = request->end;
	const uint32_t sender = request->sends ? end->fabric->comm->rank : end->rank;

	_Static_assert(FABRIC_SLOTS <= 16 && COMM_CLASSES <= 2 && SPYRE_COMM_MAX_RANKS <= 256,
		       "a tag has 4 bits for the slot, 2 for the kind, 1 for the class, 8 for the rank");
	return end->fabric->secret | (uint64_t)sender << 7 | (uint64_t)end->class << 6 |
	       (uint64_t)request->kind << 4 | request->slot;
}

static struct fabric_peer *peer_of(const struct fabric_request *request)
{
	return &request->end->fabric->peers[request->end->rank];
}

static struct fabric_slot *slot_of(const struct fabric_request *request)
{
	return &request->end->slot[request->slot];
}

static bool sends_data(const struct fabric_request *request)
{
	return request->sends && request->kind == FABRIC_DATA;
}

/* Forgets a request; the other rank is gone or its connection is broken. */
static void request_end(struct fabric_request *request)
{
	request->busy = request->again = false;
	if (sends_data(request))
		request->end->fabric->sending--;
	request->end->fabric->moved = true;
}

static void peer_break(struct fabric_peer *peer, int error)
{
	if (peer->broken_ns)
		return;
	peer->broken_ns = spyre_now_ns();
	peer->error = error;
}

/* Gives a request to the provider. Returns false if it has to be tried again. */
static bool request_post(struct fabric_request *request)
{
	struct comm_fabric *fabric = request->end->fabric;
	const size_t chunk = fabric->comm->chunk;
	const bool data = request->kind == FABRIC_DATA;
	struct iovec vector = {
		.iov_base = data ? request->end->memory + request->slot * chunk : NULL,
		.iov_len = !data ? 0 : request->sends ? slot_of(request)->bytes : chunk,
	};
	const struct fi_msg_tagged message = {
		.msg_iov = &vector, .desc = &fabric->desc, .iov_count = data ? 1 : 0,
		.addr = peer_of(request)->address, .tag = tag_of(request),
		.context = &request->context,
	};
	ssize_t err;

	err = request->sends ? fi_tsendmsg(fabric->ep, &message, FI_COMPLETION) :
			       fi_trecvmsg(fabric->ep, &message, FI_COMPLETION);
	if (err == -FI_EAGAIN)
		return false;
	if (err) {
		peer_break(peer_of(request), (int)-err);
		request_end(request);
	}
	return true;
}

/* Posts a request as soon as possible. */
static void request_start(struct fabric_request *request)
{
	struct fabric_peer *peer = peer_of(request);

	if (request->busy) {
		request->again = true;
		return;
	}
	request->busy = true;
	if (sends_data(request))
		request->end->fabric->sending++;
	if (!STAILQ_EMPTY(&peer->waiting) || !request_post(request))
		STAILQ_INSERT_TAIL(&peer->waiting, request, link);
}

static void post_waiting(struct comm_fabric *fabric, uint32_t rank)
{
	const struct comm_peer *other = &fabric->comm->peers[rank];
	struct fabric_peer *peer = &fabric->peers[rank];
	struct fabric_request *request;

	while ((request = STAILQ_FIRST(&peer->waiting))) {
		if (other->lost || other->left || peer->broken_ns)
			request_end(request);
		else if (!request_post(request))
			return;
		STAILQ_REMOVE_HEAD(&peer->waiting, link);
	}
}

static spyre_status protocol_error(const struct fabric_request *request, const char *what)
{
	const struct fabric_end *end = request->end;
	const struct comm_address *address = &end->fabric->comm->peers[end->rank].address;

	return spyre_error(SPYRE_ERROR_REMOTE, "rank %u (process %d on %s) %s", end->rank,
			   address->pid, address->host, what);
}

static void take_flush(struct fabric_request *request)
{
	struct fabric_peer *peer = peer_of(request);

	if (request->slot == FABRIC_ANSWER)
		peer->flushed = true;
	else
		request_start(&peer->flush[FABRIC_ANSWER][COMM_SEND]);
}

bool fabric_link_flush(struct comm_fabric *fabric)
{
	bool flushed = !fabric->sending;

	for (uint32_t rank = 0; rank < fabric->comm->size; rank++) {
		const struct comm_peer *other = &fabric->comm->peers[rank];
		struct fabric_peer *peer = &fabric->peers[rank];
		struct fabric_request *question = &peer->flush[FABRIC_QUESTION][COMM_SEND];

		if (!peer->connected || peer->flushed || peer->broken_ns || other->left ||
		    other->lost)
			continue;
		flushed = false;
		/* It is the last message, so that its answer is one for all of them. */
		if (!fabric->sending && !peer->asked) {
			peer->asked = true;
			request_start(question);
		}
	}
	return flushed;
}

static spyre_status take_completion(struct fabric_request *request, size_t bytes)
{
	struct fabric_slot *slot = slot_of(request);
	const bool again = request->again;

	request_end(request);
	if (again) {
		request_start(request);
		return SPYRE_SUCCESS;
	}
	if (request->sends)
		return SPYRE_SUCCESS;
	if (request->kind == FABRIC_FLUSH) {
		take_flush(request);
		return SPYRE_SUCCESS;
	}
	if (request->kind == FABRIC_DATA) {
		slot->full = true;
		slot->bytes = bytes;
		return SPYRE_SUCCESS;
	}
	if (!slot->full)
		return protocol_error(request, "returned a message that this rank has not sent");
	slot->full = false;
	request_start(request);
	return SPYRE_SUCCESS;
}

static spyre_status take_error(struct comm_fabric *fabric)
{
	struct fi_cq_err_entry entry = { 0 };
	struct fabric_request *request;

	if (fi_cq_readerr(fabric->cq, &entry, 0) < 1)
		return SPYRE_SUCCESS;
	request = entry.op_context;
	if (!request)
		return spyre_error(SPYRE_ERROR_REMOTE, "libfabric: %s", fabric->describe(entry.err));
	request_end(request);
	if (entry.err == FI_ETRUNC || entry.olen)
		return protocol_error(request, request->kind == FABRIC_DATA ?
				      "sent a message that exceeds SPYRE_COMM_CHUNK_KIB" :
				      "sent a credit with contents");
	if (entry.err != FI_ECANCELED)
		peer_break(peer_of(request), entry.err);
	return SPYRE_SUCCESS;
}

spyre_status fabric_link_progress(struct comm_fabric *fabric)
{
	struct fi_cq_tagged_entry entries[BATCH];
	ssize_t n;

	for (;;) {
		n = fi_cq_read(fabric->cq, entries, BATCH);
		for (ssize_t i = 0; i < n; i++)
			TRY(take_completion(entries[i].op_context, entries[i].len));
		if (n == -FI_EAVAIL)
			TRY(take_error(fabric));
		else if (n <= 0)
			break;
	}
	if (n != -FI_EAGAIN && n)
		return spyre_error(SPYRE_ERROR_SYSTEM, "libfabric: cannot read completions: %s",
				   fabric->describe((int)-n));
	for (uint32_t rank = 0; rank < fabric->comm->size; rank++)
		if (fabric->peers[rank].connected)
			post_waiting(fabric, rank);
	return SPYRE_SUCCESS;
}

spyre_status fabric_link_check(struct comm_fabric *fabric)
{
	const spyre_comm *comm = fabric->comm;

	for (uint32_t rank = 0; rank < comm->size; rank++) {
		const struct fabric_peer *peer = &fabric->peers[rank];
		const struct comm_peer *other = &comm->peers[rank];

		if (!peer->broken_ns || other->left || other->lost ||
		    (int64_t)spyre_now_ns() < peer->broken_ns + GRACE_NS)
			continue;
		return spyre_error(SPYRE_ERROR_REMOTE, "the connection to rank %u (process %d on %s) "
				   "broke: %s", rank, other->address.pid, other->address.host,
				   fabric->describe(peer->error));
	}
	return SPYRE_SUCCESS;
}

static void *fabric_reserve(struct comm_link *link, uint32_t ahead)
{
	const uint32_t index = (link->count + ahead) % FABRIC_SLOTS;
	struct fabric_end *end = link->end;
	bool full;

	if (ahead >= FABRIC_SLOTS)
		return NULL;
	pthread_mutex_lock(&end->fabric->lock);
	full = end->slot[index].full || end->slot[index].data.busy;
	pthread_mutex_unlock(&end->fabric->lock);
	return full ? NULL : end->memory + (size_t)index * link->comm->chunk;
}

static spyre_status fabric_post(struct comm_link *link, uint32_t bytes)
{
	struct fabric_end *end = link->end;
	struct fabric_slot *slot = &end->slot[link->count++ % FABRIC_SLOTS];

	pthread_mutex_lock(&end->fabric->lock);
	slot->full = true;
	slot->bytes = bytes;
	request_start(&slot->data);
	pthread_mutex_unlock(&end->fabric->lock);
	return SPYRE_SUCCESS;
}

static const void *fabric_peek(struct comm_link *link, uint32_t ahead, uint32_t *bytes)
{
	const uint32_t index = (link->count + ahead) % FABRIC_SLOTS;
	struct fabric_end *end = link->end;
	bool full;

	if (ahead >= FABRIC_SLOTS)
		return NULL;
	pthread_mutex_lock(&end->fabric->lock);
	full = end->slot[index].full;
	*bytes = end->slot[index].bytes;
	pthread_mutex_unlock(&end->fabric->lock);
	return full ? end->memory + (size_t)index * link->comm->chunk : NULL;
}

static spyre_status fabric_release(struct comm_link *link)
{
	struct fabric_end *end = link->end;
	struct fabric_slot *slot = &end->slot[link->count++ % FABRIC_SLOTS];

	pthread_mutex_lock(&end->fabric->lock);
	slot->full = false;
	/* In this order, so that the next message finds its receive. */
	request_start(&slot->data);
	request_start(&slot->credit);
	pthread_mutex_unlock(&end->fabric->lock);
	return SPYRE_SUCCESS;
}

const struct comm_link_ops fabric_link_ops = {
	.name = "tcp",
	.reserve = fabric_reserve,
	.post = fabric_post,
	.peek = fabric_peek,
	.release = fabric_release,
};

static void end_init(struct fabric_end *end)
{
	const bool sends = end->direction == COMM_SEND;

	for (uint8_t i = 0; i < FABRIC_SLOTS; i++) {
		struct fabric_slot *slot = &end->slot[i];

		slot->data = (struct fabric_request){
			.end = end, .kind = FABRIC_DATA, .slot = i, .sends = sends,
		};
		slot->credit = (struct fabric_request){
			.end = end, .kind = FABRIC_CREDIT, .slot = i, .sends = !sends,
		};
		request_start(sends ? &slot->credit : &slot->data);
	}
}

static void flush_init(struct fabric_peer *peer)
{
	for (uint8_t i = 0; i < FABRIC_FLUSHES; i++)
		for (int direction = 0; direction < COMM_DIRECTIONS; direction++)
			peer->flush[i][direction] = (struct fabric_request){
				.end = &peer->end[COMM_COLLECTIVE][COMM_SEND],
				.kind = FABRIC_FLUSH, .slot = i, .sends = direction == COMM_SEND,
			};
	request_start(&peer->flush[FABRIC_QUESTION][COMM_RECV]);
	request_start(&peer->flush[FABRIC_ANSWER][COMM_RECV]);
}

void fabric_link_init(struct comm_fabric *fabric, uint32_t rank, uint8_t *memory)
{
	struct fabric_peer *peer = &fabric->peers[rank];

	STAILQ_INIT(&peer->waiting);
	peer->connected = true;
	for (int class = 0; class < COMM_CLASSES; class++)
		for (int direction = 0; direction < COMM_DIRECTIONS; direction++) {
			struct comm_link *link = &fabric->comm->peers[rank].link[class][direction];
			struct fabric_end *end = &peer->end[class][direction];

			end->fabric = fabric;
			end->rank = rank;
			end->class = class;
			end->direction = direction;
			end->memory = memory;
			memory += (size_t)FABRIC_SLOTS * fabric->comm->chunk;
			link->ops = &fabric_link_ops;
			link->comm = fabric->comm;
			link->end = end;
			end_init(end);
		}
	flush_init(peer);
}
