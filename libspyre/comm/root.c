// SPDX-License-Identifier: MIT
/*
 * The root of a communicator that is being created: a thread of the process that made the id.
 * It collects the addresses of all ranks, sends every rank all of them, and ends. After an error
 * it stays for a moment, for ranks that have not arrived.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libspyre/backend/futex.h"
#include "libspyre/base/environment.h"
#include "libspyre/base/error.h"
#include "libspyre/base/log.h"
#include "libspyre/comm/arrivals.h"
#include "libspyre/comm/comm.h"
#include "libspyre/comm/root.h"
#include "libspyre/comm/socket.h"

#define MAX_CONNECTIONS (SPYRE_COMM_MAX_RANKS + COMM_MAX_UNKNOWN)
#define DEFAULT_TIMEOUT_MS 600000
/* Time for a connection to send its first message, and to take the answer. */
#define MESSAGE_NS 5000000000

spyre_status comm_env_timeout_ms(uint64_t *milliseconds)
{
	return spyre_env_u64("SPYRE_COMM_TIMEOUT_MS", DEFAULT_TIMEOUT_MS, 1, UINT32_MAX,
			     milliseconds);
}

bool comm_env_has_address(void)
{
	const char *address = getenv("SPYRE_COMM_ADDRESS");

	return address && *address;
}

const char *comm_env_address(void)
{
	return comm_env_has_address() ? getenv("SPYRE_COMM_ADDRESS") : "127.0.0.1";
}

spyre_status comm_env_transport(enum comm_transport *transport)
{
	static const char *const names[] = { "auto", "shm", "tcp" };
	const char *text = getenv("SPYRE_COMM_TRANSPORT");

	*transport = COMM_TRANSPORT_AUTO;
	if (!text || !*text)
		return SPYRE_SUCCESS;
	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(text, names[i]))
			continue;
		*transport = (enum comm_transport)i;
		return SPYRE_SUCCESS;
	}
	return spyre_error(SPYRE_ERROR_CONFIGURATION,
			   "SPYRE_COMM_TRANSPORT=\"%s\": expected auto, shm or tcp", text);
}

/* A connection and what it has sent so far. */
struct arrival {
	int fd;
	size_t have;
	int64_t deadline_ns;
	struct comm_hello hello;
};

struct root {
	int listener;
	struct comm_key key;
	int64_t deadline_ns;
	/* Of the first rank; 0 while there is none. */
	uint32_t size;
	uint32_t arrived;
	struct arrival *rank[SPYRE_COMM_MAX_RANKS];
	struct arrival *all[MAX_CONNECTIONS];
	uint32_t count;
	struct comm_answer answer;
};

static void drop(struct root *root, uint32_t i)
{
	close(root->all[i]->fd);
	free(root->all[i]);
	root->all[i] = root->all[--root->count];
}

/* Ends the rendezvous with an error for all ranks, of which the first one counts. */
static void refuse(struct root *root, spyre_status status, const char *format, ...)
{
	va_list args;

	if (root->answer.status)
		return;
	root->answer.status = status;
	va_start(args, format);
	vsnprintf(root->answer.text, sizeof(root->answer.text), format, args);
	va_end(args);
}

bool comm_key_equal(const struct comm_key *a, const struct comm_key *b)
{
	uint8_t different = 0;

	for (size_t i = 0; i < sizeof(a->bytes); i++)
		different |= a->bytes[i] ^ b->bytes[i];
	return !different;
}

