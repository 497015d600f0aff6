// SPDX-License-Identifier: MIT
/*
 * The control connections between ranks: failures, departures and the letters of split() and
 * shrink(). A thread of the communicator reads them, so that a rank whose process ended is known
 * at once, whatever this rank is waiting for.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libspyre/backend/futex.h"
#include "libspyre/comm/comm.h"
#include "libspyre/comm/socket.h"

enum message_kind {
	MESSAGE_FAILURE = 1,
	MESSAGE_ABORT = 2,
	MESSAGE_LEAVING = 3,
	/* Letters have the kinds of enum comm_letter_kind. */
};

#define MAX_MESSAGE 512
/* Letters of a rank that none has waited for: correct ranks send a few at most. */
#define MAX_LETTERS 64
/* A rank that does not read its connection for this long has lost its watcher. */
#define MESSAGE_NS 2000000000

struct message {
	/* One byte, the first: with a file, ranks send 0 in its place. */
	uint8_t kind;
	uint8_t unused[3];
	uint32_t status;
	uint32_t bytes;
	char data[MAX_MESSAGE];
};

/*
 * The connections' buffers are larger than all that is ever sent over them, so this does not
 * wait, except for a rank that has stopped reading. Messages to such a rank are dropped.
 */
static spyre_status send_message(spyre_comm *comm, uint32_t to, const struct message *message)
{
	const size_t bytes = offsetof(struct message, data) + message->bytes;
	const int64_t deadline_ns = spyre_now_ns() + MESSAGE_NS;
	spyre_status status;

	pthread_mutex_lock(&comm->peers[to].send_lock);
	status = comm_send_all(comm->peers[to].control, message, bytes, deadline_ns);
	pthread_mutex_unlock(&comm->peers[to].send_lock);
	return status;
}

static void tell_all(spyre_comm *comm, const struct message *message)
{
	struct spyre_error_state error;

	spyre_error_save(&error);
	for (uint32_t i = 0; i < comm->size; i++)
		if (comm->peers[i].control >= 0 && !comm->peers[i].lost && !comm->peers[i].left)
			send_message(comm, i, message);
	spyre_error_restore(&error);
}

void comm_tell_failure(spyre_comm *comm, const char *text)
{
	struct message message = {
		.kind = MESSAGE_FAILURE,
		.status = comm->aborted && comm->failed == SPYRE_ERROR_CANCELLED ?
			  SPYRE_ERROR_CANCELLED : SPYRE_ERROR_REMOTE,
	};

	message.bytes = snprintf(message.data, sizeof(message.data), "%s", text) + 1;
	if (message.bytes > sizeof(message.data))
		message.bytes = sizeof(message.data);
	tell_all(comm, &message);
}

spyre_status comm_read_failure(spyre_comm *comm, uint32_t from, int64_t deadline_ns)
{
	const int fd = comm->peers[from].control;
	struct message message = { 0 };
	const size_t bytes = offsetof(struct message, data) - 1;

	TRY(comm_recv_all(fd, (char *)&message + 1, bytes, deadline_ns));
	if (message.bytes > sizeof(message.data))
		return spyre_error(SPYRE_ERROR_REMOTE, "its message is not valid");
	TRY(comm_recv_all(fd, message.data, message.bytes, deadline_ns));
	message.data[MAX_MESSAGE - 1] = 0;
	return spyre_error(SPYRE_ERROR_REMOTE, "it failed: %s", message.data);
}

void comm_tell_abort(spyre_comm *comm)
{
	const struct message message = { .kind = MESSAGE_ABORT };

	tell_all(comm, &message);
}

void comm_tell_leaving(spyre_comm *comm)
{
	const struct message message = { .kind = MESSAGE_LEAVING };

	/* A rank that does not know of the failure would take this departure for the cause. */
	if (comm->failed)
		comm_tell_failure(comm, comm->failure);
	tell_all(comm, &message);
}

