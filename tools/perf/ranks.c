// SPDX-License-Identifier: MIT
/*
 * The ranks of a command: processes or threads, and their way to the id of the communicator.
 * The first rank makes the id; it passes it to the others of the command by a pipe and to other
 * commands by a file.
 */
#define _GNU_SOURCE
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/perf/perf.h"

/* Time for the file of another command to appear. */
#define FILE_SECONDS 120

static bool complain(uint32_t rank, const char *what)
{
	fprintf(stderr, "spyre-perf: rank %u: %s\n", rank, what);
	return false;
}

static bool complain_errno(uint32_t rank, const char *what, const char *file)
{
	fprintf(stderr, "spyre-perf: rank %u: cannot %s %s: %s\n", rank, what, file,
		strerror(errno));
	return false;
}

/* The file appears complete, and only its owner can read the key in it. */
static bool write_file(const char *file, const spyre_comm_id *id)
{
	char temporary[4096];
	int fd;
	bool good;

	snprintf(temporary, sizeof(temporary), "%s.%d", file, (int)getpid());
	fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return complain_errno(0, "create", temporary);
	good = write(fd, id, sizeof(*id)) == sizeof(*id);
	good = !close(fd) && good;
	if (good && !rename(temporary, file))
		return true;
	complain_errno(0, "write", file);
	unlink(temporary);
	return false;
}

static bool read_file(const struct perf_options *options, spyre_comm_id *id)
{
	const struct timespec moment = { .tv_nsec = 20000000 };
	int fd = -1;
	bool good;

	for (int i = 0; i < FILE_SECONDS * 50 && fd < 0; i++) {
		fd = open(options->id_file, O_RDONLY | O_CLOEXEC);
		if (fd < 0 && errno != ENOENT)
			break;
		if (fd < 0)
			nanosleep(&moment, NULL);
	}
	if (fd < 0)
		return complain_errno(options->first, "open", options->id_file);
	good = read(fd, id, sizeof(*id)) == sizeof(*id);
	close(fd);
	return good ? true : complain(options->first, "the file of --id does not contain an id");
}

/* The id of the command's ranks, on its first rank. */
static bool make_id(const struct perf_options *options, spyre_comm_id *id)
{
	if (options->first)
		return read_file(options, id);
	if (spyre_comm_get_id(id))
		return complain(0, spyre_last_error());
	return !options->id_file || write_file(options->id_file, id);
}

static bool open_rank(struct perf_rank *rank, const spyre_comm_id *id)
{
	int cards;

	if (spyre_device_count(&cards))
		return complain(rank->rank, spyre_last_error());
	if (!cards)
		return complain(rank->rank, "there is no card; load the module, or set "
				"SPYRE_BACKEND=embedded");
	if (spyre_context_create((int)rank->rank % cards, 0, &rank->context) ||
	    spyre_stream_get(rank->context, SPYRE_STREAM_DEFAULT, &rank->stream) ||
	    spyre_comm_init_rank(rank->context, rank->options->ranks, id, rank->rank, NULL,
				 &rank->comm))
		return complain(rank->rank, spyre_last_error());
	return true;
}

static int run_rank(const struct perf_options *options, uint32_t number, const spyre_comm_id *id)
{
	struct perf_rank rank = { .options = options, .rank = number };
	int status = PERF_FAILED;

	if (open_rank(&rank, id)) {
		/* All ranks have it. */
		if (!number && options->id_file)
			unlink(options->id_file);
		status = perf_rank_main(&rank);
	}
	spyre_comm_destroy(rank.comm);
	spyre_context_destroy(rank.context);
	return status;
}

/* A process of the command. Reads and writes of a whole id are not divided by the pipe. */
static int process_main(const struct perf_options *options, uint32_t index, const int *pipe_fds,
			pid_t parent)
{
	spyre_comm_id id;

	/* Ranks end with the command, however that ends. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		return PERF_FAILED;
	if (!index) {
		close(pipe_fds[0]);
		if (!make_id(options, &id))
			return PERF_FAILED;
		for (uint32_t i = 1; i < options->local; i++)
			if (write(pipe_fds[1], &id, sizeof(id)) != sizeof(id))
				return PERF_FAILED;
	}
	close(pipe_fds[1]);
	if (index && read(pipe_fds[0], &id, sizeof(id)) != sizeof(id))
		return PERF_FAILED;
	return run_rank(options, options->first + index, &id);
}

/* Waits for all processes and reports those that a signal ended. */
static int wait_processes(const struct perf_options *options, const pid_t *pids, uint32_t count)
{
	int status = PERF_OK;

	for (uint32_t i = 0; i < count; i++) {
		int code;

		if (waitpid(pids[i], &code, 0) < 0)
			status = PERF_FAILED;
		else if (WIFSIGNALED(code))
			fprintf(stderr, "spyre-perf: rank %u (process %d) was ended by signal %d (%s)\n",
				options->first + i, (int)pids[i], WTERMSIG(code),
				strsignal(WTERMSIG(code)));
		if (!WIFEXITED(code) || WEXITSTATUS(code))
			status = PERF_FAILED;
	}
	return status;
}

static int run_processes(const struct perf_options *options)
{
	pid_t pids[SPYRE_COMM_MAX_RANKS];
	const pid_t parent = getpid();
	uint32_t started = 0;
	int fds[2], status;

	if (pipe2(fds, O_CLOEXEC)) {
		fprintf(stderr, "spyre-perf: pipe: %s\n", strerror(errno));
		return PERF_FAILED;
	}
	for (; started < options->local; started++) {
		pids[started] = fork();
		if (!pids[started])
			exit(process_main(options, started, fds, parent));
		if (pids[started] < 0)
			break;
	}
	if (started < options->local)
		fprintf(stderr, "spyre-perf: cannot start rank %u: %s\n", options->first + started,
			strerror(errno));
	for (uint32_t i = 0; started < options->local && i < started; i++)
		kill(pids[i], SIGKILL);
	close(fds[0]);
	close(fds[1]);
	status = wait_processes(options, pids, started);
	return started < options->local ? PERF_FAILED : status;
}

struct thread {
	pthread_t thread;
	const struct perf_options *options;
	const spyre_comm_id *id;
	uint32_t rank;
	int status;
};

static void *thread_main(void *argument)
{
	struct thread *thread = argument;

	thread->status = run_rank(thread->options, thread->rank, thread->id);
	return NULL;
}

static int run_threads(const struct perf_options *options)
{
	struct thread threads[SPYRE_COMM_MAX_RANKS];
	int status = PERF_OK;
	spyre_comm_id id;

	if (!make_id(options, &id))
		return PERF_FAILED;
	for (uint32_t i = 0; i < options->local; i++) {
		threads[i] = (struct thread){
			.options = options, .id = &id, .rank = options->first + i,
		};
		errno = pthread_create(&threads[i].thread, NULL, thread_main, &threads[i]);
		/* The others would wait for it until the time limit. */
		if (errno) {
			fprintf(stderr, "spyre-perf: cannot start rank %u: %s\n",
				options->first + i, strerror(errno));
			exit(PERF_FAILED);
		}
	}
	for (uint32_t i = 0; i < options->local; i++) {
		pthread_join(threads[i].thread, NULL);
		if (threads[i].status)
			status = threads[i].status;
	}
	return status;
}

int perf_run_ranks(const struct perf_options *options)
{
	return options->threads ? run_threads(options) : run_processes(options);
}
