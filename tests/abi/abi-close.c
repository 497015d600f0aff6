/* SPDX-License-Identifier: MIT */
/*
 * Objects that are destroyed while another kernel thread looks them up in their
 * table: a file that is closed at the time limit of its job, and a queue that is
 * destroyed before QUEUE_CREATE has returned. A real-time thread delays a kernel
 * thread at the critical moment. The results here are always correct: the error
 * only shows on a kernel that poisons freed memory (slub_debug=FP,kmalloc-*) or has
 * KASAN, for the second test with preempt=full. ABI_ROUNDS sets the number of
 * rounds (2).
 */
#define _GNU_SOURCE
#include "abi.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xf86drm.h>

#include "fence.h"

#define VA (64 * MIB)
/* More than a grace period and a run of the worker; and far more. */
#define FREED_MS 100
#define SETTLE_MS 150
#define LIMIT_MS 100
#define IDLE_QUEUES 16

/* The delayed thread runs on the last processor, the overtaking ones on the others. */
enum side { SLOW = 1, QUICK = 2, BOTH = 3 };
static int slow_cpu;

static bool pin(pid_t tid, enum side side)
{
	cpu_set_t set;
	int cpu;

	CPU_ZERO(&set);
	for (cpu = 0; cpu < slow_cpu && side & QUICK; cpu++)
		CPU_SET(cpu, &set);
	if (side & SLOW)
		CPU_SET(slow_cpu, &set);
	return !sched_setaffinity(tid, sizeof(set), &set);
}

static bool is_card_thread(const char *pid)
{
	char path[PATH_MAX], name[32] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%.16s/comm", pid);
	file = fopen(path, "r");
	if (file && !fgets(name, sizeof(name), file))
		name[0] = 0;
	if (file)
		fclose(file);
	return !strncmp(name, "spyre", 5) && strchr(name, '/');
}

static void pin_card_threads(enum side side)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		if (isdigit((unsigned char)entry->d_name[0]) && is_card_thread(entry->d_name))
			pin(atoi(entry->d_name), side);
	if (dir)
		closedir(dir);
}

/* Keeps everything without real-time priority off this processor. */
static void spin_ms(unsigned int ms)
{
	const uint64_t end = abi_now_ns() + ms * 1000000ull;

	while (abi_now_ns() < end)
		;
}

static void go_real_time(void)
{
	const struct sched_param param = { .sched_priority = 10 };

	if (!pin(0, SLOW) || pthread_setschedparam(pthread_self(), SCHED_FIFO, &param))
		tap_bail("no real-time priority");
}

/* --- close() at a job's time limit --- */
static void *hog_past_limit(void *unused)
{
	go_real_time();
	abi_sleep_ms(LIMIT_MS / 2);
	spin_ms(LIMIT_MS / 2 + 2 * SETTLE_MS);
	return NULL;
}

/*
 * The job's thread does not run from before the limit until idle queues of its file
 * are freed: it notices the limit when close() waits for it. Returns the errno of
 * the job's fence.
 */
static int close_at_limit(void)
{
	struct abi_prog prog = abi_prog_long();
	int fd = abi_open(), file, i;
	struct abi_buf mem = abi_buf(fd, 3 * ABI_LONG_BYTES, DRM_SPYRE_BO_DEVICE, VA);
	uint32_t program = abi_prog_create(fd, &prog), done = abi_syncobj(fd), id;
	const uint64_t args[3] = { VA, VA + ABI_LONG_BYTES, VA + 2 * ABI_LONG_BYTES };
	struct drm_spyre_cb cb = abi_cb_exec(program, args, 3);
	struct abi_queue q;
	pthread_t hog;

	for (i = 0; i < IDLE_QUEUES; i++)
		abi_queue_create(fd, 0, 0, &id);
	q = abi_queue(fd, LIMIT_MS);
	pin_card_threads(SLOW);
	if (abi_submit_sync(&q, &cb, 1, abi_sync_signal(done, 0), (struct drm_spyre_sync){ 0 }))
		tap_bail("SUBMIT");
	if (pthread_create(&hog, NULL, hog_past_limit, NULL))
		tap_bail("pthread_create");
	file = abi_sync_file(fd, done);
	munmap(q.results.map, q.results.size);
	munmap(mem.map, mem.size);
	abi_sleep_ms(LIMIT_MS + SETTLE_MS / 2);
	close(fd);
	pthread_join(hog, NULL);
	abi_sync_file_poll(file, 20000);
	i = abi_sync_file_status(file);
	close(file);
	pin_card_threads(BOTH);
	return i;
}