/* Returns false if the rank has sent more than this process keeps. */
static bool take_letter(spyre_comm *comm, uint32_t from, const struct message *message)
{
	struct comm_letters *letters = &comm->peers[from].letters;
	struct comm_letter *letter = calloc(1, sizeof(*letter)), *other;
	uint32_t count = 0;

	if (!letter || message->bytes > sizeof(letter->data)) {
		free(letter);
		return true;
	}
	letter->kind = message->kind;
	letter->bytes = message->bytes;
	memcpy(letter->data, message->data, message->bytes);
	pthread_mutex_lock(&comm->lock);
	STAILQ_FOREACH(other, letters, link)
		count++;
	if (count < MAX_LETTERS)
		STAILQ_INSERT_TAIL(letters, letter, link);
	else
		free(letter);
	pthread_cond_broadcast(&comm->changed);
	pthread_mutex_unlock(&comm->lock);
	return count < MAX_LETTERS;
}

/* Returns false if the connection is not to be read any more. */
static bool take_message(spyre_comm *comm, uint32_t from, struct message *message)
{
	const struct comm_address *address = &comm->peers[from].address;
	spyre_status status = SPYRE_ERROR_REMOTE;

	message->data[MAX_MESSAGE - 1] = 0;
	/* A rank that leaves after an abort may be heard before the one that has aborted. */
	if (message->kind == MESSAGE_FAILURE && message->status == SPYRE_ERROR_CANCELLED) {
		comm->aborted = true;
		status = SPYRE_ERROR_CANCELLED;
	}
	switch (message->kind) {
	case MESSAGE_FAILURE:
		comm_fail(comm, spyre_error(status, "rank %u (process %d on %s) failed: "
					    "%s", from, address->pid, address->host,
					    message->bytes ? message->data : ""), false);
		break;
	case MESSAGE_ABORT:
		comm->aborted = true;
		comm_fail(comm, spyre_error(SPYRE_ERROR_CANCELLED, "rank %u (process %d on %s) "
					    "aborted the communicator", from, address->pid,
					    address->host), false);
		break;
	case MESSAGE_LEAVING:
		comm->peers[from].left = true;
		comm_ring(comm);
		break;
	default:
		return take_letter(comm, from, message);
	}
	return true;
}

/* Reads one message. Returns false if the connection has ended, or is not one of a rank. */
static bool read_message(spyre_comm *comm, uint32_t from)
{
	const int64_t deadline_ns = spyre_now_ns() + MESSAGE_NS;
	struct message message = { 0 };
	const int fd = comm->peers[from].control;

	if (comm_recv_all(fd, &message, offsetof(struct message, data), deadline_ns) ||
	    message.bytes > sizeof(message.data) ||
	    comm_recv_all(fd, message.data, message.bytes, deadline_ns))
		return false;
	return take_message(comm, from, &message);
}

static void *watch_main(void *argument)
{
	struct pollfd pollers[SPYRE_COMM_MAX_RANKS + 1];
	struct spyre_error_state error;
	spyre_comm *comm = argument;

	pthread_setname_np(pthread_self(), "spyre-comm");
	for (uint32_t i = 0; i < comm->size; i++)
		pollers[i] = (struct pollfd){ .fd = comm->peers[i].control, .events = POLLIN };
	pollers[comm->size] = (struct pollfd){ .fd = comm->stop, .events = POLLIN };
	spyre_error_save(&error);
	while (!pollers[comm->size].revents) {
		if (poll(pollers, comm->size + 1, -1) < 0)
			continue;
		for (uint32_t i = 0; i < comm->size; i++) {
			if (!pollers[i].revents || read_message(comm, i))
				continue;
			pollers[i].fd = -1;
			comm->peers[i].lost = !comm->peers[i].left;
			comm_ring(comm);
		}
	}
	spyre_error_end();
	return NULL;
}

spyre_status comm_watch_start(spyre_comm *comm)
{
	sigset_t all, old;
	int err;

	comm->stop = eventfd(0, EFD_CLOEXEC);
	if (comm->stop < 0)
		return spyre_error(SPYRE_ERROR_SYSTEM, "eventfd: %s", strerror(errno));
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&comm->watcher, NULL, watch_main, comm);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err)
		return spyre_error(SPYRE_ERROR_SYSTEM, "cannot start the communicator's thread: %s; "
				   "check ulimit -u", strerror(err));
	comm->watching = true;
	return SPYRE_SUCCESS;
}

