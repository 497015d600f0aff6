/* SPDX-License-Identifier: MIT */
/*
 * For each kind of object and of pending work: the kernel memory that the machine
 * uses for it is charged to its creator's group, except for allocations of DRM core
 * and vmap(), which docs/uapi.md lists.
 */
#include "memcg.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef ABI_URING
#include <liburing.h>
#endif
#include <xf86drm.h>

#include "fence.h"
#include "memory.h"
#include "prog.h"

#define VA (1024 * MIB)
#define DEVICE_BYTES (2 * MIB)
#define OWN_BYTES (4 * MIB)
#define CBS 256u
#define POINTS 61u		/* with the queue's own and two waits this is the maximum of
				 * syncs */

/* The objects of the process in the group: a file of the card and the needs of its work. */
struct maker {
	int fd;
	struct abi_queue q;
	uint32_t gate;		/* binary syncobj whose fence does not signal */
	uint32_t other;		/* the same, of another fence context */
	uint32_t timeline[POINTS];
	struct abi_buf dev, host;
	uint32_t program;
	struct drm_spyre_cb cbs[CBS];
	uint8_t *own;		/* OWN_BYTES of the process */
};

struct kind {
	const char *name;
	uint32_t rounds;
	/* creates the control blocks of a round; NULL if @make does everything */
	void (*fill)(struct maker *m);
	int (*make)(struct maker *m, uint32_t round);
	uint32_t cbs;
	/* usage may be this many quarters of the charge */
	uint32_t quarters;
	/* not only in slabs: all kernel memory is compared */
	bool tables;
};

/* --- objects that rounds create --- */
static struct drm_spyre_dma stick_down, own_down;

static void fill_exec(struct maker *m)
{
	const uint64_t args[3] = { VA, VA + PAGE, VA + 2 * PAGE };
	uint32_t i;

	for (i = 0; i < CBS; i++)
		m->cbs[i] = abi_cb_exec(m->program, args, 3);
	/* The blocks point to it, so it must remain. */
	m->cbs[0].args = PTR(memcpy(m->own, args, sizeof(args)));
	for (i = 1; i < CBS; i++)
		m->cbs[i].args = m->cbs[0].args;
}

static void fill_dma_bo(struct maker *m)
{
	uint32_t i;

	for (i = 0; i < CBS; i++)
		m->cbs[i] = abi_cb_dma_bo(&stick_down, VA, m->host.handle, 0, STICK);
}

static void fill_dma_page(struct maker *m)
{
	uint32_t i;

	for (i = 0; i < CBS; i++)
		m->cbs[i] = abi_cb_dma(&stick_down, VA, m->own + i * PAGE, STICK);
}

static void fill_dma_wide(struct maker *m)
{
	uint32_t i;

	for (i = 0; i < CBS; i++)
		m->cbs[i] = abi_cb_dma(&own_down, VA, m->own, DEVICE_BYTES);
}

static void fill_fill(struct maker *m)
{
	uint32_t i;

	for (i = 0; i < CBS; i++)
		m->cbs[i] = abi_cb_fill32(VA, STICK, i);
}

static void fill_copy(struct maker *m)
{
	uint32_t i;

	for (i = 0; i < CBS; i++)
		m->cbs[i] = abi_cb_copy(VA, VA + PAGE, STICK);
}

static void fill_timestamp(struct maker *m)
{
	uint32_t i;

	for (i = 0; i < CBS; i++)
		m->cbs[i] = abi_cb_timestamp();
}

/*
 * A job of one block that signals a point of each of POINTS timelines, since adding
 * to one timeline takes time linear in its length, and waits for two fences.
 */
