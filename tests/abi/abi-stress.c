/* SPDX-License-Identifier: MIT */
/*
 * Several processes make random calls of a client and are killed at random moments;
 * then, as root, the same while the card is unplugged and plugged in again.
 * ABI_SECONDS sets the duration (8), ABI_SEED the seed (1), ABI_PATIENCE_MS how
 * long the card may complete no job while a client waits (20000).
 */
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

#include "prog.h"
#include "stuck.h"

#define PROCESSES 4
#define QUEUES 6
#define VA MIB
#define STICKS 64u
#define BYTES (STICKS * STICK)
#define JOB_NS 20000000ull
#define DRIVER "/sys/bus/platform/drivers/spyre_vdev/"

static unsigned int state;
static bool tolerant;
static unsigned int patience_ms = 20000;
/* iterations of the long program */
static uint32_t iterations;

static uint32_t pick(uint32_t n)
{
	state = state * 1664525u + 1013904223u;
	return (state >> 8) % n;
}

/* For a child: a call that must succeed, unless the card may be gone. */
static void must(int ret, const char *what)
{
	if (!ret)
		return;
	if (!tolerant)
		fprintf(stderr, "# %s: %s\n", what, strerror(-ret));
	_exit(tolerant ? 0 : 1);
}

struct client {
	int fd;
	uint32_t queue[QUEUES], program[3], bo, host, syncobj[QUEUES];
	uint64_t point[QUEUES];
	uint8_t *user;
};

static void client_programs(struct client *c)
{
	struct abi_prog prog[3] = {
		abi_prog_add(1, STICKS), abi_prog_add(1, STICKS), abi_prog_add(1, STICKS),
	};
	struct drm_spyre_program_create args;
	uint64_t size;
	void *image;
	int i;

	prog[1].num_loops = 1;
	prog[1].loops[0] = iterations;
	/* the third keeps its sum in the scratchpad */
	prog[2].lx_bytes = BYTES;
	prog[2].views[0].operand = SPYRE_VIEW_LX;
	prog[2].operands[0] = (struct spyre_prog_operand){ 0 };
	for (i = 0; i < 3; i++) {
		image = abi_prog_encode(&prog[i], &size);
		must(abi_prog_load(c->fd, image, size, &args), "PROGRAM_CREATE");
		c->program[i] = args.handle;
		free(image);
	}
}