/* Takes a complete first message. Returns false if its sender does not have the key. */
static bool admit(struct root *root, struct arrival *arrival)
{
	const struct comm_hello *hello = &arrival->hello;
	const struct arrival *first = root->all[0];

	if (hello->magic != COMM_MAGIC || hello->version != COMM_VERSION ||
	    !comm_key_equal(&hello->key, &root->key))
		return false;
	if (root->answer.status)
		return true;
	if (!root->size) {
		/* There is no space for more, whatever the rank says. */
		root->size = hello->size < SPYRE_COMM_MAX_RANKS ? hello->size :
								  SPYRE_COMM_MAX_RANKS;
		root->deadline_ns = spyre_now_ns() + hello->timeout_ms * 1000000;
	}
	for (uint32_t i = 0; i < root->size; i++)
		if (root->rank[i])
			first = root->rank[i];
	if (!hello->size || hello->size > SPYRE_COMM_MAX_RANKS || hello->rank >= hello->size)
		refuse(root, SPYRE_ERROR_INVALID_ARGUMENT, "rank %u of %u is not valid", hello->rank,
		       hello->size);
	else if (hello->size != root->size)
		refuse(root, SPYRE_ERROR_INVALID_ARGUMENT, "the ranks disagree on the size: rank %u "
		       "was created with %u, another one with %u; pass the same size on all ranks",
		       hello->rank, hello->size, root->size);
	else if (root->rank[hello->rank])
		refuse(root, SPYRE_ERROR_INVALID_ARGUMENT, "rank %u joined twice, as process %d on "
		       "%.63s and as process %d on %.63s; give each process its own rank",
		       hello->rank, root->rank[hello->rank]->hello.address.pid,
		       root->rank[hello->rank]->hello.address.host, hello->address.pid,
		       hello->address.host);
	else if (root->arrived && (hello->chunk != first->hello.chunk ||
				   hello->transport != first->hello.transport))
		refuse(root, SPYRE_ERROR_CONFIGURATION, "SPYRE_COMM_CHUNK_KIB or "
		       "SPYRE_COMM_TRANSPORT of rank %u differs from that of rank %u (%u and %u "
		       "bytes); set the same values on all ranks", hello->rank, first->hello.rank,
		       hello->chunk, first->hello.chunk);
	else {
		root->rank[hello->rank] = arrival;
		root->arrived++;
	}
	return true;
}

/* Reads from connection @i. Returns false if it was dropped. */
static bool receive(struct root *root, uint32_t i)
{
	struct arrival *arrival = root->all[i];
	char extra;
	bool complete = arrival->have == sizeof(arrival->hello);
	ssize_t n = complete ? recv(arrival->fd, &extra, 1, 0) :
		    recv(arrival->fd, (char *)&arrival->hello + arrival->have,
			 sizeof(arrival->hello) - arrival->have, 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (complete) {
		refuse(root, SPYRE_ERROR_REMOTE, "rank %u (process %d on %.63s) ended before all "
		       "ranks had arrived", arrival->hello.rank, arrival->hello.address.pid,
		       arrival->hello.address.host);
		return true;
	}
	if (n <= 0) {
		drop(root, i);
		return false;
	}
	arrival->have += n;
	if (arrival->have == sizeof(arrival->hello) && !admit(root, arrival)) {
		drop(root, i);
		return false;
	}
	return true;
}

static void accept_one(struct root *root)
{
	int fd = accept4(root->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct arrival *arrival = fd < 0 ? NULL : calloc(1, sizeof(*arrival));

	if (!arrival) {
		if (fd >= 0)
			close(fd);
		return;
	}
	arrival->fd = fd;
	arrival->deadline_ns = spyre_now_ns() + MESSAGE_NS;
	root->all[root->count++] = arrival;
}

/* Lists the ranks that are missing. */
static void refuse_late(struct root *root)
{
	char missing[320] = "";
	size_t at = 0;

	for (uint32_t i = 0; i < root->size && at < sizeof(missing) - 16; i++)
		if (!root->rank[i])
			at += snprintf(missing + at, sizeof(missing) - at, "%s%u", at ? ", " : "", i);
	refuse(root, SPYRE_ERROR_TIMEOUT, "%u of %u ranks arrived within the time limit; missing: "
	       "%s; start them, or raise SPYRE_COMM_TIMEOUT_MS", root->arrived, root->size, missing);
}

static bool finished(const struct root *root)
{
	return root->answer.status || (root->size && root->arrived == root->size);
}

static void poll_once(struct root *root)
{
	struct pollfd pollers[MAX_CONNECTIONS + 1] = { { .fd = root->listener, .events = POLLIN } };
	const int64_t now = spyre_now_ns();
	/* Strangers that send nothing must not keep ranks in the backlog. */
	const int64_t early_ns = root->count == MAX_CONNECTIONS ? MESSAGE_NS - COMM_CROWDED_NS : 0;

	if (root->count == MAX_CONNECTIONS)
		pollers[0].fd = -1;
	for (uint32_t i = 0; i < root->count; i++)
		pollers[i + 1] = (struct pollfd){ .fd = root->all[i]->fd, .events = POLLIN };
	poll(pollers, root->count + 1, 100);
	/* Dropping moves the last connection, so the list is walked from its end. */
	for (uint32_t i = root->count; i-- > 0;) {
		const struct arrival *arrival = root->all[i];

		if (pollers[i + 1].revents)
			receive(root, i);
		else if (arrival->have < sizeof(arrival->hello) &&
			 now > arrival->deadline_ns - early_ns)
			drop(root, i);
	}
	if (pollers[0].revents)
		accept_one(root);
}

static void answer(struct root *root, struct arrival *arrival, int64_t deadline_ns)
{
	bool ok = !comm_send_all(arrival->fd, &root->answer, sizeof(root->answer), deadline_ns);

	for (uint32_t r = 0; ok && !root->answer.status && r < root->size; r++)
		ok = !comm_send_all(arrival->fd, &root->rank[r]->hello.address,
				    sizeof(struct comm_address), deadline_ns);
}

/* Answers all ranks that have arrived. Returns their number. */
static uint32_t answer_all(struct root *root)
{
	const int64_t deadline_ns = spyre_now_ns() + MESSAGE_NS;
	uint32_t answered = 0;

	for (uint32_t i = 0; i < root->count; i++) {
		if (root->all[i]->have < sizeof(root->all[i]->hello))
			continue;
		answer(root, root->all[i], deadline_ns);
		answered++;
	}
	return answered;
}

/* Drops the ranks that have been answered. */
static void drop_answered(struct root *root)
{
	for (uint32_t i = root->count; i-- > 0;)
		if (root->all[i]->have == sizeof(root->all[i]->hello))
			drop(root, i);
}

/* Tells ranks that arrive after an error its reason, for a while. */
static void answer_late(struct root *root, uint32_t answered)
{
	const int64_t deadline_ns = spyre_now_ns() + MESSAGE_NS;

	while (answered < root->size && (int64_t)spyre_now_ns() < deadline_ns) {
		drop_answered(root);
		poll_once(root);
		answered += answer_all(root);
	}
}

static void *root_main(void *argument)
{
	struct root *root = argument;
	struct spyre_error_state error;
	uint32_t answered;

	pthread_setname_np(pthread_self(), "spyre-root");
	spyre_error_save(&error);
	while (!finished(root)) {
		if ((int64_t)spyre_now_ns() > root->deadline_ns) {
			refuse_late(root);
			break;
		}
		poll_once(root);
	}
	answered = answer_all(root);
	if (root->answer.status && root->answer.status != SPYRE_ERROR_TIMEOUT)
		answer_late(root, answered);
	spyre_error_end();
	while (root->count)
		drop(root, root->count - 1);
	close(root->listener);
	free(root);
	return NULL;
}

static spyre_status root_start(struct root *root)
{
	pthread_attr_t attributes;
	pthread_t thread;
	sigset_t all, old;
	int err;

	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, &attributes, root_main, root);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attributes);
	if (err)
		return spyre_error(SPYRE_ERROR_SYSTEM, "cannot start the communicator's root: %s; "
				   "check ulimit -u", strerror(err));
	return SPYRE_SUCCESS;
}

