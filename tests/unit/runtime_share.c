/* SPDX-License-Identifier: MIT */
/* Device memory in two processes: dma-bufs over a socket, and handles. */
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime_check.h"

#define MIB (1ull << 20)
#define BYTES (4 * MIB)
#define WORDS (BYTES / 4)

/* A message between the processes, which may come with a descriptor. */
struct message {
	uint64_t offset;
	uint64_t bytes;
	spyre_ipc_handle handle;
};

static void send_message(int socket, struct message *message, int fd)
{
	struct iovec iov = { .iov_base = message, .iov_len = sizeof(*message) };
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (fd >= 0) {
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		control.header.cmsg_level = SOL_SOCKET;
		control.header.cmsg_type = SCM_RIGHTS;
		control.header.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
	}
	ck_assert_int_eq(sendmsg(socket, &msg, 0), sizeof(*message));
}

/* Returns false if the other end is closed; *fd is -1 if none came. */
static bool receive_message(int socket, struct message *message, int *fd)
{
	struct iovec iov = { .iov_base = message, .iov_len = sizeof(*message) };
	union {
		struct cmsghdr header;
		char space[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};

	*fd = -1;
	if (recvmsg(socket, &msg, 0) != sizeof(*message))
		return false;
	if (CMSG_FIRSTHDR(&msg))
		memcpy(fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(*fd));
	return true;
}

/*
 * The other process maps each buffer that it receives, checks that all words are
 * @seen, and writes twice that. Its exit status is the step that failed.
 */
static int peer(int socket, uint32_t seen)
{
	uint32_t *host = malloc(BYTES), twice = 2 * seen;
	spyre_context *context;
	struct message message;
	spyre_stream *stream;
	spyre_devptr at;
	spyre_status status;
	int fd;

	if (!receive_message(socket, &message, &fd))
		return 1;
	if (!host || spyre_context_create(0, 0, &context) || spyre_stream_get(context, 0, &stream))
		return 2;
	if (fd >= 0)
		status = spyre_mem_import_dmabuf(context, fd, message.offset, message.bytes, &at);
	else
		status = spyre_ipc_open_handle(context, &message.handle, &at);
	if (status) {
		fprintf(stderr, "peer: %s\n", spyre_last_error());
		return 3;
	}
	if (fd >= 0)
		close(fd);
	if (spyre_memcpy_d2h(context, host, at, message.bytes) ||
	    !all_words(host, message.bytes / 4, seen))
		return 4;
	if (spyre_memset_async(stream, at, &twice, sizeof(twice), message.bytes) ||
	    spyre_stream_synchronize(stream))
		return 5;
	if (spyre_mem_free(context, at) || spyre_context_destroy(context))
		return 6;
	if (write(socket, "x", 1) != 1)
		return 7;
	/* Waits until the other process has checked. */
	return read(socket, host, 1) == 0 ? 0 : 8;
}

static int start_peer(pid_t *pid, uint32_t seen)
{
	int sockets[2];

	ck_assert(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets));
	fflush(NULL);
	*pid = fork();
	ck_assert_int_ge(*pid, 0);
	if (!*pid) {
		close(sockets[0]);
		_exit(peer(sockets[1], seen));
	}
	close(sockets[1]);
	return sockets[0];
}

static void end_peer(pid_t pid, int socket)
{
	int status;

	close(socket);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_msg(WIFEXITED(status) && !WEXITSTATUS(status), "the peer's status is %x", status);
}

static void await_peer(pid_t pid, int socket)
{
	char byte;

	if (read(socket, &byte, 1) != 1)
		end_peer(pid, socket);
}

static bool can_share(spyre_context *context)
{
	spyre_devptr at;
	uint64_t offset;
	int fd;

	if (!is_embedded(context))
		return true;
	ck_ok(spyre_mem_alloc(context, 4096, &at));
	ck_status(spyre_mem_export_dmabuf(context, at, &fd, &offset, NULL),
		  SPYRE_ERROR_UNSUPPORTED);
	ck_assert_int_eq(fd, -1);
	ck_mentions("card of the kernel");
	ck_status(spyre_mem_import_dmabuf(context, 0, 0, 0, &at), SPYRE_ERROR_UNSUPPORTED);
	ck_ok(spyre_context_destroy(context));
	return false;
}

static void fill(spyre_context *context, spyre_devptr at, uint64_t bytes, uint32_t value)
{
	spyre_stream *stream = get_stream(context, 0);

	ck_ok(spyre_memset_async(stream, at, &value, sizeof(value), bytes));
	ck_ok(spyre_stream_synchronize(stream));
}

static void check(spyre_context *context, spyre_devptr at, uint64_t bytes, uint32_t value)
{
	static uint32_t host[WORDS];

	ck_ok(spyre_memcpy_d2h(context, host, at, bytes));
	ck_assert(all_words(host, bytes / 4, value));
}

START_TEST(dmabuf_between_processes)
{
	struct message message = { 0 };
	spyre_context *context;
	spyre_devptr at;
	pid_t pid;
	int socket, fd;

	socket = start_peer(&pid, 1000);
	context = open_card();
	if (!can_share(context)) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return;
	}
	ck_ok(spyre_mem_alloc(context, BYTES, &at));
	fill(context, at, BYTES, 1000);
	ck_ok(spyre_mem_export_dmabuf(context, at, &fd, &message.offset, &message.bytes));
	ck_assert_uint_eq(message.offset, 0);
	ck_assert_uint_eq(message.bytes, BYTES);
	send_message(socket, &message, fd);
	close(fd);
	await_peer(pid, socket);
	check(context, at, BYTES, 2000);
	end_peer(pid, socket);
	ck_ok(spyre_context_destroy(context));
}
END_TEST

