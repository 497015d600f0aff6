// SPDX-License-Identifier: MIT
/*
 * The endpoint of a rank that has ranks on other machines. libfabric is loaded when the first
 * endpoint is opened: its providers initialise a dozen libraries, which processes without such
 * ranks should not pay for. A thread moves messages on while no rank's thread waits for them,
 * since providers do so only when they are called.
 */
#include "config.h"

#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include "libspyre/backend/futex.h"
#include "libspyre/base/log.h"
#include "libspyre/comm/fabric.h"
#include "libspyre/comm/fabric_link.h"
#include "libspyre/comm/root.h"
#include "libspyre/comm/shm.h"
#include "libspyre/comm/socket.h"

/* FI_TAGGED over FI_EP_RDM with these flags is older; 1.11 is the oldest that anyone ships. */
#define API FI_VERSION(1, 11)
#define LIBRARY "libfabric.so.1"
/*
 * The thread looks this often for what providers do by time, and for events that descriptors
 * miss while messages move: with 50 ms alone, net took 13 ms for an all_reduce of 128 bytes.
 */
#define POLL_MS 50
#define POLL_BLIND_MS 1
/* Messages move if the last one did so within this time. */
#define BLIND_NS 100000000
/* Limit of flush(): the data is in the other machine's memory, or its connection is broken. */
#define FLUSH_NS 10000000000

/* Functions of libfabric that are not inline. */
static struct {
	void *library;
	__typeof__(fi_getinfo) *getinfo;
	__typeof__(fi_freeinfo) *freeinfo;
	__typeof__(fi_dupinfo) *dupinfo;
	__typeof__(fi_fabric) *fabric;
	__typeof__(fi_strerror) *strerror;
} api;

static char load_error[256];

static void *symbol(const char *name)
{
	void *address = dlsym(api.library, name);

	if (!address)
		snprintf(load_error, sizeof(load_error), "it has no %s()", name);
	return address;
}

static void load_once(void)
{
	api.library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!api.library) {
		snprintf(load_error, sizeof(load_error), "%s", dlerror());
		return;
	}
	api.getinfo = (__typeof__(api.getinfo))symbol("fi_getinfo");
	api.freeinfo = (__typeof__(api.freeinfo))symbol("fi_freeinfo");
	api.dupinfo = (__typeof__(api.dupinfo))symbol("fi_dupinfo");
	api.fabric = (__typeof__(api.fabric))symbol("fi_fabric");
	api.strerror = (__typeof__(api.strerror))symbol("fi_strerror");
}

static spyre_status load(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, load_once);
	if (load_error[0])
		return spyre_error(SPYRE_ERROR_UNSUPPORTED, "cannot load " LIBRARY ", which connects "
				   "several machines: %s; install it", load_error);
	return SPYRE_SUCCESS;
}

static const char *provider(void)
{
	const char *name = getenv("SPYRE_COMM_PROVIDER");

	return name && *name ? name : "tcp";
}

static spyre_status fabric_error(const char *what, int err)
{
	if (err == -FI_EADDRNOTAVAIL)
		return spyre_error(SPYRE_ERROR_CONFIGURATION, "SPYRE_COMM_ADDRESS=%s is not an address "
				   "of this machine", comm_env_address());
	return spyre_error(SPYRE_ERROR_SYSTEM, "SPYRE_COMM_PROVIDER=%s: %s: %s", provider(), what,
			   api.strerror(-err));
}

/* Requests in one direction: of each slot that for its data or that for its credit. */
static size_t requests_of(const spyre_comm *comm)
{
	const size_t of_slots = COMM_CLASSES * COMM_DIRECTIONS * FABRIC_SLOTS;

	return (comm->size - 1) * (of_slots + FABRIC_FLUSHES);
}

