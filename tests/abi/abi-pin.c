/* SPDX-License-Identifier: MIT */
/*
 * User memory pinned by DMA, and RLIMIT_MEMLOCK. All tests except the first run
 * without privileges, as a user that pins nothing else.
 */
#include "config.h"

#include "fence.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xf86drm.h>

#define VA (256 * MIB)
#define LIMIT (64ull << 10)
#define NOBODY 12345

struct context {
	int fd;
	struct abi_queue queue;
	struct abi_buf dev;
	uint8_t *host;
};

static struct context context_open(void)
{
	struct context c = { .fd = abi_open() };

	c.queue = abi_queue(c.fd, 0);
	c.dev = abi_buf(c.fd, MIB, DRM_SPYRE_BO_DEVICE, VA);
	c.host = mmap(NULL, 2 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(c.host, 0x5a, 2 * MIB);
	return c;
}

static int set_limit(uint64_t bytes)
{
	struct rlimit limit = { bytes, bytes };

	return setrlimit(RLIMIT_MEMLOCK, &limit);
}

/* Drops root and its capabilities; a plain user keeps its identity. */
static void drop(void)
{
	if (!geteuid() && (setresgid(NOBODY, NOBODY, NOBODY) || setresuid(NOBODY, NOBODY, NOBODY)))
		tap_bail("setresuid: %s", strerror(errno));
}

static int copy(struct context *c, uint64_t bytes, uint32_t direction, struct drm_spyre_sync sync)
{
	struct drm_spyre_dma desc = abi_dma_raw(direction, bytes);
	struct drm_spyre_cb cb = abi_cb_dma(&desc, VA, c->host, bytes);

	return abi_submit_sync(&c->queue, &cb, 1, sync, (struct drm_spyre_sync){ 0 });
}

/* Jobs are freed shortly after their fence: retries for 5 s. */
static int copy_settles(struct context *c, uint64_t bytes)
{
	int ret, i;

	for (i = 0; i < 500; i++) {
		ret = copy(c, bytes, DRM_SPYRE_DMA_H2D, (struct drm_spyre_sync){ 0 });
		if (ret != -ENOMEM)
			break;
		abi_sleep_ms(10);
	}
	return ret ?: abi_wait(&c->queue, 10000);
}

/* Pinned KiB in fdinfo; ~0 if it is missing. */
static uint64_t fdinfo_pinned(int fd)
{
	unsigned long long kib = ~0ull;
	char path[64], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f))
		sscanf(line, "spyre-pinned: %llu KiB", &kib);
	if (f)
		fclose(f);
	return kib;
}

static bool fdinfo_settles(int fd, uint64_t kib)
{
	int i;

	for (i = 0; i < 500 && fdinfo_pinned(fd) != kib; i++)
		abi_sleep_ms(10);
	return fdinfo_pinned(fd) == kib;
}

static void test_limit(struct context *c, uint32_t in)
{
	const struct drm_spyre_sync shut = abi_sync_wait(in, 0), none = { 0 };

	tap_ret(copy(c, MIB, DRM_SPYRE_DMA_H2D, none), -ENOMEM,
		"limit: H2D of 1 MiB, limit 64 KiB");
	tap_ret(copy(c, MIB, DRM_SPYRE_DMA_D2H, none), -ENOMEM,
		"limit: D2H of 1 MiB, limit 64 KiB");
	tap_eq(fdinfo_pinned(c->fd), 0, "limit: nothing is pinned");
	tap_ret(copy(c, LIMIT + STICK, DRM_SPYRE_DMA_H2D, none), -ENOMEM,
		"limit: a page more than the limit");
	tap_ret(copy(c, LIMIT / 2, DRM_SPYRE_DMA_H2D, shut), 0,
		"limit: half of it, in a job that waits");
	tap_eq(fdinfo_pinned(c->fd), LIMIT / 2 >> 10, "limit: fdinfo shows half of it");
	tap_ret(copy(c, LIMIT / 2, DRM_SPYRE_DMA_H2D, none), 0,
		"limit: the other half, in a job behind it");
	tap_ret(copy(c, STICK, DRM_SPYRE_DMA_H2D, none), -ENOMEM,
		"limit: a page that is pinned already counts again");
	tap_eq(fdinfo_pinned(c->fd), LIMIT >> 10, "limit: fdinfo shows all of it");
}