/* The middle of an allocation, that begins in the middle of a page. */
START_TEST(handle_between_processes)
{
	struct message message = { 0 };
	spyre_context *context;
	spyre_devptr at;
	pid_t pid;
	int socket;

	socket = start_peer(&pid, 77);
	context = open_card();
	if (!can_share(context)) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
		return;
	}
	ck_ok(spyre_mem_alloc(context, BYTES, &at));
	fill(context, at, BYTES, 5);
	message.bytes = BYTES - 4096 - 128;
	fill(context, at + 4096 + 128, message.bytes, 77);
	ck_ok(spyre_ipc_get_handle(context, at + 4096 + 128, &message.handle));
	send_message(socket, &message, -1);
	await_peer(pid, socket);
	check(context, at, 4096 + 128, 5);
	check(context, at + 4096 + 128, message.bytes, 154);
	end_peer(pid, socket);
	ck_ok(spyre_context_destroy(context));
}
END_TEST

/* Importing the same buffer many times in one context uses one handle of the kernel. */
START_TEST(in_one_process)
{
	spyre_context *context = open_card(), *other;
	spyre_devptr at, one, two, three;
	spyre_ipc_handle handle, bad;
	spyre_memory_info before, info;
	uint64_t offset, bytes, used;
	int fd;

	if (!can_share(context))
		return;
	before = memory_info(context);
	ck_ok(spyre_mem_alloc(context, BYTES, &at));
	fill(context, at, BYTES, 3);
	used = memory_info(context).used;
	ck_ok(spyre_mem_export_dmabuf(context, at + 256, &fd, &offset, &bytes));
	ck_assert_uint_eq(offset, 256);
	ck_assert_uint_eq(bytes, BYTES - 256);
	ck_ok(spyre_mem_import_dmabuf(context, fd, 0, 0, &one));
	ck_ok(spyre_mem_import_dmabuf(context, fd, 8192, 4096, &two));
	info = memory_info(context);
	ck_assert_uint_eq(info.used, used);
	ck_assert_uint_eq(info.context_used, BYTES);
	ck_assert_uint_eq(info.allocations, 3);
	fill(context, two, 4096, 4);
	check(context, at + 8192, 4096, 4);
	check(context, one + 8192, 4096, 4);
	ck_status(spyre_mem_export_dmabuf(context, one, &fd, &offset, &bytes),
		  SPYRE_ERROR_INVALID_ARGUMENT);
	ck_ok(spyre_mem_free(context, two));
	ck_status(spyre_memset_async(get_stream(context, 0), two, "x", 1, 128),
		  SPYRE_ERROR_INVALID_ADDRESS);

	/* The exporter's own mapping is removed; the memory stays. */
	ck_ok(spyre_ipc_get_handle(context, at, &handle));
	other = open_card();
	ck_ok(spyre_ipc_open_handle(other, &handle, &three));
	ck_ok(spyre_mem_free(context, at));
	check(context, one + 8192, 4096, 4);
	check(other, three, 8192, 3);
	ck_status(spyre_ipc_open_handle(other, &handle, &two), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_mentions("gone");
	ck_ok(spyre_mem_free(context, one));
	check(other, three + 8192, 4096, 4);

	bad = handle;
	bad.opaque[0]++;
	ck_status(spyre_ipc_open_handle(other, &bad, &two), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_mentions("not a handle");
	ck_ok(spyre_mem_free(other, three));
	ck_ok(spyre_context_destroy(other));
	ck_ok(spyre_context_destroy(context));
	context = open_card();
	ck_assert_uint_le(memory_info(context).used, before.used + BYTES);
	ck_ok(spyre_context_destroy(context));
}
END_TEST

START_TEST(refusals)
{
	spyre_context *context = open_card();
	uint64_t offset, bytes;
	FILE *file = tmpfile();
	spyre_devptr at, import;
	int fd, pipes[2];

	if (!can_share(context))
		return;
	ck_ok(spyre_mem_alloc(context, BYTES, &at));
	ck_status(spyre_mem_export_dmabuf(context, at + BYTES, &fd, &offset, &bytes),
		  SPYRE_ERROR_INVALID_ADDRESS);
	ck_assert_int_eq(fd, -1);
	ck_status(spyre_mem_export_dmabuf(context, at, NULL, &offset, &bytes),
		  SPYRE_ERROR_INVALID_ARGUMENT);
	ck_ok(spyre_mem_export_dmabuf(context, at, &fd, &offset, NULL));
	ck_status(spyre_mem_import_dmabuf(context, fd, 64, 128, &import),
		  SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_mem_import_dmabuf(context, fd, 128, BYTES, &import),
		  SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_mem_import_dmabuf(context, fd, BYTES, 0, &import),
		  SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_mem_import_dmabuf(context, -1, 0, 128, &import),
		  SPYRE_ERROR_INVALID_ARGUMENT);
	ck_assert(!pipe(pipes));
	ck_status(spyre_mem_import_dmabuf(context, pipes[0], 0, 128, &import),
		  SPYRE_ERROR_INVALID_ARGUMENT);
	ck_assert(!ftruncate(fileno(file), 8192));
	ck_status(spyre_mem_import_dmabuf(context, fileno(file), 0, 4096, &import),
		  SPYRE_ERROR_INVALID_ARGUMENT);
	ck_mentions("not a dma-buf");
	ck_assert_uint_eq(import, 0);
	ck_assert_uint_eq(memory_info(context).allocations, 1);
	ck_ok(spyre_context_destroy(context));
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("share");

	tcase_add_test(tests, dmabuf_between_processes);
	tcase_add_test(tests, handle_between_processes);
	tcase_add_test(tests, in_one_process);
	tcase_add_test(tests, refusals);
	return run_suite("runtime_share", tests);
}