static spyre_status find_provider(spyre_comm *comm, struct fi_info **info)
{
	struct fi_info *hints = api.dupinfo(NULL);
	const bool by_address = strcmp(provider(), "shm");
	int err;

	if (!hints)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory for a communicator");
	hints->caps = FI_TAGGED | FI_SEND | FI_RECV | FI_DIRECTED_RECV;
	hints->mode = FI_CONTEXT | FI_CONTEXT2;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_ALLOCATED | FI_MR_PROV_KEY |
				      FI_MR_VIRT_ADDR;
	/* Calls are made under the fabric's lock. */
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
	hints->tx_attr->size = requests_of(comm);
	hints->rx_attr->size = requests_of(comm);
	hints->fabric_attr->prov_name = strdup(provider());
	err = api.getinfo(API, by_address ? comm_env_address() : NULL, NULL,
			  by_address ? FI_SOURCE : 0, hints, info);
	api.freeinfo(hints);
	if (err)
		return spyre_error(SPYRE_ERROR_CONFIGURATION, "SPYRE_COMM_PROVIDER=%s at address %s: "
				   "libfabric has no such provider with reliable datagrams and tags: "
				   "%s; 'fi_info -t FI_EP_RDM' lists them", provider(),
				   comm_env_address(), api.strerror(-err));
	if ((*info)->ep_attr->max_msg_size >= comm->chunk)
		return SPYRE_SUCCESS;
	spyre_error(SPYRE_ERROR_CONFIGURATION, "SPYRE_COMM_PROVIDER=%s: messages have at most %zu "
		    "bytes, but SPYRE_COMM_CHUNK_KIB is %u; lower it", provider(),
		    (*info)->ep_attr->max_msg_size, comm->chunk / 1024);
	api.freeinfo(*info);
	return SPYRE_ERROR_CONFIGURATION;
}

static spyre_status open_queue(struct comm_fabric *fabric)
{
	struct fi_cq_attr attr = {
		.size = 2 * requests_of(fabric->comm), .format = FI_CQ_FORMAT_TAGGED,
		.wait_obj = FI_WAIT_FD,
	};
	int err = fi_cq_open(fabric->domain, &attr, &fabric->cq, NULL);

	fabric->exact = !strcmp(provider(), "tcp");
	if (!err && !fi_control(&fabric->cq->fid, FI_GETWAIT, &fabric->ready))
		return SPYRE_SUCCESS;
	if (!err)
		fi_close(&fabric->cq->fid);
	fabric->cq = NULL;
	fabric->ready = -1;
	fabric->exact = false;
	attr.wait_obj = FI_WAIT_NONE;
	err = fi_cq_open(fabric->domain, &attr, &fabric->cq, NULL);
	return err ? fabric_error("cannot create a completion queue", err) : SPYRE_SUCCESS;
}

static spyre_status open_endpoint(struct comm_fabric *fabric, struct fi_info *info)
{
	struct fi_av_attr attr = { .type = FI_AV_UNSPEC, .count = fabric->comm->size };
	int err = api.fabric(info->fabric_attr, &fabric->fabric, NULL);

	if (!err)
		err = fi_domain(fabric->fabric, info, &fabric->domain, NULL);
	if (err)
		return fabric_error("cannot open the domain", err);
	TRY(open_queue(fabric));
	err = fi_av_open(fabric->domain, &attr, &fabric->av, NULL);
	if (!err)
		err = fi_endpoint(fabric->domain, info, &fabric->ep, NULL);
	if (!err)
		err = fi_ep_bind(fabric->ep, &fabric->av->fid, 0);
	if (!err)
		err = fi_ep_bind(fabric->ep, &fabric->cq->fid, FI_SEND | FI_RECV);
	if (!err)
		err = fi_enable(fabric->ep);
	return err ? fabric_error("cannot open an endpoint", err) : SPYRE_SUCCESS;
}

static spyre_status name_endpoint(struct comm_fabric *fabric, struct comm_address *address)
{
	size_t bytes = sizeof(address->fabric);
	const int err = fi_getname(&fabric->ep->fid, address->fabric, &bytes);

	if (err)
		return fabric_error("its address is not known, or has too many bytes", err);
	address->fabric_bytes = bytes;
	return SPYRE_SUCCESS;
}

