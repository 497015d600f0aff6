/* SPDX-License-Identifier: MIT */
/*
 * Four processes submit, through the ioctl and through io_uring, map, bind, export
 * and import, and are killed at random moments. After each kill the fences of the
 * dead process have signalled, and a surviving process computes its first result
 * again. ABI_ROUNDS sets the number of kills (100), ABI_SEED the moments.
 */
#include "config.h"

#include "abi.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xf86drm.h>

#include "kill.h"
#include "prog.h"

#define PROCESSES 4
#define BYTES (64 * 1024u)
#define VA (64 * MIB)

struct survivor {
	int fd;
	struct abi_queue queue;
	struct abi_buf dev, host;
	struct abi_buf lent;		/* imported by the others */
	int lent_file;
	uint32_t program;
	uint64_t checksum;
};

struct slot {
	pid_t pid;
	uint32_t syncobj;		/* the survivor's; the child signals it */
	int syncobj_file;
};

static unsigned int state;

static uint32_t pick(uint32_t n)
{
	state = state * 1664525u + 1013904223u;
	return (state >> 8) % n;
}

static uint64_t checksum(const void *data, size_t bytes, uint64_t sum)
{
	const uint8_t *p = data;
	size_t i;

	for (i = 0; i < bytes; i++)
		sum = (sum ^ p[i]) * 0x100000001b3ull;
	return sum;
}

/* Sums two tensors that come from the host, and copies the result back; returns 0 on error. */
static uint64_t survivor_run(struct survivor *s)
{
	const uint64_t args[3] = { VA, VA + BYTES, VA + 2 * BYTES };
	struct drm_spyre_dma down = abi_dma_raw(DRM_SPYRE_DMA_H2D, BYTES);
	struct drm_spyre_dma up = abi_dma_raw(DRM_SPYRE_DMA_D2H, BYTES);
	struct drm_spyre_cb cbs[] = {
		abi_cb_dma_bo(&down, VA + BYTES, s->host.handle, 0, BYTES),
		abi_cb_dma_bo(&down, VA + 2 * BYTES, s->host.handle, BYTES, BYTES),
		abi_cb_exec(s->program, args, 3),
		abi_cb_dma_bo(&up, VA, s->host.handle, 2 * BYTES, BYTES),
	};
	uint8_t *host = s->host.map;
	int ret;

	memset(host + 2 * BYTES, 0, BYTES);
	ret = abi_run(&s->queue, cbs, sizeof(cbs) / sizeof(cbs[0]));
	if (ret) {
		tap_note("the survivor's work: %s", strerror(-ret));
		return 0;
	}
	return checksum(host + 2 * BYTES, BYTES,
			checksum(s->lent.map, s->lent.size, 0xcbf29ce484222325ull));
}

static struct survivor survivor_start(void)
{
	struct abi_prog prog = abi_prog_add(4, BYTES / STICK / 4);
	struct survivor s = { .fd = abi_open(), .lent_file = -1 };
	uint32_t i;

	s.queue = abi_queue(s.fd, 60000);
	s.dev = abi_buf(s.fd, 3 * BYTES, DRM_SPYRE_BO_DEVICE, VA);
	s.host = abi_buf(s.fd, 3 * BYTES, DRM_SPYRE_BO_HOST, 0);
	s.lent = abi_buf(s.fd, BYTES, DRM_SPYRE_BO_DEVICE, 0);
	s.program = abi_prog_create(s.fd, &prog);
	memset(s.lent.map, 0x5a, BYTES);
	for (i = 0; i < BYTES; i++)
		((uint16_t *)s.host.map)[i] = abi_dl16((int)(i % 401) - 200);
	if (drmPrimeHandleToFD(s.fd, s.lent.handle, DRM_CLOEXEC | DRM_RDWR, &s.lent_file))
		tap_bail("PRIME_HANDLE_TO_FD: %s", strerror(errno));
	s.checksum = survivor_run(&s);
	return s;
}

static void slot_start(struct slot *slot, const struct survivor *s, uint64_t seed)
{
	struct kill_client client = {
		.lent_file = s->lent_file,
		.syncobj_file = slot->syncobj_file,
		.seed = (unsigned int)seed,
	};

	fflush(stdout);
	slot->pid = fork();
	if (slot->pid < 0)
		tap_bail("fork: %s", strerror(errno));
	if (!slot->pid)
		kill_client_run(&client);
}

/* The fences that the dead process left in the syncobj signal; it may not have got that far. */
static bool fence_signals(const struct survivor *s, const struct slot *slot)
{
	int ret = abi_wait_point(s->fd, slot->syncobj, 0, 30000);

	if (ret && ret != -EINVAL)
		tap_note("the fence of %d: %s", slot->pid, strerror(-ret));
	return !ret || ret == -EINVAL;
}

/* Returns true if the child was alive until now: it exits at the first error. */
static bool slot_kill(struct slot *slot)
{
	int status = 0;

	kill(slot->pid, SIGKILL);
	while (waitpid(slot->pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

static void test_kill(struct survivor *s, unsigned int rounds)
{
	unsigned int round, dead = 0, stuck = 0, wrong = 0, i;
	uint64_t start = abi_now_ns();
	struct slot slots[PROCESSES];

	for (i = 0; i < PROCESSES; i++) {
		slots[i].syncobj = abi_syncobj(s->fd);
		if (drmSyncobjHandleToFD(s->fd, slots[i].syncobj, &slots[i].syncobj_file))
			tap_bail("SYNCOBJ_HANDLE_TO_FD: %s", strerror(errno));
		slot_start(&slots[i], s, i);
	}
	for (round = 0; round < rounds; round++) {
		struct slot *slot = &slots[pick(PROCESSES)];

		abi_sleep_ms(pick(40));
		dead += !slot_kill(slot);
		stuck += !fence_signals(s, slot);
		wrong += survivor_run(s) != s->checksum;
		slot_start(slot, s, PROCESSES + round);
	}
	for (i = 0; i < PROCESSES; i++) {
		dead += !slot_kill(&slots[i]);
		stuck += !fence_signals(s, &slots[i]);
		close(slots[i].syncobj_file);
	}
	tap_note("%u kills in %llu ms", rounds + PROCESSES,
		 (unsigned long long)(abi_now_ns() - start) / 1000000);
	tap_eq(dead, 0, "%u kills: no process failed before it was killed", rounds + PROCESSES);
	tap_eq(stuck, 0, "%u kills: the fences of killed processes signal", rounds + PROCESSES);
	tap_eq(wrong, 0, "%u kills: the survivor's results never change", rounds + PROCESSES);
}

int main(void)
{
	const char *rounds = getenv("ABI_ROUNDS"), *seed = getenv("ABI_SEED");
	int watch = abi_open();
	uint64_t before = abi_memory(watch).used, used;
	struct survivor s = survivor_start();

	state = seed ? strtoul(seed, NULL, 0) : 1;
	used = abi_memory(watch).used;
	tap_ok(s.checksum != 0, "the survivor's work runs");
	test_kill(&s, rounds ? strtoul(rounds, NULL, 0) : 100);
	tap_ok(abi_memory_settles(watch, used), "only the survivor's memory is in use");
	tap_ret(abi_queue_query(s.fd, s.queue.id).error, 0, "the survivor's queue has no error");
	close(s.lent_file);
	munmap(s.dev.map, s.dev.size);
	munmap(s.lent.map, s.lent.size);
	munmap(s.host.map, s.host.size);
	abi_queue_free(&s.queue);
	close(s.fd);
	tap_ok(abi_memory_settles(watch, before), "no memory is in use afterwards");
	return tap_done();
}
