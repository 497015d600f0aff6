// SPDX-License-Identifier: MIT
/*
 * A rank's way into a communicator: it tells the root its addresses, learns those of all ranks,
 * connects to the ranks below its own and accepts those above. The connections stay open, as
 * control connections (watch.c).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <xxhash.h>

#include "libspyre/backend/futex.h"
#include "libspyre/comm/arrivals.h"
#include "libspyre/comm/fabric.h"
#include "libspyre/comm/root.h"
#include "libspyre/comm/shm.h"
#include "libspyre/comm/socket.h"

/* Time for what another rank sends at once. */
#define GREETING_NS 2000000000
/* A rank that waits for connections looks this often for ranks that have ended. */
#define CHECK_NS 20000000
/* So that group_id differs from other hashes of the key, some of which are secret. */
#define GROUP_ID_SEED 0x67726f7570u

struct rendezvous {
	spyre_comm *comm;
	struct comm_identity identity;
	enum comm_transport transport;
	int64_t deadline_ns;
	int unix_listener;
	int tcp_listener;
	struct comm_address address;
	struct comm_arrivals arrivals;
	/* The rank that the error names, and whether it has told the reason itself. */
	uint32_t named;
	bool told;
	/* Ranks below this one have passed their segment and may no longer listen. */
	uint32_t met;
};

/* Ranks share memory if they have the same kernel and the same namespace for their sockets. */
static void name_machine(char *machine, size_t bytes)
{
	char boot[48] = "";
	struct stat net = { 0 };
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		if (read(fd, boot, 36) != 36)
			boot[0] = 0;
		close(fd);
	}
	stat("/proc/self/ns/net", &net);
	snprintf(machine, bytes, "%s:%" PRIu64, boot, (uint64_t)net.st_ino);
}

static uint64_t process_number(void)
{
	static _Atomic uint64_t number;
	static _Atomic uint32_t generation;
	uint64_t fresh, none = 0;

	/* A child of fork() is another process. */
	if (atomic_exchange(&generation, spyre_fork_generation() + 1) !=
	    spyre_fork_generation() + 1)
		atomic_store(&number, 0);
	if (!atomic_load(&number) && getrandom(&fresh, sizeof(fresh), 0) == sizeof(fresh))
		atomic_compare_exchange_strong(&number, &none, fresh | 1);
	return atomic_load(&number);
}

static spyre_status open_address(struct rendezvous *r)
{
	struct comm_address *address = &r->address;
	const bool shares = r->transport != COMM_TRANSPORT_TCP;
	uint64_t name[2];

	address->pid = getpid();
	address->process = process_number();
	gethostname(address->host, sizeof(address->host) - 1);
	if (getrandom(name, sizeof(name), 0) != sizeof(name))
		return spyre_error(SPYRE_ERROR_SYSTEM, "getrandom: %s", strerror(errno));
	if (shares) {
		name_machine(address->machine, sizeof(address->machine));
		snprintf(address->socket, sizeof(address->socket), "spyre-comm-%016" PRIx64
			 "%016" PRIx64, name[0], name[1]);
		TRY(comm_listen_unix(address->socket, &r->unix_listener));
	}
	/* The default address is one that ranks of other machines cannot reach. */
	if (r->transport == COMM_TRANSPORT_SHM ||
	    (r->transport == COMM_TRANSPORT_AUTO && !comm_env_has_address()))
		return SPYRE_SUCCESS;
	if (strlen(comm_env_address()) >= sizeof(address->tcp_host))
		return spyre_error(SPYRE_ERROR_CONFIGURATION, "SPYRE_COMM_ADDRESS has more than %zu "
				   "characters; use a numeric address", sizeof(address->tcp_host) - 1);
	TRY(comm_fabric_open(r->comm, address));
	snprintf(address->tcp_host, sizeof(address->tcp_host), "%s", comm_env_address());
	return comm_listen_tcp(address->tcp_host, &address->tcp_port, &r->tcp_listener);
}

spyre_status comm_fabric_missing(void)
{
#ifdef HAVE_LIBFABRIC
	return spyre_error(SPYRE_ERROR_CONFIGURATION, "it runs on another machine or in another "
			   "network namespace; set SPYRE_COMM_ADDRESS on every rank to an address of "
			   "its machine that the others can reach");
#else
	return spyre_error(SPYRE_ERROR_UNSUPPORTED, "this libspyre was built without libfabric, "
			   "which connects several machines; install libfabric-dev and configure "
			   "--with-libfabric");
#endif
}