/* Slots of the ends of all links to @count ranks. */
static spyre_status open_memory(struct comm_fabric *fabric, uint32_t count)
{
	int err;

	fabric->bytes = (size_t)count * COMM_CLASSES * COMM_DIRECTIONS * FABRIC_SLOTS *
			fabric->comm->chunk;
	fabric->memory = mmap(NULL, fabric->bytes, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (fabric->memory == MAP_FAILED) {
		fabric->memory = NULL;
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "cannot map %zu bytes for "
				   "messages: %s", fabric->bytes, strerror(errno));
	}
	if (!fabric->registers)
		return SPYRE_SUCCESS;
	err = fi_mr_reg(fabric->domain, fabric->memory, fabric->bytes, FI_SEND | FI_RECV, 0, 0, 0,
			&fabric->mr, NULL);
	if (err)
		return fabric_error("cannot register memory", err);
	fabric->desc = fi_mr_desc(fabric->mr);
	return SPYRE_SUCCESS;
}

static struct comm_fabric *fabric_new(spyre_comm *comm)
{
	struct comm_fabric *fabric = calloc(1, sizeof(*fabric));

	if (fabric)
		fabric->peers = calloc(comm->size, sizeof(*fabric->peers));
	if (!fabric || !fabric->peers) {
		free(fabric);
		spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory for a communicator");
		return NULL;
	}
	fabric->comm = comm;
	fabric->describe = api.strerror;
	fabric->ready = fabric->stop = -1;
	fabric->secret = XXH3_64bits(&comm->key, sizeof(comm->key)) & ~(uint64_t)0xffff;
	pthread_mutex_init(&fabric->lock, NULL);
	return fabric;
}

spyre_status comm_fabric_open(spyre_comm *comm, struct comm_address *address)
{
	struct fi_info *info;
	spyre_status status;

	if (comm->size == 1)
		return SPYRE_SUCCESS;
	TRY(load());
	TRY(find_provider(comm, &info));
	comm->fabric = fabric_new(comm);
	status = comm->fabric ? open_endpoint(comm->fabric, info) : SPYRE_ERROR_OUT_OF_HOST_MEMORY;
	if (!status)
		status = name_endpoint(comm->fabric, address);
	if (!status)
		comm->fabric->registers = info->domain_attr->mr_mode & FI_MR_LOCAL;
	api.freeinfo(info);
	return status;
}

static spyre_status insert_peer(struct comm_fabric *fabric, uint32_t rank, uint8_t *memory)
{
	const struct comm_address *address = &fabric->comm->peers[rank].address;
	fi_addr_t *inserted = &fabric->peers[rank].address;

	if (!address->fabric_bytes)
		return comm_fabric_missing();
	if (fi_av_insert(fabric->av, address->fabric, 1, inserted, 0, NULL) != 1)
		return spyre_error(SPYRE_ERROR_REMOTE, "its address is not valid for "
				   "SPYRE_COMM_PROVIDER=%s; set the same one on all ranks", provider());
	fabric_link_init(fabric, rank, memory);
	return SPYRE_SUCCESS;
}

/* Time for which the thread may sleep. The caller holds the lock. */
static int sleep_ms(struct comm_fabric *fabric)
{
	struct fid *fid = &fabric->cq->fid;

	if (fabric->ready >= 0 && fi_trywait(fabric->fabric, &fid, 1))
		return 0;
	if (fabric->exact)
		return POLL_MS;
	return fabric->sending || (int64_t)spyre_now_ns() < fabric->moved_ns + BLIND_NS ?
	       POLL_BLIND_MS : POLL_MS;
}

/*
 * Rings the bell if messages have moved, which another thread may wait for. The fabric's thread
 * passes @pause_ms, and looks for broken connections.
 */