static spyre_status root_create(struct comm_identity *identity)
{
	uint64_t port, timeout_ms;
	spyre_status status;
	struct root *root;

	TRY(spyre_env_u64("SPYRE_COMM_PORT", 0, 0, 65535, &port));
	TRY(comm_env_timeout_ms(&timeout_ms));
	if (strlen(comm_env_address()) >= sizeof(identity->host))
		return spyre_error(SPYRE_ERROR_CONFIGURATION, "SPYRE_COMM_ADDRESS has more than %zu "
				   "characters; use a numeric address", sizeof(identity->host) - 1);
	snprintf(identity->host, sizeof(identity->host), "%s", comm_env_address());
	identity->port = port;
	if (getrandom(&identity->key, sizeof(identity->key), 0) != sizeof(identity->key))
		return spyre_error(SPYRE_ERROR_SYSTEM, "getrandom: %s", strerror(errno));
	root = calloc(1, sizeof(*root));
	if (!root)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory for a communicator");
	root->key = identity->key;
	root->answer.magic = COMM_MAGIC;
	root->deadline_ns = spyre_now_ns() + timeout_ms * 1000000;
	status = comm_listen_tcp(identity->host, &identity->port, &root->listener);
	if (status) {
		free(root);
		return status;
	}
	status = root_start(root);
	if (status) {
		close(root->listener);
		free(root);
	}
	return status;
}

spyre_status spyre_comm_get_id(spyre_comm_id *id)
{
	struct comm_identity identity = {
		.magic = COMM_MAGIC, .version = COMM_VERSION, .pid = getpid(),
	};
	spyre_status status;

	if (!id)
		return spyre_null_argument("spyre_comm_get_id", "id");
	status = root_create(&identity);
	if (status)
		return spyre_error_prefix(status, "spyre_comm_get_id");
	memcpy(id, &identity, sizeof(*id));
	return SPYRE_SUCCESS;
}
