// SPDX-License-Identifier: MIT
/* Creation, failure and end of communicators. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "libspyre/base/environment.h"
#include "libspyre/comm/direct.h"
#include "libspyre/comm/fabric.h"
#include "libspyre/comm/operation.h"
#include "libspyre/comm/root.h"
#include "libspyre/comm/shm.h"

#define DEFAULT_CHUNK_KIB 256

void comm_ring(spyre_comm *comm)
{
	comm_shm_ring_own(comm);
}

spyre_status comm_failure(spyre_comm *comm)
{
	char text[sizeof(comm->failure)];

	pthread_mutex_lock(&comm->lock);
	memcpy(text, comm->failure, sizeof(text));
	pthread_mutex_unlock(&comm->lock);
	return spyre_error(comm->failed, "communicator \"%s\", rank %u of %u: %s", comm->name,
			   comm->rank, comm->size, text);
}

spyre_status comm_fail(spyre_comm *comm, spyre_status status, bool tell)
{
	bool first;

	pthread_mutex_lock(&comm->lock);
	first = !comm->failed;
	if (first) {
		snprintf(comm->failure, sizeof(comm->failure), "%s", spyre_last_error());
		comm->failed = status;
	}
	pthread_cond_broadcast(&comm->changed);
	pthread_mutex_unlock(&comm->lock);
	comm_ring(comm);
	if (first && tell)
		comm_tell_failure(comm, comm->failure);
	return comm_failure(comm);
}

/* Fails the communicator if the process of a rank has ended. */
static void notice_lost(spyre_comm *comm)
{
	for (uint32_t i = 0; i < comm->size && !comm->failed; i++) {
		const struct comm_peer *peer = &comm->peers[i];

		if (peer->lost)
			comm_fail(comm, spyre_error(SPYRE_ERROR_REMOTE, "rank %u (process %d on %s) has "
						    "ended without leaving the communicator", i,
						    peer->address.pid, peer->address.host), true);
	}
}

static spyre_status check_object(spyre_comm *comm)
{
	if (!comm)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "the communicator is NULL");
	return spyre_context_check(comm->context);
}

spyre_status comm_check(spyre_comm *comm)
{
	TRY(check_object(comm));
	notice_lost(comm);
	return comm->failed ? comm_failure(comm) : SPYRE_SUCCESS;
}

spyre_status spyre_comm_get_error(spyre_comm *comm, spyre_status *error)
{
	TRY(check_object(comm));
	if (!error)
		return spyre_null_argument("spyre_comm_get_error", "error");
	notice_lost(comm);
	*error = comm->failed ? comm_failure(comm) : SPYRE_SUCCESS;
	return SPYRE_SUCCESS;
}

static void comm_free(spyre_comm *comm)
{
	struct comm_op *op;

	while ((op = STAILQ_FIRST(&comm->captured))) {
		STAILQ_REMOVE_HEAD(&comm->captured, link);
		comm_op_free(op);
	}
	comm_watch_stop(comm);
	comm_family_leave(comm);
	for (int class = 0; class < COMM_CLASSES; class++)
		spyre_stream_destroy(comm->inner[class]);
	comm_reducer_close(&comm->reducer);
	if (comm->scratch)
		spyre_mem_free(comm->context, comm->scratch);
	comm_fabric_close(comm);
	comm_shm_close(comm);
	for (uint32_t i = 0; comm->peers && i < comm->size; i++) {
		if (comm->peers[i].control >= 0)
			close(comm->peers[i].control);
		pthread_mutex_destroy(&comm->peers[i].send_lock);
	}
	free(comm->peers);
	pthread_cond_destroy(&comm->changed);
	pthread_mutex_destroy(&comm->lock);
	free(comm);
}

static spyre_status read_algorithm(enum comm_algorithm *algorithm)
{
	static const char *const names[] = { "auto", "one-shot", "owners" };
	const char *text = getenv("SPYRE_COMM_ALGO");

	*algorithm = COMM_AUTO;
	if (!text || !*text)
		return SPYRE_SUCCESS;
	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(text, names[i]))
			continue;
		*algorithm = (enum comm_algorithm)i;
		return SPYRE_SUCCESS;
	}
	return spyre_error(SPYRE_ERROR_CONFIGURATION,
			   "SPYRE_COMM_ALGO=\"%s\": expected auto, one-shot or owners", text);
}

/* The switches of the vendor's runtime: data goes through host memory, or from card to card. */
static spyre_status read_path(bool *host_only)
{
	uint64_t hdma, rdma;

	TRY(spyre_env_u64("FLEX_HDMA_MODE_FULL", 0, 0, 1, &hdma));
	TRY(spyre_env_u64("FLEX_RDMA_MODE_FULL", 0, 0, 1, &rdma));
	if (hdma && rdma)
		return spyre_error(SPYRE_ERROR_CONFIGURATION,
				   "FLEX_HDMA_MODE_FULL and FLEX_RDMA_MODE_FULL are both 1; unset the "
				   "first one for copies from card to card, the second one for copies "
				   "through host memory");
	*host_only = hdma;
	return SPYRE_SUCCESS;
}

