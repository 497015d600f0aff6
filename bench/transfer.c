// SPDX-License-Identifier: MIT
/*
 * Bytes per second to and from device memory, against memcpy between two
 * buffers of the process: by an mmap of the BO, by the DMA engine, and what
 * all processes together get when there are 1 to 32.
 */
#define _GNU_SOURCE
#include "bench/device.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xf86drm.h>

#include <uapi/drm/spyre_accel.h>

#define BYTES (16u << 20)

struct transfer {
	struct bench_device device;
	spyre_devptr address;
	int fd;
	char *mapped, *host, *other, *pinned;
};

static double run_memcpy(void *state)
{
	struct transfer *t = state;
	const double start = bench_now();

	memcpy(t->other, t->host, BYTES);
	return bench_now() - start;
}

static double run_mmap_write(void *state)
{
	struct transfer *t = state;
	const double start = bench_now();

	memcpy(t->mapped, t->host, BYTES);
	return bench_now() - start;
}

static double run_mmap_read(void *state)
{
	struct transfer *t = state;
	const double start = bench_now();

	memcpy(t->other, t->mapped, BYTES);
	return bench_now() - start;
}

static double dma(spyre_status status, double start)
{
	return bench_failed(status, "copying") ? -1 : bench_now() - start;
}

static double run_dma_in(void *state)
{
	struct transfer *t = state;
	const double start = bench_now();

	return dma(spyre_memcpy_h2d(t->device.context, t->address, t->host, BYTES), start);
}

static double run_dma_out(void *state)
{
	struct transfer *t = state;
	const double start = bench_now();

	return dma(spyre_memcpy_d2h(t->device.context, t->other, t->address, BYTES), start);
}

static double run_dma_pinned(void *state)
{
	struct transfer *t = state;
	const double start = bench_now();

	return dma(spyre_memcpy_h2d(t->device.context, t->address, t->pinned, BYTES), start);
}

static bool map_device(struct transfer *t, const char *node)
{
	struct drm_spyre_bo_create create = { .size = BYTES, .flags = DRM_SPYRE_BO_DEVICE };
	struct drm_spyre_bo_mmap_offset offset = { 0 };

	t->fd = open(node, O_RDWR | O_CLOEXEC);
	if (t->fd >= 0 && !drmIoctl(t->fd, DRM_IOCTL_SPYRE_BO_CREATE, &create)) {
		offset.handle = create.handle;
		if (!drmIoctl(t->fd, DRM_IOCTL_SPYRE_BO_MMAP_OFFSET, &offset)) {
			t->mapped = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, t->fd,
					 (off_t)offset.offset);
			if (t->mapped != MAP_FAILED)
				return true;
		}
	}
	fprintf(stderr, "spyre-bench: cannot map memory of %s: %s\n", node, strerror(errno));
	return false;
}

static bool prepare(struct transfer *t, const char *node)
{
	void *pinned;

	t->host = malloc(BYTES);
	t->other = malloc(BYTES);
	if (!t->host || !t->other || !map_device(t, node) || !bench_device_open(&t->device))
		return false;
	if (bench_failed(spyre_mem_alloc(t->device.context, BYTES, &t->address), "allocating") ||
	    bench_failed(spyre_host_alloc(t->device.context, BYTES, &pinned), "pinning"))
		return false;
	t->pinned = pinned;
	memset(t->host, 1, BYTES);
	memset(t->other, 2, BYTES);
	memset(t->pinned, 3, BYTES);
	return true;
}

bool bench_transfer(struct bench_report *report, const struct bench_options *options)
{
	static const struct {
		const char *name;
		double (*run)(void *state);
	} kind[] = {
		{ "VM: write of 16 MiB by mmap", run_mmap_write },
		{ "VM: read of 16 MiB by mmap", run_mmap_read },
		{ "VM: DMA of 16 MiB to the device", run_dma_in },
		{ "VM: DMA of 16 MiB to the host", run_dma_out },
		{ "VM: DMA of 16 MiB, pinned", run_dma_pinned },
	};
	struct transfer t = { .fd = -1 };
	bool ok = prepare(&t, options->node);

	for (size_t i = 0; ok && i < sizeof(kind) / sizeof(kind[0]); i++) {
		const struct bench_pair pair = { kind[i].run, run_memcpy, &t, 0 };
		struct bench_result result = { .unit = "GB/s", .peer = "memcpy in the guest" };

		if (!bench_wanted(options, kind[i].name))
			continue;
		snprintf(result.name, sizeof(result.name), "%s", kind[i].name);
		ok = bench_interleave(&pair, options->samples, &result);
		if (ok)
			bench_add_rate(report, &result, BYTES / 1e9);
	}
	if (t.device.context)
		bench_device_close(&t.device);
	if (t.mapped && t.mapped != MAP_FAILED)
		munmap(t.mapped, BYTES);
	if (t.fd >= 0)
		close(t.fd);
	free(t.host);
	free(t.other);
	return ok;
}

