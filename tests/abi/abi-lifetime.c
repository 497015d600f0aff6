/* SPDX-License-Identifier: MIT */
/*
 * Every object that can be destroyed while work uses it: queues, programs, buffers,
 * files and whole processes. Afterwards the card's memory is as before and new work
 * runs. ABI_ROUNDS sets the number of rounds (8).
 */
#include "abi.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xf86drm.h>

#include "prog.h"

#define VA (64 * MIB)

/* A file with long work in flight in two queues. */
struct busy {
	int fd;
	struct abi_queue queue[2];
	struct abi_buf mem;
	uint32_t program;
	uint64_t args[3];
};

static struct busy busy_start(int fd)
{
	struct abi_prog prog = abi_prog_long();
	struct busy b = { .fd = fd };
	struct drm_spyre_cb cbs[2];
	int i;

	b.mem = abi_buf(fd, 3 * ABI_LONG_BYTES, DRM_SPYRE_BO_DEVICE, VA);
	b.program = abi_prog_create(fd, &prog);
	for (i = 0; i < 3; i++)
		b.args[i] = VA + i * ABI_LONG_BYTES;
	cbs[0] = abi_cb_exec(b.program, b.args, 3);
	cbs[1] = abi_cb_fill32(VA, PAGE, 1);
	for (i = 0; i < 2; i++) {
		b.queue[i] = abi_queue(fd, 60000);
		memset(abi_results(&b.queue[i]), 0, PAGE);
		if (abi_submit(&b.queue[i], cbs, 2, NULL) ||
		    abi_submit(&b.queue[i], &cbs[1], 1, NULL))
			tap_bail("SUBMIT");
	}
	return b;
}

/* New work on a new file must run without waiting behind old work. */
static void check_alive(const char *after)
{
	int fd = abi_open();
	struct abi_queue q = abi_queue(fd, 0);
	struct abi_buf mem = abi_buf(fd, PAGE, DRM_SPYRE_BO_DEVICE, VA);
	struct drm_spyre_cb cb = abi_cb_fill32(VA, PAGE, 0x600d600d);
	uint64_t start = abi_now_ns();

	tap_ret(abi_run(&q, &cb, 1), 0, "%s: new work completes", after);
	tap_eq(*(uint32_t *)mem.map, 0x600d600d, "%s: new work has the right result", after);
	tap_ok(abi_now_ns() - start < 10000000000ull,
	       "%s: new work does not wait for the old", after);
	abi_buf_free(fd, &mem);
	abi_queue_free(&q);
	close(fd);
}

static void test_queue_destroy(int watch, uint64_t used)
{
	int fd = abi_open();
	struct busy b = busy_start(fd);
	struct drm_spyre_cb_result *r = abi_results(&b.queue[0]);
	uint64_t start;

	abi_sleep_ms(50);
	start = abi_now_ns();
	tap_ret(abi_queue_destroy(fd, b.queue[0].id), 0, "QUEUE_DESTROY with work running");
	tap_ret(abi_wait(&b.queue[0], 20000), 0, "QUEUE_DESTROY: its fences signal");
	tap_ok(abi_now_ns() - start < 10000000000ull, "QUEUE_DESTROY: within the time limit");
	tap_eq(r[0].state, DRM_SPYRE_CB_DONE, "QUEUE_DESTROY: result of the running block");
	tap_ret(r[0].status, -ECANCELED, "QUEUE_DESTROY: the running block reports ECANCELED");
	tap_ret(r[1].status, -ECANCELED, "QUEUE_DESTROY: the block behind it reports ECANCELED");
	tap_eq(abi_queue_query(fd, b.queue[1].id).state, DRM_SPYRE_QUEUE_OK,
	       "QUEUE_DESTROY: the other queue has no error");
	abi_queue_destroy(fd, b.queue[1].id);
	tap_ret(abi_wait(&b.queue[1], 20000), 0, "QUEUE_DESTROY: the other queue's fence signals");
	munmap(b.mem.map, b.mem.size);
	munmap(b.queue[0].results.map, b.queue[0].results.size);
	munmap(b.queue[1].results.map, b.queue[1].results.size);
	close(fd);
	tap_ok(abi_memory_settles(watch, used), "QUEUE_DESTROY: memory is back");
	check_alive("QUEUE_DESTROY");
}

/* Handles are closed first; the work keeps the objects that it needs. */
static void test_handles_first(int watch, uint64_t used)
{
	int fd = abi_open();
	struct busy b = busy_start(fd);

	tap_ret(abi_prog_destroy(fd, b.program), 0,
		"handles: PROGRAM_DESTROY while its launch runs");
	abi_unbind(fd, VA, b.mem.size);
	abi_gem_close(fd, b.mem.handle);
	abi_gem_close(fd, b.queue[0].results.handle);
	munmap(b.mem.map, b.mem.size);
	munmap(b.queue[0].results.map, b.queue[0].results.size);
	abi_sleep_ms(50);
	tap_ok(abi_memory(fd).context_used >= b.mem.size, "handles: memory in use stays counted");
	tap_eq(abi_queue_query(fd, b.queue[0].id).state, DRM_SPYRE_QUEUE_OK,
	       "handles: the queue has no error");
	tap_eq(abi_queue_query(fd, b.queue[0].id).completed, 0,
	       "handles: the work is still running");
	drmSyncobjDestroy(fd, b.queue[0].syncobj);
	munmap(b.queue[1].results.map, b.queue[1].results.size);
	close(fd);
	tap_ok(abi_memory_settles(watch, used), "handles: memory is back after close");
	check_alive("handles");
}