static spyre_status configure(spyre_comm *comm, const spyre_comm_config *config)
{
	static _Atomic uint32_t number;
	uint64_t timeout_ms, chunk_kib;

	TRY(comm_env_timeout_ms(&timeout_ms));
	TRY(spyre_env_u64("SPYRE_COMM_CHUNK_KIB", DEFAULT_CHUNK_KIB, 4, 16384, &chunk_kib));
	TRY(read_algorithm(&comm->algorithm));
	TRY(read_path(&comm->host_only));
	if (config)
		TRY(spyre_struct_check("spyre_comm_init_rank", "comm_config", config));
	if (config && config->timeout_ms)
		timeout_ms = comm_timeout_ms(config->timeout_ms);
	comm->timeout_ns = timeout_ms * 1000000;
	comm->chunk = chunk_kib * 1024;
	if (config && config->name[0])
		snprintf(comm->name, sizeof(comm->name), "%.*s", (int)sizeof(config->name) - 1,
			 config->name);
	else
		snprintf(comm->name, sizeof(comm->name), "comm %u",
			 atomic_fetch_add(&number, 1) + 1);
	return SPYRE_SUCCESS;
}

static spyre_comm *comm_new(spyre_context *context, uint32_t size, uint32_t rank)
{
	spyre_comm *comm = calloc(1, sizeof(*comm));

	if (comm)
		comm->peers = calloc(size, sizeof(*comm->peers));
	if (!comm || !comm->peers) {
		free(comm);
		spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory for a communicator");
		return NULL;
	}
	comm->context = context;
	comm->size = size;
	comm->rank = rank;
	comm->stop = -1;
	STAILQ_INIT(&comm->captured);
	comm_reducer_init(&comm->reducer);
	pthread_mutex_init(&comm->lock, NULL);
	pthread_cond_init(&comm->changed, NULL);
	for (uint32_t i = 0; i < size; i++) {
		comm->peers[i].control = -1;
		STAILQ_INIT(&comm->peers[i].letters);
		pthread_mutex_init(&comm->peers[i].send_lock, NULL);
	}
	return comm;
}

static spyre_status comm_open(spyre_comm *comm, const spyre_comm_id *id,
			      const spyre_comm_config *config)
{
	TRY(configure(comm, config));
	TRY(comm_shm_open(comm));
	for (int class = 0; class < COMM_CLASSES; class++)
		TRY(spyre_stream_create(comm->context, 0, &comm->inner[class]));
	TRY(comm_rendezvous(comm, id));
	return comm_watch_start(comm);
}

spyre_status spyre_comm_init_rank(spyre_context *context, uint32_t size, const spyre_comm_id *id,
				  uint32_t rank, const spyre_comm_config *config, spyre_comm **out)
{
	spyre_status status = spyre_context_check(context);
	spyre_comm *comm;

	if (!status && (!id || !out))
		status = spyre_null_argument("spyre_comm_init_rank", id ? "comm" : "id");
	if (!status && (!size || size > SPYRE_COMM_MAX_RANKS || rank >= size))
		status = spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "spyre_comm_init_rank: rank %u of %u: "
				     "expected 1 to %u ranks, and a rank below their number", rank,
				     size, SPYRE_COMM_MAX_RANKS);
	if (status)
		return status;
	comm = comm_new(context, size, rank);
	if (!comm)
		return SPYRE_ERROR_OUT_OF_HOST_MEMORY;
	status = comm_open(comm, id, config);
	if (status) {
		comm_free(comm);
		return spyre_error_prefix(status, "cannot create the communicator");
	}
	*out = comm;
	return SPYRE_SUCCESS;
}

/* One rank of spyre_comm_init_all(), on a thread of its own, since each waits for the others. */
struct joiner {
	pthread_t thread;
	spyre_context *context;
	const spyre_comm_id *id;
	const spyre_comm_config *config;
	uint32_t rank;
	uint32_t size;
	spyre_comm *comm;
	spyre_status status;
	char text[SPYRE_ERROR_BYTES];
};

static void *join_main(void *argument)
{
	struct joiner *joiner = argument;

	joiner->status = spyre_comm_init_rank(joiner->context, joiner->size, joiner->id,
					      joiner->rank, joiner->config, &joiner->comm);
	if (joiner->status)
		snprintf(joiner->text, sizeof(joiner->text), "%s", spyre_last_error());
	return NULL;
}

/* Joins all ranks. Returns the first error. */
static spyre_status join_all(struct joiner *joiners, uint32_t size)
{
	spyre_status status = SPYRE_SUCCESS;
	uint32_t started = 0;
	int err = 0;

	while (started < size && !err) {
		err = pthread_create(&joiners[started].thread, NULL, join_main, &joiners[started]);
		started += !err;
	}
	for (uint32_t i = 0; i < started; i++) {
		pthread_join(joiners[i].thread, NULL);
		if (joiners[i].status && !status)
			status = spyre_error(joiners[i].status, "rank %u: %s", i, joiners[i].text);
	}
	if (err)
		status = spyre_error(SPYRE_ERROR_SYSTEM, "cannot start a thread: %s", strerror(err));
	return status;
}