/* Names the process behind the root's address. */
static spyre_status root_silent(const struct rendezvous *r, spyre_status status)
{
	return spyre_error_prefix(status, "the process that created the id (process %d) does not "
				  "answer", r->identity.pid);
}

static spyre_status read_answer(struct rendezvous *r, int fd)
{
	spyre_comm *comm = r->comm;
	struct comm_answer answer;
	spyre_status status = comm_recv_all(fd, &answer, sizeof(answer), r->deadline_ns);

	if (status)
		return root_silent(r, status);
	if (answer.magic != COMM_MAGIC)
		return spyre_error(SPYRE_ERROR_REMOTE, "the root's answer is not valid");
	answer.text[sizeof(answer.text) - 1] = 0;
	if (answer.status)
		return spyre_error(answer.status < SPYRE_STATUS_COUNT ? answer.status :
				   SPYRE_ERROR_REMOTE, "%s", answer.text);
	for (uint32_t i = 0; i < comm->size; i++) {
		struct comm_address *address = &comm->peers[i].address;

		status = comm_recv_all(fd, address, sizeof(*address), r->deadline_ns);
		if (status)
			return root_silent(r, status);
		address->machine[sizeof(address->machine) - 1] = 0;
		address->socket[sizeof(address->socket) - 1] = 0;
		address->host[sizeof(address->host) - 1] = 0;
		address->tcp_host[sizeof(address->tcp_host) - 1] = 0;
		if (address->fabric_bytes > sizeof(address->fabric))
			return spyre_error(SPYRE_ERROR_REMOTE, "rank %u has an invalid address", i);
	}
	return SPYRE_SUCCESS;
}

static spyre_status ask_root(struct rendezvous *r)
{
	const spyre_comm *comm = r->comm;
	struct comm_hello hello = {
		.magic = COMM_MAGIC, .version = COMM_VERSION, .key = r->identity.key,
		.size = comm->size, .rank = comm->rank, .chunk = comm->chunk,
		.transport = r->transport, .timeout_ms = comm->timeout_ns / 1000000,
		.address = r->address,
	};
	spyre_status status;
	int fd;

	status = comm_connect_tcp(r->identity.host, r->identity.port, r->deadline_ns, &fd);
	if (status)
		return root_silent(r, status);
	status = comm_send_all(fd, &hello, sizeof(hello), r->deadline_ns);
	status = status ? root_silent(r, status) : read_answer(r, fd);
	close(fd);
	if (status == SPYRE_ERROR_TIMEOUT)
		return status;
	return status ? spyre_error_prefix(status, "rank %u of %u", comm->rank, comm->size) : status;
}

static bool shares_memory(const struct rendezvous *r, uint32_t rank)
{
	return r->transport != COMM_TRANSPORT_TCP &&
	       !strcmp(r->comm->peers[rank].address.machine, r->address.machine);
}

static spyre_status connect_down(struct rendezvous *r, uint32_t rank)
{
	spyre_comm *comm = r->comm;
	const struct comm_address *address = &comm->peers[rank].address;
	struct comm_greeting greeting = {
		.magic = COMM_MAGIC, .rank = comm->rank, .key = r->identity.key,
	};
	int *fd = &comm->peers[rank].control;
	spyre_status status;

	if (shares_memory(r, rank))
		status = comm_connect_unix(address->socket, r->deadline_ns, fd);
	else if (r->transport == COMM_TRANSPORT_SHM)
		status = spyre_error(SPYRE_ERROR_CONFIGURATION, "it runs on another machine or in "
				     "another network namespace, and SPYRE_COMM_TRANSPORT is shm; "
				     "set it to auto or tcp");
	else if (!address->tcp_port)
		status = comm_fabric_missing();
	else
		status = comm_connect_tcp(address->tcp_host, address->tcp_port, r->deadline_ns, fd);
	if (!status)
		status = comm_send_all(*fd, &greeting, sizeof(greeting), r->deadline_ns);
	return status;
}

static spyre_status name_rank(struct rendezvous *r, uint32_t rank, spyre_status status)
{
	const struct comm_address *address = &r->comm->peers[rank].address;

	r->named = rank;
	return spyre_error_prefix(status, "rank %u (process %d on %s)", rank, address->pid,
				  address->host);
}

/*
 * True if the rank at the other end has ended or failed. What a rank sends to go on begins with a
 * byte of 0.
 */
static bool is_lost(int fd)
{
	char byte = 0;
	const ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	return n < 0 ? errno != EAGAIN && errno != EINTR : !n || byte;
}

/*
 * An error if a rank that this one is connected to has ended or failed: it may be the reason why
 * another one does not connect.
 */