enum end { END_CLOSE, END_EXIT, END_KILL, NUM_ENDS };

static const char *const end_names[] = { "close", "exit", "kill -9" };

/* Ends the child; @ready tells the parent that its work is in flight. */
static void child(enum end end, int ready)
{
	int fd = abi_open();

	busy_start(fd);
	if (write(ready, "", 1) != 1)
		_exit(2);
	if (end == END_KILL)
		pause();
	if (end == END_CLOSE)
		_exit(close(fd) != 0);
	_exit(0);
}

static bool one_child(enum end end, unsigned int delay_ms)
{
	int ready, status = 0;
	pid_t pid = abi_fork(&ready);
	uint64_t start;
	char c;

	if (!pid)
		child(end, ready);
	if (read(ready, &c, 1) != 1)
		tap_bail("the child did not start its work");
	close(ready);
	abi_sleep_ms(delay_ms);
	start = abi_now_ns();
	if (end == END_KILL)
		kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	if (abi_now_ns() - start > 15000000000ull) {
		tap_note("the child took %llu ms to die",
			 (unsigned long long)(abi_now_ns() - start) / 1000000);
		return false;
	}
	return end == END_KILL ? WIFSIGNALED(status) : WIFEXITED(status) && !WEXITSTATUS(status);
}

static void test_processes(int watch, uint64_t used)
{
	const char *env = getenv("ABI_ROUNDS");
	int rounds = env ? atoi(env) : 8, i, e, bad;

	for (e = 0; e < NUM_ENDS; e++) {
		for (i = bad = 0; i < rounds; i++)
			bad += !one_child(e, i % 4 * 7);
		tap_eq(bad, 0, "%s with work in flight, %d times", end_names[e], rounds);
		tap_ok(abi_memory_settles(watch, used), "%s: memory is back", end_names[e]);
		check_alive(end_names[e]);
	}
}

/* A thousand short lives reveal small leaks. */
static void test_churn(int watch, uint64_t used)
{
	struct abi_prog prog = abi_prog_add(1, 1);
	struct drm_spyre_cb cb = abi_cb_timestamp();
	struct abi_queue q;
	int i, fd;

	for (i = 0; i < 200; i++) {
		fd = abi_open();
		abi_prog_create(fd, &prog);
		q = abi_queue(fd, 0);
		abi_submit(&q, &cb, 1, NULL);
		munmap(q.results.map, q.results.size);
		close(fd);
	}
	tap_ok(abi_memory_settles(watch, used), "200 files with work, closed at once");
	fd = abi_open();
	for (i = 0; i < 200; i++) {
		q = abi_queue(fd, 0);
		abi_submit(&q, &cb, 1, NULL);
		abi_queue_free(&q);
	}
	close(fd);
	tap_ok(abi_memory_settles(watch, used), "200 queues with work, destroyed at once");
}

/* Queues are destroyed while the scheduler removes their jobs one by one. */
static void test_backlog(int watch, uint64_t used)
{
	const char *env = getenv("ABI_ROUNDS");
	int rounds = 40 * (env ? atoi(env) : 8), lost = 0, i, job;
	struct drm_spyre_cb stamp = abi_cb_timestamp(), fill = abi_cb_fill32(VA, 8 * MIB, 1);
	int fd = abi_open();
	struct abi_buf mem = abi_buf(fd, 8 * MIB, DRM_SPYRE_BO_DEVICE, VA);
	struct abi_queue q, first = abi_queue(fd, 0);
	struct drm_spyre_sync wait = { .handle = first.syncobj }, none = { 0 };
	volatile int spin;

	for (i = 0; i < rounds; i++) {
		q = abi_queue(fd, 0);
		lost += abi_submit(&first, &fill, 1, NULL) != 0;
		wait.point = first.point;
		for (job = 0; job < 128; job++)
			lost += abi_submit_sync(&q, &stamp, 1, wait, none) != 0;
		abi_wait(&first, 20000);
		/* Varies the moment. */
		for (spin = i % 64 * 1000; spin > 0; spin--)
			;
		abi_queue_destroy(fd, q.id);
		lost += abi_wait(&q, 20000) != 0;
		abi_queue_free(&q);
	}
	abi_queue_free(&first);
	munmap(mem.map, mem.size);
	close(fd);
	tap_eq(lost, 0, "%d queues destroyed while their jobs begin: all fences signal", rounds);
	tap_ok(abi_memory_settles(watch, used),
	       "queues destroyed while their jobs begin: memory is back");
	check_alive("backlog");
}

int main(void)
{
	int watch = abi_open();
	uint64_t used = abi_memory(watch).used;

	test_queue_destroy(watch, used);
	test_handles_first(watch, used);
	test_processes(watch, used);
	test_churn(watch, used);
	test_backlog(watch, used);
	return tap_done();
}