static int make_points(struct maker *m, uint32_t round)
{
	struct drm_spyre_sync syncs[POINTS + 2];
	struct drm_spyre_cb cb = abi_cb_timestamp();
	struct drm_spyre_submit args = {
		.queue_id = m->q.id,
		.cbs = { .stride = sizeof(cb), .count = 1, .array = PTR(&cb) },
		.syncs = { .stride = sizeof(*syncs), .count = POINTS + 2, .array = PTR(syncs) },
	};
	uint32_t i;

	for (i = 0; i < POINTS; i++)
		syncs[i] = abi_sync_signal(m->timeline[i], round + 1);
	syncs[POINTS] = abi_sync_wait(m->gate, 0);
	syncs[POINTS + 1] = abi_sync_wait(m->other, 0);
	return abi_ioctl(m->fd, DRM_IOCTL_SPYRE_SUBMIT, &args);
}

static int make_waits(struct maker *m, uint32_t round)
{
	struct drm_spyre_cb cb = abi_cb_timestamp();

	(void)round;
	return abi_submit_sync(&m->q, &cb, 1, abi_sync_wait(m->gate, 0),
			       abi_sync_wait(m->other, 0));
}

/* Maps every second page, so that each is a separate mapping. */
static int make_mapping(struct maker *m, uint32_t round)
{
	return abi_bind(m->fd, m->dev.handle, 0, 2 * VA + round * 2 * PAGE, PAGE, 0);
}

static int make_async(struct maker *m, uint32_t round)
{
	struct drm_spyre_vm_bind_op ops[8];
	struct drm_spyre_sync syncs[2] = {
		abi_sync_wait(m->gate, 0), abi_sync_signal(m->timeline[0], round + 1),
	};
	struct drm_spyre_vm_bind args = {
		.flags = DRM_SPYRE_VM_BIND_ASYNC,
		.ops = { .stride = sizeof(*ops), .count = 8, .array = PTR(ops) },
		.syncs = { .stride = sizeof(*syncs), .count = 2, .array = PTR(syncs) },
	};
	uint32_t i;

	for (i = 0; i < 8; i++)
		ops[i] = (struct drm_spyre_vm_bind_op){
			.op = DRM_SPYRE_VM_MAP, .handle = m->dev.handle, .range = PAGE,
			.va = 2 * VA + (round * 8 + i) * 2 * PAGE,
		};
	return abi_ioctl(m->fd, DRM_IOCTL_SPYRE_VM_BIND, &args);
}

static int make_bo(struct maker *m, uint32_t round)
{
	uint32_t handle;

	return abi_bo(m->fd, PAGE, round & 1 ? DRM_SPYRE_BO_HOST : DRM_SPYRE_BO_DEVICE, &handle);
}

static int make_program(struct maker *m, uint32_t round)
{
	struct abi_prog prog = abi_prog_add(1, 4);

	(void)round;
	abi_prog_create(m->fd, &prog);
	return 0;
}

/* Creates 200 per file, then continues with another file. */
static int make_queue(struct maker *m, uint32_t round)
{
	static int fd;
	uint32_t id;

	if (round % 200 == 0)
		fd = abi_open();
	(void)m;
	return abi_queue_create(fd, DRM_SPYRE_PRIORITY_LOW, 0, &id);
}

/* Files without queues. */
static int make_file(struct maker *m, uint32_t round)
{
	static char node[PATH_MAX], device[NAME_MAX];

	(void)m;
	if (!round && !abi_find(node, sizeof(node), device, sizeof(device)))
		return -ENODEV;
	return open(node, O_RDWR | O_CLOEXEC) < 0 ? -errno : 0;
}

#ifdef ABI_URING
/* Commands that wait like other jobs, on the memory that their ring has registered. */
static int make_ring(struct maker *m, uint32_t round)
{
	static struct io_uring ring;
	const struct iovec own = { m->own, OWN_BYTES };
	const struct drm_spyre_submit args = {
		.queue_id = m->q.id,
		.cbs = { .stride = sizeof(m->cbs[0]), .count = CBS, .array = PTR(m->cbs) },
	};
	struct io_uring_sqe *sqe;
	struct io_uring_cqe *cqe;

	if (!round && (io_uring_queue_init(32, &ring, IORING_SETUP_SQE128 | IORING_SETUP_CQE32) ||
		       io_uring_register_buffers(&ring, &own, 1)))
		return -EPROTO;
	sqe = io_uring_get_sqe(&ring);
	if (!sqe)
		return -EAGAIN;
	memset(sqe, 0, 128);
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = m->fd;
	sqe->cmd_op = DRM_SPYRE_URING_SUBMIT;
	sqe->rw_flags = IORING_URING_CMD_FIXED;
	memcpy(sqe->cmd, &args, sizeof(args));
	if (io_uring_submit(&ring) != 1)
		return -EIO;
	/* Only one that failed has completed. */
	return io_uring_peek_cqe(&ring, &cqe) ? 0 : cqe->res;
}
#endif

