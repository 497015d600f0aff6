/* SPDX-License-Identifier: MIT */
/*
 * Removes the module and its card while they are used: rmmod, unbind and reset
 * under load, and while a dma-buf or a sync_file of the card is still open.
 * Unloading is refused or waits; it never removes an object in use. Also 64 files
 * of 64 queues, each with a job. ABI_ROUNDS sets the number of rounds (8).
 */
#include "abi.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/sync_file.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xf86drm.h>

#include "prog.h"

#define DRIVER "/sys/bus/platform/drivers/spyre_vdev/"
#define VA (64 * MIB)
#define FILES 64
#define QUEUES 64
#define CLIENTS 3

static int rmmod(void)
{
	return syscall(SYS_delete_module, "spyre_vdev", O_NONBLOCK) ? -errno : 0;
}

/* A new node appears with a short delay. */
static int open_again(void)
{
	char node[PATH_MAX], device[NAME_MAX];
	int i, fd = -1;

	for (i = 0; i < 200 && fd < 0; i++) {
		if (abi_find(node, sizeof(node), device, sizeof(device)))
			fd = open(node, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			abi_sleep_ms(50);
	}
	if (fd < 0)
		tap_bail("no node: %s", strerror(errno));
	return fd;
}

static void check_alive(const char *after)
{
	int fd = open_again();
	struct abi_queue q = abi_queue(fd, 0);
	struct abi_buf mem = abi_buf(fd, PAGE, DRM_SPYRE_BO_DEVICE, VA);
	struct drm_spyre_cb cb = abi_cb_fill32(VA, PAGE, 0x600d600d);

	tap_ok(!abi_run(&q, &cb, 1) && *(uint32_t *)mem.map == 0x600d600d, "%s: the card works",
	       after);
	abi_buf_free(fd, &mem);
	abi_queue_free(&q);
	tap_ok(abi_memory_settles(fd, 0), "%s: no memory is in use", after);
	close(fd);
}

/* Works until it is killed; accepts only the errors of a removed card. */
static void client(unsigned int number)
{
	const uint64_t args[3] = { VA, VA + ABI_LONG_BYTES, VA + 2 * ABI_LONG_BYTES };
	struct abi_prog prog = abi_prog_add(1, 64);
	struct drm_spyre_cb cbs[2];
	char node[PATH_MAX], device[NAME_MAX];
	uint32_t bo, queue, i;
	int fd;

	for (;;) {
		struct drm_spyre_program_create made;
		struct drm_spyre_submit submit = {
			.cbs = { .stride = sizeof(cbs[0]), .count = 2, .array = PTR(cbs) },
		};
		uint64_t size;
		void *image;

		abi_sleep_ms(1);
		if (!abi_find(node, sizeof(node), device, sizeof(device)))
			continue;
		fd = open(node, O_RDWR | O_CLOEXEC);
		if (fd < 0)
			continue;
		prog.num_loops = 1;
		prog.loops[0] = 20 + 100 * number;
		image = abi_prog_encode(&prog, &size);
		abi_bo(fd, 3 * ABI_LONG_BYTES, DRM_SPYRE_BO_DEVICE, &bo);
		abi_bind(fd, bo, 0, VA, 3 * ABI_LONG_BYTES, 0);
		abi_queue_create(fd, number & 1, 60000, &queue);
		abi_prog_load(fd, image, size, &made);
		free(image);
		cbs[0] = abi_cb_exec(made.handle, args, 3);
		cbs[1] = abi_cb_fill32(VA, PAGE, number);
		submit.queue_id = queue;
		for (i = 0; i < 50; i++)
			if (abi_ioctl(fd, DRM_IOCTL_SPYRE_SUBMIT, &submit))
				break;
		close(fd);
	}
}

static void clients_start(pid_t *pids)
{
	unsigned int i;

	fflush(stdout);
	for (i = 0; i < CLIENTS; i++) {
		pids[i] = fork();
		if (!pids[i])
			client(i);
		if (pids[i] < 0)
			tap_bail("fork: %s", strerror(errno));
	}
}

static void clients_stop(pid_t *pids)
{
	int i;

	for (i = 0; i < CLIENTS; i++) {
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
}

/* A file is open throughout: rmmod fails at once. */
static void test_rmmod(unsigned int rounds)
{
	int fd = abi_open(), bad = 0;
	pid_t pids[CLIENTS];
	unsigned int i;

	clients_start(pids);
	for (i = 0; i < 10 * rounds; i++) {
		abi_sleep_ms(5);
		bad += rmmod() != -EAGAIN;
	}
	clients_stop(pids);
	close(fd);
	tap_eq(bad, 0, "rmmod under load is refused, %u times", 10 * rounds);
	check_alive("rmmod under load");
}

static void test_unbind(const char *device, unsigned int rounds)
{
	unsigned int i, bad = 0;
	pid_t pids[CLIENTS];

	clients_start(pids);
	for (i = 0; i < rounds; i++) {
		abi_sleep_ms(50 + i * 37 % 100);
		bad += abi_write_file(DRIVER "unbind", device) || abi_write_file(DRIVER "bind", device);
	}
	clients_stop(pids);
	tap_eq(bad, 0, "unbind and bind under load, %u times", rounds);
	check_alive("unbind under load");
}

static void test_reset(unsigned int rounds)
{
	struct drm_spyre_reset args = { 0 };
	int fd = open_again(), bad = 0;
	pid_t pids[CLIENTS];
	uint64_t last = 0;
	unsigned int i;

	clients_start(pids);
	for (i = 0; i < rounds; i++) {
		abi_sleep_ms(30 + i * 37 % 100);
		bad += abi_ioctl(fd, DRM_IOCTL_SPYRE_RESET, &args) || args.generation <= last;
		last = args.generation;
	}
	clients_stop(pids);
	close(fd);
	tap_eq(bad, 0, "reset under load, %u times", rounds);
	check_alive("reset under load");
}

/* Reads the kernel's status of a fence, which outlives its queue and file. */
static int fence_status(int file)
{
	struct sync_fence_info fence = { 0 };
	struct sync_file_info info = { .num_fences = 1, .sync_fence_info = PTR(&fence) };

	if (ioctl(file, SYNC_IOC_FILE_INFO, &info))
		return -errno;
	return info.status;
}

/* Makes a sync_file of work that completes, or (@lasting) is cancelled with its file. */
static int make_sync_file(bool lasting)
{
	const uint64_t args[3] = { VA, VA + ABI_LONG_BYTES, VA + 2 * ABI_LONG_BYTES };
	struct abi_prog prog = lasting ? abi_prog_long() : abi_prog_add(1, 1);
	int fd = open_again(), file = -1;
	uint32_t binary = abi_syncobj(fd);
	struct abi_queue q = abi_queue(fd, 60000);
	struct abi_buf mem = abi_buf(fd, 3 * ABI_LONG_BYTES, DRM_SPYRE_BO_DEVICE, VA);
	uint32_t program = abi_prog_create(fd, &prog);
	struct drm_spyre_cb cb = abi_cb_exec(program, args, 3);
	struct drm_spyre_sync done = { .handle = binary, .flags = DRM_SPYRE_SYNC_SIGNAL };

	if (abi_submit_sync(&q, &cb, 1, done, (struct drm_spyre_sync){ 0 }) ||
	    drmSyncobjExportSyncFile(fd, binary, &file))
		tap_bail("no sync_file");
	if (!lasting)
		abi_wait(&q, 60000);
	munmap(mem.map, mem.size);
	munmap(q.results.map, q.results.size);
	close(fd);
	return file;
}

static void test_live_fence(bool lasting)
{
	const char *what = lasting ? "of work that close() ended" : "of work that is done";
	int file = make_sync_file(lasting), ret, i;

	for (i = 0; i < 500 && !fence_status(file); i++)
		abi_sleep_ms(10);
	/* Deferred frees have completed by now. */
	abi_sleep_ms(300);
	ret = fence_status(file);
	tap_ok(lasting ? ret < 0 : ret == 1,
	       "a sync_file %s outlives file and module (%d)", what, ret);
	check_alive("a live sync_file");
	close(file);
}

static void test_live_dmabuf(const char *device)
{
	int fd = open_again(), file, ret;
	struct abi_buf mem = abi_buf(fd, MIB, DRM_SPYRE_BO_DEVICE, 0);
	uint8_t *map;

	memset(mem.map, 0x77, MIB);
	if (drmPrimeHandleToFD(fd, mem.handle, DRM_CLOEXEC | DRM_RDWR, &file))
		tap_bail("PRIME_HANDLE_TO_FD: %s", strerror(errno));
	munmap(mem.map, MIB);
	close(fd);
	tap_ret(rmmod(), -EAGAIN, "rmmod is refused while a dma-buf is open");
	ret = abi_write_file(DRIVER "unbind", device);
	tap_ret(ret, 0, "unbind while a dma-buf is open");
	map = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	/* The card is gone: mmap fails, or the old contents are still there. */
	tap_ok(map == MAP_FAILED || map[MIB - 1] == 0x77,
	       "the dma-buf's memory is intact or unavailable");
	if (map != MAP_FAILED)
		munmap(map, MIB);
	tap_ret(rmmod(), -EAGAIN, "rmmod is still refused");
	tap_ret(abi_write_file(DRIVER "bind", device), 0,
		"bind while a dma-buf from before is open");
	close(file);
	check_alive("a dma-buf of a card that went");
}

static void test_many(void)
{
	int files[FILES], i, j, created = 0, submitted = 0, stuck = 0, fd;
	struct rlimit limit = { 4096, 4096 };
	struct drm_spyre_cb cb = abi_cb_timestamp();
	struct abi_queue q[FILES];
	uint32_t id;

	setrlimit(RLIMIT_NOFILE, &limit);
	for (i = 0; i < FILES; i++) {
		files[i] = open_again();
		q[i] = (struct abi_queue){ .fd = files[i], .syncobj = abi_syncobj(files[i]) };
		for (j = 0; j < QUEUES; j++) {
			created += !abi_queue_create(files[i], j & 1, 60000, &id);
			q[i].id = id;
			submitted += !abi_submit(&q[i], &cb, 1, NULL);
		}
	}
	tap_eq(created, FILES * QUEUES, "%d files of %d queues", FILES, QUEUES);
	tap_eq(submitted, FILES * QUEUES, "each queue has a job");
	for (i = 0; i < FILES; i++)
		for (j = 1; j <= QUEUES; j++)
			stuck += abi_wait_point(files[i], q[i].syncobj, j, 60000) != 0;
	tap_eq(stuck, 0, "each job is done");
	for (i = 0; i < FILES; i++)
		close(files[i]);
	fd = open_again();
	tap_ok(abi_memory_settles(fd, 0), "all memory is back");
	close(fd);
}

int main(void)
{
	const char *env = getenv("ABI_ROUNDS");
	unsigned int rounds = env ? strtoul(env, NULL, 0) : 8;
	char node[PATH_MAX], device[NAME_MAX];

	if (!abi_find(node, sizeof(node), device, sizeof(device)))
		tap_skip_all("no accel node of spyre_vdev");
	if (getuid())
		tap_skip_all("unloading needs root");
	test_live_fence(false);
	test_live_fence(true);
	test_live_dmabuf(device);
	test_rmmod(rounds);
	test_unbind(device, rounds);
	test_reset(rounds);
	test_many();
	return tap_done();
}