static spyre_status check_connected(struct rendezvous *r)
{
	spyre_comm *comm = r->comm;

	for (uint32_t i = 0; i < comm->size; i++) {
		const int fd = comm->peers[i].control;
		spyre_status status;
		char byte;

		if (fd < 0 || !is_lost(fd))
			continue;
		r->told = recv(fd, &byte, 1, MSG_DONTWAIT) == 1;
		if (r->told)
			status = comm_read_failure(comm, i, spyre_now_ns() + GREETING_NS);
		else
			status = spyre_error(SPYRE_ERROR_REMOTE, "the connection ended");
		return name_rank(r, i, status);
	}
	return SPYRE_SUCCESS;
}

/* Waits for a connection, and for the end of the ranks that are connected. */
static spyre_status wait_arrival(struct rendezvous *r, int *fd, struct comm_greeting *greeting)
{
	spyre_status status;
	int64_t now;

	do {
		TRY(check_connected(r));
		now = spyre_now_ns();
		status = comm_arrivals_next(&r->arrivals, now + CHECK_NS < r->deadline_ns ?
					    now + CHECK_NS : r->deadline_ns, fd, greeting);
	} while (status == SPYRE_ERROR_TIMEOUT && now < r->deadline_ns);
	return status;
}

/* Returns the next of the higher ranks that connects. Connections of others are closed. */
static spyre_status accept_rank(struct rendezvous *r, uint32_t *rank)
{
	spyre_comm *comm = r->comm;
	struct comm_greeting greeting;
	int fd;

	for (;;) {
		TRY(wait_arrival(r, &fd, &greeting));
		if (greeting.magic == COMM_MAGIC &&
		    comm_key_equal(&greeting.key, &r->identity.key) &&
		    greeting.rank > comm->rank && greeting.rank < comm->size &&
		    comm->peers[greeting.rank].control < 0)
			break;
		close(fd);
	}
	comm->peers[greeting.rank].control = fd;
	*rank = greeting.rank;
	return SPYRE_SUCCESS;
}

/* Adds the first higher rank that has not connected, and the number of all that have not. */
static spyre_status name_missing(struct rendezvous *r, spyre_status status, uint32_t count)
{
	const spyre_comm *comm = r->comm;
	uint32_t i = comm->rank + 1;

	while (i + 1 < comm->size && comm->peers[i].control >= 0)
		i++;
	status = name_rank(r, i, status);
	return spyre_error_prefix(status, "%u of the higher ranks did not connect", count);
}

static spyre_status accept_up(struct rendezvous *r)
{
	spyre_comm *comm = r->comm;
	uint32_t local = 0, remote = 0, rank;
	spyre_status status = SPYRE_SUCCESS;

	r->arrivals.listener[0] = r->unix_listener;
	r->arrivals.listener[1] = r->tcp_listener;
	for (uint32_t i = comm->rank + 1; i < comm->size; i++)
		*(shares_memory(r, i) ? &local : &remote) += 1;
	while (!status && (local || (remote && r->tcp_listener >= 0))) {
		status = accept_rank(r, &rank);
		if (!status)
			*(shares_memory(r, rank) ? &local : &remote) -= 1;
	}
	comm_arrivals_close(&r->arrivals);
	if (!status && remote)
		status = r->transport == COMM_TRANSPORT_SHM ?
			 spyre_error(SPYRE_ERROR_CONFIGURATION, "%u ranks run on other machines or "
				     "in other network namespaces, and SPYRE_COMM_TRANSPORT is shm; "
				     "set it to auto or tcp", remote) : comm_fabric_missing();
	/* Another rank than the missing ones is the reason for REMOTE. */
	return !status || status == SPYRE_ERROR_REMOTE ? status :
	       name_missing(r, status, local + remote);
}

/* True if rank @rank still listens, as all do until they have met all others. */
static bool listens(const struct rendezvous *r, uint32_t rank, int64_t deadline_ns)
{
	const struct comm_address *address = &r->comm->peers[rank].address;
	spyre_status status;
	int fd = -1;

	status = shares_memory(r, rank) ?
		 comm_connect_unix(address->socket, deadline_ns, &fd) :
		 comm_connect_tcp(address->tcp_host, address->tcp_port, deadline_ns, &fd);
	if (!status)
		close(fd);
	return !status;
}

static bool has_ended(const struct rendezvous *r, uint32_t rank, int64_t deadline_ns)
{
	const int fd = r->comm->peers[rank].control;

	return (fd >= 0 && is_lost(fd)) || (rank >= r->met && !listens(r, rank, deadline_ns));
}

/*
 * Adds the other ranks that have ended or given up. The rank that the error names may have given
 * up because of one of them, and could not tell, since it had not accepted this one.
 */