static const struct kind kinds[] = {
	{ "EXEC", 80, fill_exec, NULL, CBS, 6, false },
	{ "DMA with host BOs", 50, fill_dma_bo, NULL, CBS, 6, false },
	{ "DMA with spans of a page", 25, fill_dma_page, NULL, CBS, 6, false },
	/* Page tables of the spans are as large as their page lists. */
	{ "DMA with wide spans", 16, fill_dma_wide, NULL, CBS, 9, true },
	{ "FILL", 80, fill_fill, NULL, CBS, 6, false },
	{ "COPY", 80, fill_copy, NULL, CBS, 6, false },
	{ "TIMESTAMP", 80, fill_timestamp, NULL, CBS, 6, false },
	{ "job of one block", 2500, fill_timestamp, NULL, 1, 6, false },
	{ "job that waits for two fences", 3000, NULL, make_waits, 0, 6, false },
	{ "job with 61 timeline points", 300, NULL, make_points, 0, 6, false },
	{ "mapping", 10000, NULL, make_mapping, 0, 6, false },
	{ "asynchronous bind", 500, NULL, make_async, 0, 6, false },
	{ "BO", 1500, NULL, make_bo, 0, 6, false },
	{ "program", 2500, NULL, make_program, 0, 6, false },
	{ "queue", 600, NULL, make_queue, 0, 6, false },
	{ "open file", 800, NULL, make_file, 0, 6, false },
#ifdef ABI_URING
	{ "ring command with a registered buffer", 16, fill_dma_wide, make_ring, 0, 9, true },
#endif
};

/* --- the process in the group --- */
static struct maker maker_make(int socket)
{
	struct abi_prog prog = abi_prog_add(1, 4);
	struct maker m = { .fd = abi_open() };
	struct drm_spyre_cb cb = abi_cb_timestamp();
	struct abi_queue second;
	int file = memcg_receive_fd(socket);
	uint32_t i;

	m.q = abi_queue(m.fd, 60000);
	m.gate = abi_syncobj(m.fd);
	m.other = abi_syncobj(m.fd);
	for (i = 0; i < POINTS; i++)
		m.timeline[i] = abi_syncobj(m.fd);
	m.dev = abi_buf(m.fd, DEVICE_BYTES, DRM_SPYRE_BO_DEVICE, VA);
	m.host = abi_buf(m.fd, PAGE, DRM_SPYRE_BO_HOST, 0);
	m.program = abi_prog_create(m.fd, &prog);
	m.own = mmap(NULL, OWN_BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (m.own == MAP_FAILED || drmSyncobjImportSyncFile(m.fd, m.gate, file))
		_exit(97);
	close(file);
	second = abi_queue(m.fd, 60000);
	/* All later work on @q waits behind its first job, which waits for the gate. */
	if (abi_submit_sync(&second, &cb, 1, abi_sync_wait(m.gate, 0),
			    abi_sync_signal(m.other, 0)) ||
	    abi_submit_sync(&m.q, &cb, 1, abi_sync_wait(m.gate, 0), (struct drm_spyre_sync){ 0 }))
		_exit(96);
	memset(m.dev.map, 0, DEVICE_BYTES);
	return m;
}

/* Exits with the number of rounds, which the parent reads. */
static void make_all(const struct kind *kind, int socket)
{
	static struct maker m;
	uint32_t i;
	char byte;
	int ret = 0;

	memcg_join();
	m = maker_make(socket);
	if (kind->fill)
		kind->fill(&m);
	/* One of each comes first, to allocate caches, lists and page tables. */
	for (i = 0; i <= kind->rounds && !ret; i++) {
		ret = kind->make ? kind->make(&m, i) : abi_submit(&m.q, m.cbs, kind->cbs, NULL);
		if (i == 0 && (write(socket, "1", 1) != 1 || read(socket, &byte, 1) != 1))
			_exit(95);
	}
	if (write(socket, &ret, sizeof(ret)) != sizeof(ret) || read(socket, &byte, 1) < 0)
		_exit(94);
	_exit(0);
}

/* --- outside --- */
struct usage {
	int64_t slab;		/* unreclaimable slabs of the machine: exact */
	int64_t all;		/* its kernel memory, plus some MiB of free pages in lists */
	int64_t charged;	/* of the group */
};

static int64_t meminfo(const char *key)
{
	return (int64_t)memory_key("/proc/meminfo", key) * 1024;
}

static struct usage usage_now(void)
{
	struct usage u = {
		.slab = meminfo("SUnreclaim"),
		.all = meminfo("MemTotal") - meminfo("MemFree") - meminfo("Buffers") -
		       meminfo("Cached") - meminfo("AnonPages"),
		.charged = (int64_t)memcg_stat("kernel"),
	};