spyre_status spyre_comm_init_all(spyre_context *const *contexts, uint32_t size,
				 const spyre_comm_config *config, spyre_comm **comms)
{
	struct joiner *joiners;
	spyre_status status;
	spyre_comm_id id;

	if (!contexts || !comms)
		return spyre_null_argument("spyre_comm_init_all", contexts ? "comms" : "contexts");
	if (!size || size > SPYRE_COMM_MAX_RANKS)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "spyre_comm_init_all: %u ranks: "
				   "expected 1 to %u", size, SPYRE_COMM_MAX_RANKS);
	TRY(spyre_comm_get_id(&id));
	joiners = calloc(size, sizeof(*joiners));
	if (!joiners)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory for a communicator");
	for (uint32_t i = 0; i < size; i++)
		joiners[i] = (struct joiner){
			.context = contexts[i], .id = &id, .config = config, .rank = i,
			.size = size,
		};
	status = join_all(joiners, size);
	for (uint32_t i = 0; i < size; i++)
		comms[i] = joiners[i].comm;
	if (!status)
		status = comm_family_create(comms, size);
	for (uint32_t i = 0; status && i < size; i++) {
		spyre_comm_destroy(comms[i]);
		comms[i] = NULL;
	}
	free(joiners);
	return status;
}

static spyre_status wait_idle(spyre_comm *comm, const char *function)
{
	const int stream = spyre_context_calling_stream(comm->context);

	if (stream >= 0)
		return spyre_error(SPYRE_ERROR_BUSY, "%s: called from a host function of stream %d, "
				   "whose work the communicator may wait for", function, stream);
	pthread_mutex_lock(&comm->lock);
	while (comm->pending)
		pthread_cond_wait(&comm->changed, &comm->lock);
	pthread_mutex_unlock(&comm->lock);
	return SPYRE_SUCCESS;
}

spyre_status spyre_comm_finalize(spyre_comm *comm)
{
	TRY(check_object(comm));
	TRY(wait_idle(comm, "spyre_comm_finalize"));
	return comm_check(comm);
}

spyre_status spyre_comm_destroy(spyre_comm *comm)
{
	if (!comm)
		return SPYRE_SUCCESS;
	TRY(check_object(comm));
	TRY(wait_idle(comm, "spyre_comm_destroy"));
	comm_fabric_flush(comm);
	comm_tell_leaving(comm);
	comm_free(comm);
	return SPYRE_SUCCESS;
}

spyre_status spyre_comm_abort(spyre_comm *comm)
{
	TRY(check_object(comm));
	comm->aborted = true;
	comm_fail(comm, spyre_error(SPYRE_ERROR_CANCELLED, "this rank aborted the communicator"),
		  false);
	comm_tell_abort(comm);
	return SPYRE_SUCCESS;
}

spyre_status spyre_comm_set_timeout(spyre_comm *comm, uint64_t timeout_ms)
{
	TRY(check_object(comm));
	if (!timeout_ms)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "spyre_comm_set_timeout: a limit of 0 ms: "
				   "expected 1 to %u", COMM_MAX_TIMEOUT_MS);
	comm->timeout_ns = comm_timeout_ms(timeout_ms) * 1000000;
	return SPYRE_SUCCESS;
}

/* Names the transports of the links, joined by "+". */
static void name_transports(const spyre_comm *comm, char *text, size_t bytes)
{
	bool shm = comm->size == 1, fabric = false;

	for (uint32_t i = 0; i < comm->size; i++) {
		const struct comm_link_ops *ops = comm->peers[i].link[COMM_COLLECTIVE][0].ops;

		if (ops)
			*(strcmp(ops->name, "shm") ? &fabric : &shm) = true;
	}
	snprintf(text, bytes, "%s%s%s", shm ? "shm" : "", shm && fabric ? "+" : "",
		 fabric ? "tcp" : "");
}

static void count_ranks(const spyre_comm *comm, spyre_comm_info *info)
{
	const struct comm_address *own = &comm->peers[comm->rank].address;

	for (uint32_t i = 0; i < comm->size; i++) {
		const struct comm_address *address = &comm->peers[i].address;

		info->ranks_of_process += address->process == own->process;
		info->ranks_of_machine += !strcmp(address->machine, own->machine);
	}
}

spyre_status spyre_comm_get_info(spyre_comm *comm, spyre_comm_info *out)
{
	spyre_comm_info info = { 0 };

	TRY(check_object(comm));
	TRY(spyre_struct_check("spyre_comm_get_info", "comm_info", out));
	info.rank = comm->rank;
	info.size = comm->size;
	info.context = comm->context;
	info.timeout_ms = comm->timeout_ns / 1000000;
	info.chunk_bytes = comm->chunk;
	info.operations = comm->operations;
	info.bytes_sent = comm->sent;
	info.bytes_received = comm->received;
	memcpy(info.name, comm->name, sizeof(info.name));
	count_ranks(comm, &info);
	name_transports(comm, info.transport, sizeof(info.transport));
	spyre_struct_write(out, out->struct_size, &info, sizeof(info));
	return SPYRE_SUCCESS;
}