static void test_holes(struct context *c)
{
	uint8_t *host = c->host;
	const struct drm_spyre_sync none = { 0 };

	c->host = abi_hole();
	tap_ret(copy(c, STICK, DRM_SPYRE_DMA_H2D, none), -EFAULT, "fault: unmapped memory");
	c->host = abi_guard(PAGE);
	tap_ret(copy(c, 2 * PAGE, DRM_SPYRE_DMA_D2H, none), -EFAULT,
		"fault: memory unmapped from its middle on");
	c->host = host;
	tap_eq(fdinfo_pinned(c->fd), 0, "fault: the pages are unpinned");
	tap_ret(copy_settles(c, LIMIT), 0, "fault: the charge is released");
}

/* A process that, when told, pins all that its user may, behind the gate. */
struct hog {
	pid_t pid;
	int go, said;
};

static struct hog hog_start(const struct abi_gate *gate)
{
	struct hog hog;
	struct context mine;
	int to[2], from[2];
	uint32_t in;
	char byte;

	if (pipe(to) || pipe(from))
		tap_bail("pipe: %s", strerror(errno));
	hog.pid = fork();
	if (!hog.pid) {
		mine = context_open();
		drop();
		set_limit(LIMIT);
		if (read(to[0], &byte, 1) != 1)
			_exit(1);
		in = abi_gate_syncobj(gate, mine.fd);
		byte = (char)copy(&mine, LIMIT, DRM_SPYRE_DMA_H2D, abi_sync_wait(in, 0));
		if (write(from[1], &byte, 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	hog.go = to[1];
	hog.said = from[0];
	return hog;
}

/* The process and its memory are gone first, then the gate opens, then the job is freed. */
static void test_killed(struct context *c, struct hog *hog, struct abi_gate *gate)
{
	const struct drm_spyre_sync none = { 0 };
	char byte = 0;

	abi_gate_shut(gate);
	if (write(hog->go, &byte, 1) != 1 || read(hog->said, &byte, 1) != 1)
		tap_bail("the other process: %s", strerror(errno));
	tap_ret(byte, 0, "killed: another process of the user pins all it may");
	tap_ret(copy(c, STICK, DRM_SPYRE_DMA_H2D, none), -ENOMEM,
		"killed: nothing is left for this one");
	kill(hog->pid, SIGKILL);
	waitpid(hog->pid, NULL, 0);
	tap_ret(copy(c, STICK, DRM_SPYRE_DMA_H2D, none), -ENOMEM,
		"killed: its job still waits and keeps the pages");
	abi_gate_open(gate);
	tap_ret(copy_settles(c, LIMIT), 0, "killed: the pins are released with the job");
}

static void test_capable(void)
{
	struct context c = context_open();

	set_limit(0);
	tap_ret(copy_settles(&c, MIB), 0, "CAP_IPC_LOCK: no limit");
	tap_ok(fdinfo_settles(c.fd, 0), "CAP_IPC_LOCK: fdinfo still counts the pins");
	set_limit(RLIM_INFINITY);
	close(c.fd);
}

int main(void)
{
	struct abi_gate gates[2] = { abi_gate_make(), abi_gate_make() };
	struct hog hog = hog_start(&gates[1]);
	struct context c;
	uint32_t in;

	if (!geteuid())
		test_capable();
	c = context_open();
	drop();
	if (set_limit(LIMIT))
		tap_bail("setrlimit: %s", strerror(errno));
	tap_ret(copy_settles(&c, LIMIT), 0, "limit: exactly the limit");
	tap_ok(fdinfo_settles(c.fd, 0), "limit: nothing stays pinned");
	abi_gate_shut(&gates[0]);
	in = abi_gate_syncobj(&gates[0], c.fd);
	test_limit(&c, in);
	abi_gate_free(&gates[0]);
	tap_ret(abi_wait(&c.queue, 10000), 0, "limit: both jobs complete");
	tap_ret(copy_settles(&c, LIMIT), 0, "limit: the whole limit is free again");
	tap_eq(*(const uint8_t *)c.dev.map, 0x5a, "limit: the copied bytes are right");
	tap_ok(fdinfo_settles(c.fd, 0), "limit: nothing is pinned");
	test_holes(&c);
	test_killed(&c, &hog, &gates[1]);
	abi_gate_free(&gates[1]);
	set_limit(0);
	tap_ret(copy(&c, STICK, DRM_SPYRE_DMA_H2D, (struct drm_spyre_sync){ 0 }), -ENOMEM,
		"limit 0: every pin is refused");
	return tap_done();
}