static spyre_status progress(struct comm_fabric *fabric, int *pause_ms)
{
	spyre_status status;
	bool moved;

	pthread_mutex_lock(&fabric->lock);
	status = fabric_link_progress(fabric);
	moved = fabric->moved;
	fabric->moved = false;
	if (moved)
		fabric->moved_ns = spyre_now_ns();
	if (!status && pause_ms)
		status = fabric_link_check(fabric);
	if (pause_ms)
		*pause_ms = sleep_ms(fabric);
	pthread_mutex_unlock(&fabric->lock);
	if (moved)
		comm_ring(fabric->comm);
	return status;
}

spyre_status comm_fabric_progress(spyre_comm *comm)
{
	return comm->fabric ? progress(comm->fabric, NULL) : SPYRE_SUCCESS;
}

static void *fabric_main(void *argument)
{
	struct comm_fabric *fabric = argument;
	struct pollfd pollers[] = {
		{ .fd = fabric->stop, .events = POLLIN }, { .fd = fabric->ready, .events = POLLIN },
	};
	struct spyre_error_state error;
	spyre_status status = SPYRE_SUCCESS;

	pthread_setname_np(pthread_self(), "spyre-fabric");
	spyre_error_save(&error);
	while (!status && !pollers[0].revents) {
		int pause_ms = 0;

		status = progress(fabric, &pause_ms);
		if (!status)
			poll(pollers, 2, pause_ms);
	}
	if (status)
		comm_fail(fabric->comm, status, true);
	spyre_error_end();
	return NULL;
}

static spyre_status start_thread(struct comm_fabric *fabric)
{
	sigset_t all, old;
	int err;

	fabric->stop = eventfd(0, EFD_CLOEXEC);
	if (fabric->stop < 0)
		return spyre_error(SPYRE_ERROR_SYSTEM, "eventfd: %s", strerror(errno));
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&fabric->thread, NULL, fabric_main, fabric);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		return spyre_error(SPYRE_ERROR_SYSTEM, "cannot start the fabric's thread: %s; check "
				   "ulimit -u", strerror(err));
	fabric->running = true;
	return SPYRE_SUCCESS;
}

/*
 * Waits until the other ranks know this one's address, and vice versa: the first message of a
 * rank that is not known yet would not be recognised as one of its own.
 */
static spyre_status meet(spyre_comm *comm, const bool *remote, int64_t deadline_ns)
{
	spyre_status status = SPYRE_SUCCESS;
	char byte = 0;

	/* A rank that has failed no longer takes the byte, but has told its reason before. */
	for (uint32_t rank = 0; rank < comm->size; rank++)
		if (remote[rank])
			comm_send_all(comm->peers[rank].control, &byte, 1, deadline_ns);
	for (uint32_t rank = 0; !status && rank < comm->size; rank++)
		if (remote[rank]) {
			status = comm_recv_all(comm->peers[rank].control, &byte, 1, deadline_ns);
			if (!status && byte)
				status = comm_read_failure(comm, rank, deadline_ns);
			if (status)
				status = spyre_error_prefix(status, "rank %u (process %d on %s)", rank,
							    comm->peers[rank].address.pid,
							    comm->peers[rank].address.host);
		}
	return status;
}

spyre_status comm_fabric_connect(spyre_comm *comm, const bool *remote, int64_t deadline_ns)
{
	const size_t bytes = (size_t)COMM_CLASSES * COMM_DIRECTIONS * FABRIC_SLOTS * comm->chunk;
	uint32_t count = 0;

	for (uint32_t rank = 0; rank < comm->size; rank++)
		count += remote[rank];
	if (!count) {
		comm_fabric_close(comm);
		return SPYRE_SUCCESS;
	}
	if (!comm->fabric)
		return comm_fabric_missing();
	TRY(open_memory(comm->fabric, count));
	for (uint32_t rank = comm->size; rank-- > 0;) {
		spyre_status status;

		if (!remote[rank])
			continue;
		status = insert_peer(comm->fabric, rank, comm->fabric->memory + --count * bytes);
		if (status)
			return spyre_error_prefix(status, "rank %u (process %d on %s)", rank,
						  comm->peers[rank].address.pid,
						  comm->peers[rank].address.host);
	}
	TRY(meet(comm, remote, deadline_ns));
	return start_thread(comm->fabric);
}

