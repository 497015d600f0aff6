// SPDX-License-Identifier: MIT
/*
 * Several processes: children that use the files of their parent, descriptors
 * passed between processes, and workers that are killed at any time.
 */
#include "config.h"

#include "tests/fuzz/ioctl.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_CHILDREN 2
#define MAX_WORKERS 8

static pid_t children[MAX_CHILDREN];
static uint32_t num_children;
static bool is_child;
/* Another process has the same descriptor table, and may close what a call of this one uses. */
static bool shares_files;

bool fz_is_child(void)
{
	return is_child;
}

bool fz_shares_files(void)
{
	return shares_files;
}

void fz_mail_open(struct fz_world *w)
{
	/* Every worker writes to one end and reads from the other. */
	if (w->mail[0] || w->mail[1])
		return;
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, w->mail))
		fz_die("socketpair: %s", strerror(errno));
}

/* @fd may be invalid: the socket refuses it then. */
static int send_fd(struct fz_world *w, int fd)
{
	union { struct cmsghdr align; char space[CMSG_SPACE(sizeof(int))]; } control = { 0 };
	char byte = 0;
	struct iovec data = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1,
		.msg_control = control.space, .msg_controllen = sizeof(control.space),
	};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(header), &fd, sizeof(fd));
	return sendmsg(w->mail[0], &message, 0) < 0 ? -errno : 0;
}

/* Returns the descriptor, or a negative errno. */
static int receive_fd(struct fz_world *w)
{
	union { struct cmsghdr align; char space[CMSG_SPACE(sizeof(int))]; } control = { 0 };
	char byte;
	struct iovec data = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1,
		.msg_control = control.space, .msg_controllen = sizeof(control.space),
	};
	struct cmsghdr *header;
	int fd;

	if (recvmsg(w->mail[1], &message, MSG_CMSG_CLOEXEC) < 0)
		return -errno;
	header = CMSG_FIRSTHDR(&message);
	if (!header || header->cmsg_len < CMSG_LEN(sizeof(fd)))
		return -ENODATA;
	memcpy(&fd, CMSG_DATA(header), sizeof(fd));
	return fd;
}

void fz_mail_drain(struct fz_world *w)
{
	int fd;

	while ((fd = receive_fd(w)) >= 0 || fd == -ENODATA)
		if (fd >= 0)
			close(fd);
}

static int call_send(struct fz_world *w, const struct fz_call *c, struct fz_file *file)
{
	/* The node itself may be sent as well; then two processes use one context. */
	if (c->p[0] >= 192 || !w->fd.used)
		return send_fd(w, file->fd);
	return send_fd(w, (int)w->fd.id[c->p[0] % w->fd.used]);
}

static int call_receive(struct fz_world *w, struct fz_file *file)
{
	struct stat st;
	int fd = receive_fd(w);

	if (fd < 0)
		return fd;
	if (!fstat(fd, &st) && S_ISCHR(st.st_mode)) {
		/* Handles are small numbers, so those of the former file are good guesses. */
		close(file->fd);
		file->fd = fd;
	} else if (w->fd.used == FZ_SLOTS) {
		close(fd);
	} else {
		fz_put(&w->fd, fd);
	}
	return 0;
}

/* Puts one file into two slots, possibly over another that is still in use. */
static int call_dup(struct fz_world *w, const struct fz_call *c, struct fz_file *file)
{
	struct fz_file *other = &w->file[c->p[0] % FZ_FILES];
	int fd;

	if (other == file)
		return 0;
	if (fz_open(w, other) < 0)
		return -errno;
	fd = c->p[1] & 1 ? dup2(file->fd, other->fd) : dup(file->fd);
	if (fd < 0)
		return -errno;
	if (fd != other->fd)
		close(other->fd);
	other->fd = fd;
	if (c->p[2] & 1)
		*other = *file, other->fd = fd;
	return 0;
}

/*
 * The child makes the calls that follow, concurrently with its parent. It has a
 * copy of the memory, and either a copy of the descriptors or the same table, so
 * that each process closes and replaces descriptors that the other uses.
 */
static int call_fork(const struct fz_call *c)
{
	const unsigned long flags = SIGCHLD | (c->p[0] & 1 ? CLONE_FILES : 0);
	long pid;

	if (is_child || num_children == MAX_CHILDREN)
		return -EDQUOT;
	pid = syscall(SYS_clone, flags, NULL, NULL, NULL, 0);
	if (pid < 0)
		return -errno;
	shares_files |= flags & CLONE_FILES;
	if (!pid) {
		is_child = true;
		fz_uring_forget();
		return 0;
	}
	children[num_children++] = (pid_t)pid;
	return 0;
}

void fz_process_reset(void)
{
	int status;
	uint32_t i;

	for (i = 0; i < num_children; i++) {
		/* Every second child may finish its calls; none delays the run for long. */
		if (i & 1)
			nanosleep(&(struct timespec){ .tv_nsec = 2000000 }, NULL);
		kill(children[i], SIGKILL);
		if (waitpid(children[i], &status, 0) != children[i])
			fz_die("waitpid: %s", strerror(errno));
		/* It has printed the reason. */
		if (WIFEXITED(status) && WEXITSTATUS(status) == 1)
			_exit(1);
	}
	num_children = 0;
	shares_files = false;
}

int fz_call_process(struct fz_world *w, const struct fz_call *c, struct fz_file *file)
{
	switch (c->kind) {
	case FZ_FORK: return call_fork(c);
	case FZ_DUP: return call_dup(w, c, file);
	case FZ_SEND_FD: return call_send(w, c, file);
	default: return call_receive(w, file);
	}
}

static double seconds_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec * 1e-9;
}

static pid_t start_worker(void (*worker)(uint64_t number), uint64_t number)
{
	pid_t pid = fork();

	if (pid < 0)
		fz_die("fork: %s", strerror(errno));
	if (!pid) {
		worker(number);
		_exit(0);
	}
	return pid;
}

/* Returns true if the supervisor killed @pid; a worker that found an error ends the run. */
static bool end_worker(pid_t pid)
{
	int status;

	kill(pid, SIGKILL);
	if (waitpid(pid, &status, 0) != pid)
		fz_die("waitpid: %s", strerror(errno));
	if (WIFEXITED(status) && WEXITSTATUS(status))
		_exit(WEXITSTATUS(status));
	if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
		fz_fail("a worker ended by signal %d", WTERMSIG(status));
	return WIFSIGNALED(status);
}

uint64_t fz_supervise(unsigned int processes, double seconds, void (*worker)(uint64_t number),
		      void (*check)(void))
{
	const double end = seconds_now() + seconds;
	uint64_t number = 0, killed = 0;
	pid_t pid[MAX_WORKERS];
	uint32_t i, at;

	if (processes > MAX_WORKERS)
		fz_die("%u processes are more than %u", processes, MAX_WORKERS);
	for (i = 0; i < processes; i++)
		pid[i] = start_worker(worker, ++number);
	while (seconds_now() < end) {
		nanosleep(&(struct timespec){ .tv_nsec = (20 + fz_random(900)) * 1000000l }, NULL);
		at = fz_random(processes);
		killed += end_worker(pid[at]);
		pid[at] = start_worker(worker, ++number);
		check();
	}
	for (i = 0; i < processes; i++)
		killed += end_worker(pid[i]);
	return killed;
}