static void test_close(int rounds)
{
	int tries, ret, late = 0, ended = 0;

	/* On a busy machine this program may be late as well. */
	for (tries = 0; tries < 3 * rounds && late < rounds; tries++) {
		ret = close_at_limit();
		late += ret == -ETIME;
		ended += ret == -ETIME || ret == -ECANCELED;
	}
	tap_eq(ended, tries, "close at the limit: the job has ended, %d times", tries);
	tap_note("%d of %d reported their limit first", late, tries);
}

/* --- QUEUE_DESTROY before QUEUE_CREATE has returned --- */
static struct {
	int fd;
	atomic_bool over;
	atomic_uint creating;	/* odd during the call */
	atomic_uint caught;	/* its value when the queue existed before the end of the call */
	int wrong, made;
	atomic_int hits;
} race = { .caught = ~0u };

static void *race_create(void *unused)
{
	uint32_t id;

	pin(0, SLOW);
	while (!race.over) {
		race.creating++;
		if (!abi_queue_create(race.fd, 0, 0, &id)) {
			race.made++;
			race.wrong += id != 1;
		}
		race.creating++;
		abi_queue_destroy(race.fd, 1);
	}
	return NULL;
}

static void *race_destroy(void *unused)
{
	struct drm_spyre_queue_query query = { .queue_id = 1 };
	unsigned int before;

	pin(0, QUICK);
	while (!race.over) {
		before = race.creating;
		if (before % 2 == 0 || abi_ioctl(race.fd, DRM_IOCTL_SPYRE_QUEUE_QUERY, &query))
			continue;
		if (before == race.creating)
			race.caught = before;
		abi_queue_destroy(race.fd, 1);
	}
	return NULL;
}

/* Interrupts the creating thread at any moment, and keeps running if the moment was right. */
static void *race_hog(void *unused)
{
	const struct timespec pause = { .tv_nsec = 50000 };
	uint64_t end;

	go_real_time();
	while (!race.over) {
		nanosleep(&pause, NULL);
		end = abi_now_ns() + 100000;
		while (abi_now_ns() < end && race.caught != race.creating)
			;
		if (race.caught != race.creating)
			continue;
		spin_ms(FREED_MS);
		race.hits++;
	}
	return NULL;
}

static void test_create(int rounds)
{
	void *(*const role[])(void *) = { race_create, race_destroy, race_hog };
	const uint64_t end = abi_now_ns() + rounds * 2000000000ull;
	pthread_t thread[3];
	int i;

	race.fd = abi_open();
	for (i = 0; i < 3; i++)
		if (pthread_create(&thread[i], NULL, role[i], NULL))
			tap_bail("pthread_create");
	while (abi_now_ns() < end && race.hits < 8 * rounds)
		abi_sleep_ms(20);
	race.over = true;
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	close(race.fd);
	tap_eq(race.wrong, 0,
	       "%d queues, their only possible id guessed by another thread: each has it",
	       race.made);
	tap_note("%d were freed before QUEUE_CREATE was back", race.hits);
}

int main(void)
{
	const char *env = getenv("ABI_ROUNDS");
	const int rounds = env ? atoi(env) : 2;
	int watch = abi_open();
	uint64_t used = abi_memory(watch).used;

	slow_cpu = (int)sysconf(_SC_NPROCESSORS_ONLN) - 1;
	if (getuid())
		tap_skip_all("real-time priority and the card's threads need root");
	if (slow_cpu < 1)
		tap_skip_all("one processor");
	pin(0, QUICK);
	test_create(rounds);
	test_close(rounds);
	tap_ok(abi_memory_settles(watch, used), "all memory is back");
	close(watch);
	return tap_done();
}