void comm_fabric_wait(spyre_comm *comm, uint32_t value, int64_t deadline_ns)
{
	const int64_t soon_ns = spyre_now_ns() + POLL_BLIND_MS * 1000000;

	/* The fabric's thread and local ranks ring the same bell. */
	comm_shm_wait(comm, value, comm->fabric->exact || deadline_ns < soon_ns ? deadline_ns :
		      soon_ns);
}

void comm_fabric_flush(spyre_comm *comm)
{
	const int64_t deadline_ns = spyre_now_ns() + FLUSH_NS;
	struct comm_fabric *fabric = comm->fabric;
	bool flushed = false;

	if (!fabric || !fabric->running)
		return;
	while (!flushed && !comm->failed && (int64_t)spyre_now_ns() < deadline_ns) {
		const uint32_t bell = atomic_load(comm->bell);

		if (progress(fabric, NULL))
			return;
		pthread_mutex_lock(&fabric->lock);
		flushed = fabric_link_flush(fabric);
		pthread_mutex_unlock(&fabric->lock);
		if (!flushed)
			comm_fabric_wait(comm, bell, spyre_now_ns() + POLL_MS * 1000000);
	}
}

static void stop_thread(struct comm_fabric *fabric)
{
	const uint64_t one = 1;

	if (fabric->running && write(fabric->stop, &one, sizeof(one)) == sizeof(one))
		pthread_join(fabric->thread, NULL);
	if (fabric->stop >= 0)
		close(fabric->stop);
}

/*
 * False if a connection ended with its rank: the provider tcp of libfabric 1.17 (rxm) crashed in
 * 2 of about 280 closings of such an endpoint, in its handler of the requests that are cancelled
 * with the connection.
 */
static bool can_close(const struct comm_fabric *fabric)
{
	for (uint32_t rank = 0; rank < fabric->comm->size; rank++)
		if (fabric->peers[rank].broken_ns || fabric->comm->peers[rank].lost)
			return !fabric->exact;
	return true;
}

/* Closes what is open, users before what they use. */
static void close_endpoint(struct comm_fabric *fabric)
{
	if (fabric->ep)
		fi_close(&fabric->ep->fid);
	if (fabric->mr)
		fi_close(&fabric->mr->fid);
	if (fabric->av)
		fi_close(&fabric->av->fid);
	if (fabric->cq)
		fi_close(&fabric->cq->fid);
	if (fabric->domain)
		fi_close(&fabric->domain->fid);
	if (fabric->fabric)
		fi_close(&fabric->fabric->fid);
}

/*
 * An endpoint that stays open keeps its sockets until the process ends. A list of them keeps its
 * memory reachable, so that leak checkers do not report it.
 */
static void keep_endpoint(struct comm_fabric *fabric)
{
	static pthread_mutex_t kept_lock = PTHREAD_MUTEX_INITIALIZER;
	static struct comm_fabric *kept;

	pthread_mutex_lock(&kept_lock);
	fabric->next = kept;
	kept = fabric;
	pthread_mutex_unlock(&kept_lock);
}

void comm_fabric_close(spyre_comm *comm)
{
	struct comm_fabric *fabric = comm->fabric;
	bool closes;

	if (!fabric)
		return;
	stop_thread(fabric);
	closes = can_close(fabric);
	if (closes)
		close_endpoint(fabric);
	else
		spyre_log(SPYRE_LOG_WARN, "comm: the endpoint of \"%s\" stays open, since closing it "
			  "after the loss of a rank may crash libfabric", comm->name);
	if (fabric->memory)
		munmap(fabric->memory, fabric->bytes);
	pthread_mutex_destroy(&fabric->lock);
	free(fabric->peers);
	comm->fabric = NULL;
	if (closes)
		free(fabric);
	else
		keep_endpoint(fabric);
}