static void letters_free(spyre_comm *comm)
{
	for (uint32_t i = 0; comm->peers && i < comm->size; i++) {
		struct comm_letters *letters = &comm->peers[i].letters;
		struct comm_letter *letter;

		while ((letter = STAILQ_FIRST(letters))) {
			STAILQ_REMOVE_HEAD(letters, link);
			free(letter);
		}
	}
}

void comm_watch_stop(spyre_comm *comm)
{
	const uint64_t one = 1;

	if (comm->watching && write(comm->stop, &one, sizeof(one)) == sizeof(one))
		pthread_join(comm->watcher, NULL);
	comm->watching = false;
	if (comm->stop >= 0)
		close(comm->stop);
	comm->stop = -1;
	letters_free(comm);
}

spyre_status comm_letter_send(spyre_comm *comm, uint32_t to, uint32_t kind, const void *data,
			      uint32_t bytes)
{
	struct message message = { .kind = (uint8_t)kind, .bytes = bytes };
	spyre_status status;

	memcpy(message.data, data, bytes);
	status = send_message(comm, to, &message);
	return status ? spyre_error_prefix(status, "rank %u", to) : status;
}

/* Waits for a change, for at most 100 ms: connections that end do not signal. */
static void wait_changed(spyre_comm *comm)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_nsec += 100000000;
	if (ts.tv_nsec >= 1000000000) {
		ts.tv_nsec -= 1000000000;
		ts.tv_sec++;
	}
	pthread_cond_timedwait(&comm->changed, &comm->lock, &ts);
}

/* An error if no letter of @from can come any more. The caller holds comm.lock. */
static spyre_status check_sender(spyre_comm *comm, uint32_t from, int64_t deadline_ns,
				 uint64_t timeout_ms)
{
	const struct comm_peer *peer = &comm->peers[from];

	if (peer->lost || peer->left)
		return spyre_error(SPYRE_ERROR_REMOTE, "rank %u (process %d on %s) has %s", from,
				   peer->address.pid, peer->address.host,
				   peer->left ? "left the communicator" : "ended");
	if ((int64_t)spyre_now_ns() > deadline_ns)
		return spyre_error(SPYRE_ERROR_TIMEOUT, "rank %u did not call within the time limit "
				   "of %llu ms", from, (unsigned long long)timeout_ms);
	return SPYRE_SUCCESS;
}

/*
 * Takes the next letter, NULL if there is none. A split that fails leaves the letters of a shrink
 * to the caller's own shrink, which drops those of splits. The caller holds comm.lock.
 */
static spyre_status next_letter(spyre_comm *comm, uint32_t from, uint32_t kind, uint32_t bytes,
				struct comm_letter **letter)
{
	struct comm_letters *letters = &comm->peers[from].letters;
	struct comm_letter *first = STAILQ_FIRST(letters);

	*letter = NULL;
	if (kind != COMM_LETTER_SHRINK_ID && comm->failed)
		return spyre_error(comm->failed, "%s", comm->failure);
	while (kind == COMM_LETTER_SHRINK_ID && first && first->kind != kind) {
		STAILQ_REMOVE_HEAD(letters, link);
		free(first);
		first = STAILQ_FIRST(letters);
	}
	if (first && (first->kind != kind || first->bytes != bytes))
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH, "rank %u called another function; "
				   "all ranks must split or shrink in the same order", from);
	if (first)
		STAILQ_REMOVE_HEAD(letters, link);
	*letter = first;
	return SPYRE_SUCCESS;
}

spyre_status comm_letter_wait(spyre_comm *comm, uint32_t from, uint32_t kind, void *data,
			      uint32_t bytes, uint64_t timeout_ms)
{
	const int64_t deadline_ns = spyre_now_ns() + timeout_ms * 1000000;
	struct comm_letter *letter;
	spyre_status status;

	pthread_mutex_lock(&comm->lock);
	status = next_letter(comm, from, kind, bytes, &letter);
	while (!status && !letter) {
		status = check_sender(comm, from, deadline_ns, timeout_ms);
		if (!status) {
			wait_changed(comm);
			status = next_letter(comm, from, kind, bytes, &letter);
		}
	}
	pthread_mutex_unlock(&comm->lock);
	if (letter)
		memcpy(data, letter->data, bytes);
	free(letter);
	return status;
}