	return u;
}

/*
 * Waits until usage has not fallen for half a second: RCU frees the memory of the previous
 * kind later, and in batches.
 */
static struct usage usage_settled(void)
{
	struct usage before, now = usage_now();
	unsigned int i, still = 0;

	for (i = 0; i < 300 && still < 5; i++) {
		before = now;
		abi_sleep_ms(100);
		now = usage_now();
		if (now.slab + 64 * 1024 >= before.slab &&
		    now.charged + 64 * 1024 >= before.charged)
			still++;
		else
			still = 0;
	}
	return now;
}

/* KASAN's quarantine and kmemleak's objects are slabs that are charged to no group. */
static bool kernel_checks_itself(void)
{
	FILE *file = fopen("/proc/kallsyms", "r");
	char line[256];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file))
		found = strstr(line, " kasan_report") || strstr(line, " kmemleak_alloc");
	if (file)
		fclose(file);
	return found;
}

static void one_kind(const struct kind *kind, bool exact)
{
	struct abi_gate gate = abi_gate();
	struct usage before, after;
	int64_t slab, all, charged, bound;
	int socket, file, status = 0, ret = -EPROTO;
	pid_t pid = abi_fork(&socket);
	char byte;

	if (!pid)
		make_all(kind, socket);
	file = abi_sync_file(gate.fd, gate.syncobj);
	memcg_send_fd(socket, file);
	close(file);
	if (read(socket, &byte, 1) != 1)
		tap_bail("charge: %s: the process in the group ended early", kind->name);
	before = usage_settled();
	if (write(socket, "1", 1) != 1 || read(socket, &ret, sizeof(ret)) != sizeof(ret))
		tap_note("charge: %s: the process in the group is gone", kind->name);
	after = usage_now();
	close(socket);
	waitpid(pid, &status, 0);
	abi_gate_free(&gate);

	slab = after.slab - before.slab;
	all = after.all - before.all;
	charged = after.charged - before.charged;
	bound = charged * kind->quarters / 4;
	tap_ret(ret, 0, "charge: creating %u of %s", kind->rounds, kind->name);
	/* Per-processor lists of free pages vary by some MiB. */
	if (!exact) {
		tap_skip("a debug kernel has additional slabs and frees late",
			 "charge: %s", kind->name);
		return;
	}
	tap_ok(charged > (int64_t)MIB / 4 && slab <= bound + (int64_t)MIB &&
	       (!kind->tables || all <= bound + 8 * (int64_t)MIB),
	       "charge: %s: %lld KiB charged, slabs %lld KiB, in all %lld KiB", kind->name,
	       (long long)charged >> 10, (long long)slab >> 10, (long long)all >> 10);
}