static spyre_status name_silent(struct rendezvous *r, spyre_status status)
{
	const int64_t deadline_ns = spyre_now_ns() + GREETING_NS;
	const spyre_comm *comm = r->comm;
	struct spyre_error_state error;
	char ranks[320] = "";
	size_t at = 0;

	spyre_error_save(&error);
	for (uint32_t i = 0; i < comm->size && at < sizeof(ranks) - 96; i++) {
		const struct comm_address *address = &comm->peers[i].address;

		if (i != comm->rank && i != r->named && has_ended(r, i, deadline_ns))
			at += snprintf(ranks + at, sizeof(ranks) - at,
				       "%srank %u (process %d on %.48s)", at ? ", " : "", i,
				       address->pid, address->host);
	}
	spyre_error_restore(&error);
	return at ? spyre_error_prefix(status, "%s ended or gave up", ranks) : status;
}

/* Connects to the lower ranks, and waits for the connections of the higher ones. */
static spyre_status connect_control(struct rendezvous *r)
{
	spyre_status status;

	for (uint32_t i = 0; i < r->comm->rank; i++) {
		status = connect_down(r, i);
		if (!status)
			continue;
		TRY(check_connected(r));
		status = name_rank(r, i, status);
		return spyre_error_prefix(status, "cannot connect");
	}
	return accept_up(r);
}

/* Exchanges segments with the ranks of this machine; all are connected. */
static spyre_status meet_local(struct rendezvous *r, int64_t deadline_ns)
{
	const spyre_comm *comm = r->comm;
	spyre_status status;

	for (uint32_t i = 0; i < comm->size; i++) {
		r->met = i;
		if (i == comm->rank || !shares_memory(r, i))
			continue;
		status = comm_shm_connect(r->comm, i, deadline_ns, &r->told);
		if (status)
			return name_rank(r, i, status);
	}
	return SPYRE_SUCCESS;
}

static spyre_status connect_all(struct rendezvous *r)
{
	bool remote[SPYRE_COMM_MAX_RANKS] = { false };
	spyre_comm *comm = r->comm;
	int64_t peer_deadline_ns;
	spyre_status status;

	/*
	 * All ranks have the answer at about the same time. A rank that has connected may wait for
	 * one that has not, and tells so at its limit, which should pass before this rank's.
	 */
	r->deadline_ns = spyre_now_ns() + comm->timeout_ns;
	peer_deadline_ns = r->deadline_ns + GREETING_NS;
	status = connect_control(r);
	if (!status)
		status = meet_local(r, peer_deadline_ns);
	if (status)
		return status == SPYRE_ERROR_REMOTE && !r->told ? name_silent(r, status) : status;
	for (uint32_t i = 0; i < comm->size; i++)
		remote[i] = i != comm->rank && !shares_memory(r, i);
	return comm_fabric_connect(comm, remote, peer_deadline_ns);
}

spyre_status comm_rendezvous(spyre_comm *comm, const spyre_comm_id *id)
{
	struct rendezvous r = { .comm = comm, .unix_listener = -1, .tcp_listener = -1 };
	spyre_status status;

	memcpy(&r.identity, id, sizeof(*id));
	if (r.identity.magic == __builtin_bswap32(COMM_MAGIC))
		return spyre_error(SPYRE_ERROR_UNSUPPORTED, "the id was created on a host of the other "
				   "byte order; run all ranks on hosts of one");
	if (r.identity.magic != COMM_MAGIC || r.identity.version != COMM_VERSION ||
	    !memchr(r.identity.host, 0, sizeof(r.identity.host)) || r.identity.port > 65535)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "the id is not one that "
				   "spyre_comm_get_id() of this version has filled");
	comm->key = r.identity.key;
	comm->group_id = (uint32_t)XXH3_64bits_withSeed(&comm->key, sizeof(comm->key),
							GROUP_ID_SEED);
	status = comm_env_transport(&r.transport);
	if (!status)
		status = open_address(&r);
	/*
	 * The limit is one for other ranks, not for loading libfabric. The root reports what it is
	 * waiting for, which takes a moment longer.
	 */
	r.deadline_ns = spyre_now_ns() + comm->timeout_ns + GREETING_NS;
	if (!status)
		status = ask_root(&r);
	if (!status) {
		status = connect_all(&r);
		/* Ranks that wait for this one would take its end for the cause. */
		if (status)
			comm_tell_failure(comm, spyre_last_error());
	}
	if (r.unix_listener >= 0)
		close(r.unix_listener);
	if (r.tcp_listener >= 0)
		close(r.tcp_listener);
	return status;
}