static void client_open(struct client *c)
{
	char node[PATH_MAX], device[NAME_MAX];
	int i;

	memset(c, 0, sizeof(*c));
	if (!abi_find(node, sizeof(node), device, sizeof(device)))
		must(-ENODEV, "no node");
	c->fd = open(node, O_RDWR | O_CLOEXEC);
	must(c->fd < 0 ? -errno : 0, "open");
	must(abi_bo(c->fd, 3 * BYTES, DRM_SPYRE_BO_DEVICE, &c->bo), "BO_CREATE");
	must(abi_bo(c->fd, 4 * PAGE, DRM_SPYRE_BO_HOST, &c->host), "BO_CREATE");
	must(abi_bind(c->fd, c->bo, 0, VA, 3 * BYTES, 0), "VM_BIND");
	client_programs(c);
	for (i = 0; i < QUEUES; i++) {
		struct drm_syncobj_create s = { 0 };

		must(abi_queue_create(c->fd, i & 1, 60000, &c->queue[i]), "QUEUE_CREATE");
		must(abi_ioctl(c->fd, DRM_IOCTL_SYNCOBJ_CREATE, &s), "SYNCOBJ_CREATE");
		c->syncobj[i] = s.handle;
	}
	c->user = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static struct drm_spyre_cb random_cb(struct client *c, const struct drm_spyre_dma *dma)
{
	static const uint64_t args[3] = { VA, VA + BYTES, VA + 2 * BYTES };
	uint8_t *host = c->user + pick(BYTES);

	switch (pick(6)) {
	case 0:
		return abi_cb_exec(c->program[pick(3)], args, 3);
	case 1:
		return abi_cb_dma(dma, VA, host, BYTES);
	case 2:
		return abi_cb_dma_bo(dma, VA, c->host, 0, BYTES);
	case 3:
		return abi_cb_copy(VA + pick(BYTES), VA + pick(BYTES), 1 + pick(2 * BYTES));
	case 4:
		return abi_cb_fill32(VA + pick(BYTES), 4 * (1 + pick(4000)), pick(1000));
	default:
		return abi_cb_timestamp();
	}
}

static void client_submit(struct client *c)
{
	struct drm_spyre_dma dma = abi_dma_raw(pick(2), BYTES);
	struct drm_spyre_cb cbs[6];
	uint32_t queue = pick(QUEUES), other = pick(QUEUES), n = 1 + pick(6), i, syncs = 1;
	struct drm_spyre_sync sync[2] = {
		{ .handle = c->syncobj[queue], .flags = DRM_SPYRE_SYNC_SIGNAL,
		  .point = ++c->point[queue] },
		{ .handle = c->syncobj[other], .point = c->point[other] },
	};
	struct drm_spyre_submit s = {
		.queue_id = c->queue[queue],
		.cbs = { .stride = sizeof(cbs[0]), .count = n, .array = PTR(cbs) },
		.result_handle = c->host,
		.result_offset = sizeof(struct drm_spyre_cb_result) * pick(32),
	};

	if (other != queue && c->point[other])
		syncs = 2;
	s.syncs = (struct drm_spyre_array){ sizeof(sync[0]), syncs, PTR(sync) };
	for (i = 0; i < n; i++)
		cbs[i] = random_cb(c, &dma);
	must(abi_ioctl(c->fd, DRM_IOCTL_SPYRE_SUBMIT, &s), "SUBMIT");
	if (c->point[queue] % 16 == 0)
		must(stuck_wait_point(c->fd, c->syncobj[queue], c->point[queue], patience_ms),
		     "wait for a card that completes no job");
}

static void client_requeue(struct client *c)
{
	uint32_t *id = &c->queue[pick(QUEUES)];

	must(abi_queue_destroy(c->fd, *id), "QUEUE_DESTROY");
	must(abi_queue_create(c->fd, pick(2), 0, id), "QUEUE_CREATE");
}

static void client_rebind(struct client *c)
{
	must(abi_unbind(c->fd, VA, PAGE * (1 + pick(6))), "VM_BIND");
	must(abi_bind(c->fd, c->bo, 0, VA, 3 * BYTES, 0), "VM_BIND");
}

static void child(uint64_t end, unsigned int seed)
{
	struct client c;
	int i, n;

	state = seed;
	while (abi_now_ns() < end) {
		client_open(&c);
		n = 20 + pick(200);
		for (i = 0; i < n && abi_now_ns() < end; i++) {
			client_submit(&c);
			if (!pick(30))
				client_requeue(&c);
			if (!pick(20))
				client_rebind(&c);
		}
		munmap(c.user, 4 * PAGE);	/* pinned memory stays */
		close(c.fd);
	}
	_exit(0);
}

/*
 * Twenty time slices long on any host, so that jobs are preempted, but not longer,
 * since hundreds of jobs may precede the one that a client waits for.
 */
static void calibrate(void)
{
	struct abi_prog p = abi_prog_add(1, STICKS);

	p.num_loops = 1;
	p.loops[0] = 16;
	iterations = (uint32_t)(16 * JOB_NS / abi_prog_ns(&p)) + 1;
	if (iterations > 65535)
		iterations = 65535;
	tap_note("%u iterations take %llu ms", iterations, JOB_NS / 1000000);
}

static int reap(pid_t pid)
{
	int status;

	if (!stuck_wait_exit(pid, &status, patience_ms))
		tap_bail("process %d does not end, and the card completes no job", (int)pid);
	return status;
}

/* Returns the number of children that reported an error. */
static int storm(unsigned int seed, unsigned int seconds, const char *device)
{
	uint64_t end = abi_now_ns() + seconds * 1000000000ull;
	pid_t pids[PROCESSES] = { 0 };
	int i, status, rounds = 0, bad = 0;

	tolerant = device;
	state = seed;
	while (abi_now_ns() < end) {
		for (i = 0; i < PROCESSES; i++) {
			if (pids[i])
				continue;
			pids[i] = fork();
			if (!pids[i])
				child(end, seed + rounds * PROCESSES + i);
		}
		abi_sleep_ms(20 + pick(300));
		if (device && rounds % 4 == 3) {
			bad += abi_write_file(DRIVER "unbind", device) || abi_write_file(DRIVER "bind", device);
			abi_sleep_ms(200);
		}
		i = pick(PROCESSES);
		kill(pids[i], SIGKILL);
		status = reap(pids[i]);
		bad += WIFEXITED(status) && WEXITSTATUS(status);
		pids[i] = 0;
		rounds++;
	}
	for (i = 0; i < PROCESSES; i++) {
		if (!pids[i])
			continue;
		status = reap(pids[i]);
		bad += !WIFEXITED(status) || WEXITSTATUS(status);
	}
	return bad;
}

int main(void)
{
	const char *seconds = getenv("ABI_SECONDS"), *seed = getenv("ABI_SEED");
	const char *patience = getenv("ABI_PATIENCE_MS");
	unsigned int s = seed ? strtoul(seed, NULL, 0) : 1, t = seconds ? atoi(seconds) : 8;
	char node[PATH_MAX], device[NAME_MAX];
	int fd;

	if (patience)
		patience_ms = strtoul(patience, NULL, 0);
	close(abi_open());
	abi_find(node, sizeof(node), device, sizeof(device));
	tap_note("seed %u, %u s", s, t);
	calibrate();
	tap_eq(storm(s, t, NULL), 0, "random clients, killed at random: no unexpected error");
	if (getuid())
		tap_skip("unbinding needs root",
			 "the same while the card is unbound and bound: no unexpected error");
	else
		tap_eq(storm(s + 1, t, device), 0,
		       "the same while the card is unbound and bound: no unexpected error");
	abi_sleep_ms(200);
	fd = abi_open();
	tap_ok(abi_memory_settles(fd, 0), "all memory is back");
	close(fd);
	return tap_done();
}