void memcg_test_charge(void)
{
	bool exact = !kernel_checks_itself();
	uint32_t i;

	stick_down = abi_dma_raw(DRM_SPYRE_DMA_H2D, STICK);
	own_down = abi_dma_raw(DRM_SPYRE_DMA_H2D, DEVICE_BYTES);
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		one_kind(&kinds[i], exact);
}

/* --- pending work, until the group is full --- */
static void fill_group(int socket, int *report)
{
	static struct maker m;
	int ret;

	memcg_join();
	m = maker_make(socket);
	fill_fill(&m);
	do
		ret = abi_submit(&m.q, m.cbs, CBS, NULL);
	while (!ret);
	*report = ret;
	_exit(0);
}

void memcg_test_jobs(int fd)
{
	int *report = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	uint64_t kills = memcg_kills(), used = abi_memory(fd).used;
	int socket, file, status = 0;
	struct abi_gate gate;
	pid_t pid;

	gate = abi_gate();
	if (report == MAP_FAILED)
		tap_bail("mmap: %s", strerror(errno));
	pid = abi_fork(&socket);
	if (!pid)
		fill_group(socket, report);
	file = abi_sync_file(gate.fd, gate.syncobj);
	memcg_send_fd(socket, file);
	close(file);
	close(socket);
	waitpid(pid, &status, 0);
	abi_gate_free(&gate);
	tap_ok(WIFEXITED(status) && !WEXITSTATUS(status),
	       "jobs: a process whose waiting jobs fill its group survives (status %#x)", status);
	tap_ret(*report, -ENOMEM, "jobs: SUBMIT reports that memory is exhausted");
	tap_eq(memcg_kills(), kills, "jobs: the OOM killer was not called");
	tap_ok(abi_memory_settles(fd, used), "jobs: all device memory is back");
	munmap(report, PAGE);
}

/* --- open files with a queue, until the group is full --- */
#define MANY_FILES 200		/* of 3 MiB each, many more than the limit allows */

struct files_report {
	uint32_t files;
	int full, again;
};

static int open_with_queue(const char *node, int *fd)
{
	uint32_t id;
	int ret;

	*fd = open(node, O_RDWR | O_CLOEXEC);
	if (*fd < 0)
		return -errno;
	ret = abi_queue_create(*fd, DRM_SPYRE_PRIORITY_LOW, 0, &id);
	if (ret)
		close(*fd);
	return ret;
}

static void fill_group_with_files(struct files_report *report)
{
	char node[PATH_MAX], device[NAME_MAX];
	int fd, first = -1, i;

	memcg_join();
	if (!abi_find(node, sizeof(node), device, sizeof(device)))
		_exit(97);
	while (!report->full && report->files < MANY_FILES) {
		report->full = open_with_queue(node, &fd);
		report->files += !report->full;
		if (first < 0)
			first = fd;
	}
	/* One more is possible for each that is closed, as soon as its memory is back. */
	close(first);
	for (i = 0; i < 500; i++) {
		report->again = open_with_queue(node, &fd);
		if (report->again != -ENOMEM)
			break;
		abi_sleep_ms(10);
	}
	_exit(0);
}

void memcg_test_files(int fd)
{
	struct files_report *report = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
					   MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	uint64_t kills = memcg_kills(), used = abi_memory(fd).used;
	int status = 0;
	pid_t pid;

	if (report == MAP_FAILED)
		tap_bail("mmap: %s", strerror(errno));
	pid = fork();
	if (!pid)
		fill_group_with_files(report);
	waitpid(pid, &status, 0);
	tap_ok(WIFEXITED(status) && !WEXITSTATUS(status),
	       "files: a process whose open files fill its group survives (status %#x)", status);
	tap_ret(report->full, -ENOMEM, "files: open or QUEUE_CREATE reports that");
	tap_ok(report->files > 1, "files: %u files with a queue exist then", report->files);
	tap_ret(report->again, 0, "files: another one can be opened once one is closed");
	tap_eq(memcg_kills(), kills, "files: the OOM killer was not called");
	tap_ok(abi_memory_settles(fd, used), "files: all device memory is back");
	munmap(report, PAGE);
}