/* --- 1 to 32 processes --- */

#define OPERATIONS 200
#define MAX_PROCESSES 32

struct clients {
	int count;
	/* A byte starts each; a byte from each says that it is done. */
	int start[MAX_PROCESSES], ready[2];
	pid_t pid[MAX_PROCESSES];
};

/* Fills and waits, as often as it is told to; ends with the pipe. */
static int member(struct clients *clients, int start)
{
	struct bench_device device;
	spyre_devptr address;
	char byte = 0;

	if (!bench_device_open(&device) ||
	    bench_failed(spyre_mem_alloc(device.context, 1 << 20, &address), "allocating"))
		return 1;
	do {
		if (write(clients->ready[1], &byte, 1) != 1)
			break;
		if (read(start, &byte, 1) != 1)
			break;
		for (int i = 0; i < OPERATIONS; i++)
			if (spyre_memset_async(device.stream, address, &byte, 1, 4096) ||
			    spyre_stream_synchronize(device.stream))
				return 1;
	} while (true);
	bench_device_close(&device);
	return 0;
}

static bool await(struct clients *clients)
{
	char byte[MAX_PROCESSES];
	int got = 0;

	while (got < clients->count) {
		ssize_t n = read(clients->ready[0], byte, (size_t)(clients->count - got));

		if (n <= 0)
			return false;
		got += (int)n;
	}
	return true;
}

static bool gather(struct clients *clients, int count)
{
	if (pipe(clients->ready))
		return false;
	for (int i = 0; i < count; i++) {
		int start[2];
		pid_t pid;

		if (pipe2(start, O_CLOEXEC))
			return false;
		pid = fork();
		if (pid < 0)
			return false;
		if (!pid) {
			/* An open end here would keep this client or an earlier one from ending. */
			close(start[1]);
			for (int k = 0; k < i; k++)
				close(clients->start[k]);
			_exit(member(clients, start[0]));
		}
		close(start[0]);
		clients->start[i] = start[1];
		clients->pid[clients->count++] = pid;
	}
	close(clients->ready[1]);
	return await(clients);
}

static void disperse(struct clients *clients)
{
	for (int i = 0; i < clients->count; i++)
		close(clients->start[i]);
	for (int i = 0; i < clients->count; i++)
		waitpid(clients->pid[i], NULL, 0);
	close(clients->ready[0]);
}

/* Seconds per operation of all together. */
static double run_clients(void *state)
{
	struct clients *clients = state;
	const double start = bench_now();
	const char go = 0;

	for (int i = 0; i < clients->count; i++)
		if (write(clients->start[i], &go, 1) != 1)
			return -1;
	if (!await(clients))
		return -1;
	return (bench_now() - start) / OPERATIONS / clients->count;
}

struct pair_state {
	struct clients one, many;
};

static double run_one(void *state)
{
	return run_clients(&((struct pair_state *)state)->one);
}

static double run_many(void *state)
{
	return run_clients(&((struct pair_state *)state)->many);
}

bool bench_processes(struct bench_report *report, const struct bench_options *options)
{
	static const int counts[] = { 2, 4, 8, 16, 32 };
	bool ok = true;

	for (size_t i = 0; ok && i < sizeof(counts) / sizeof(counts[0]); i++) {
		struct pair_state state = { 0 };
		const struct bench_pair pair = { run_many, run_one, &state, 0 };
		struct bench_result result = { .unit = "fills/s", .peer = "1 process" };

		snprintf(result.name, sizeof(result.name), "VM: %d processes, all together",
			 counts[i]);
		if (!bench_wanted(options, result.name))
			continue;
		/* The many end first: they have the other's pipe, too. */
		ok = gather(&state.one, 1);
		if (ok) {
			ok = gather(&state.many, counts[i]) &&
			     bench_interleave(&pair, options->samples, &result);
			disperse(&state.many);
			disperse(&state.one);
		}
		if (ok)
			bench_add_rate(report, &result, 1);
	}
	return ok;
}
