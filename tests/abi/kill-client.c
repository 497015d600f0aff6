/* SPDX-License-Identifier: MIT */
/* The client process that abi-kill kills. */
#include "config.h"

#include "kill.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xf86drm.h>

#include "prog.h"

#ifdef ABI_URING
#include <liburing.h>
#endif

#define STICKS 64u
#define BYTES (STICKS * STICK)
#define BO_BYTES (64 * 1024u)
#define QUEUES 3
#define VA MIB

struct life {
	int fd;
	unsigned int seed;
	int lent_file;
	uint32_t bo, host, lent, syncobj, program[2], queue[QUEUES];
	uint8_t *map, *user;
#ifdef ABI_URING
	struct io_uring ring;
	bool have_ring;
	unsigned int in_flight;
#endif
};

static uint32_t pick(struct life *l, uint32_t n)
{
	l->seed = l->seed * 1664525u + 1013904223u;
	return (l->seed >> 8) % n;
}

static void must(int ret, const char *what)
{
	if (!ret)
		return;
	fprintf(stderr, "# %s: %s\n", what, strerror(-ret));
	_exit(1);
}

static int load(struct life *l, const struct abi_prog *prog, uint32_t *handle)
{
	struct drm_spyre_program_create args;
	uint64_t size;
	void *image = abi_prog_encode(prog, &size);
	int ret = abi_prog_load(l->fd, image, size, &args);

	*handle = args.handle;
	free(image);
	return ret;
}

static void be_born(struct life *l, const struct kill_client *client)
{
	struct abi_prog prog = abi_prog_add(1, STICKS);
	char node[PATH_MAX], device[NAME_MAX];
	int i;

	l->seed = client->seed;
	l->lent_file = client->lent_file;
	if (!abi_find(node, sizeof(node), device, sizeof(device)))
		must(-ENODEV, "no node");
	l->fd = open(node, O_RDWR | O_CLOEXEC);
	must(l->fd < 0 ? -errno : 0, "open");
	must(drmSyncobjFDToHandle(l->fd, client->syncobj_file, &l->syncobj) ? -errno : 0,
	     "SYNCOBJ_FD_TO_HANDLE");
	must(abi_bo(l->fd, BO_BYTES, DRM_SPYRE_BO_DEVICE, &l->bo), "BO_CREATE");
	must(abi_bo(l->fd, BO_BYTES, DRM_SPYRE_BO_HOST, &l->host), "BO_CREATE");
	must(abi_bind(l->fd, l->bo, 0, VA, BO_BYTES, 0), "VM_BIND");
	must(load(l, &prog, &l->program[0]), "PROGRAM_CREATE");
	prog.num_loops = 1;
	prog.loops[0] = 50;
	must(load(l, &prog, &l->program[1]), "PROGRAM_CREATE");
	for (i = 0; i < QUEUES; i++)
		must(abi_queue_create(l->fd, abi_may_be_high() ? i & 1 : 0, 60000,
				      &l->queue[i]), "QUEUE_CREATE");
	l->user = mmap(NULL, BO_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
#ifdef ABI_URING
	l->have_ring = !io_uring_queue_init(16, &l->ring, IORING_SETUP_SQE128);
#endif
}

static uint32_t make_cbs(struct life *l, struct drm_spyre_cb *cbs, struct drm_spyre_dma *dma)
{
	static const uint64_t args[3] = { VA, VA + BYTES, VA + 2 * BYTES };
	uint32_t n = 1 + pick(l, 4), i;

	*dma = abi_dma_raw(pick(l, 2), BYTES);
	for (i = 0; i < n; i++) {
		switch (pick(l, 5)) {
		case 0:
			cbs[i] = abi_cb_exec(l->program[pick(l, 2)], args, 3);
			break;
		case 1:
			cbs[i] = abi_cb_dma(dma, VA, l->user + pick(l, BYTES), BYTES);
			break;
		case 2:
			cbs[i] = abi_cb_dma_bo(dma, VA, l->host, 0, BYTES);
			break;
		case 3:
			cbs[i] = abi_cb_copy(VA + BYTES, VA, BYTES);
			break;
		default:
			cbs[i] = abi_cb_fill32(VA, 4 * (1 + pick(l, 4000)), pick(l, 1000));
		}
	}
	return n;
}

#ifdef ABI_URING
/* Leaves some in flight, so that the kill happens with work in flight. */
static void submit_uring(struct life *l, const struct drm_spyre_submit *args)
{
	struct io_uring_sqe *sqe = io_uring_get_sqe(&l->ring);
	struct io_uring_cqe *cqe;

	if (!sqe)
		_exit(2);
	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = l->fd;
	sqe->cmd_op = DRM_SPYRE_URING_SUBMIT;
	memcpy(sqe->cmd, args, sizeof(*args));
	io_uring_submit(&l->ring);
	for (l->in_flight++; l->in_flight > 8; l->in_flight--) {
		if (io_uring_wait_cqe(&l->ring, &cqe))
			break;
		must(cqe->res, "uring_cmd");
		io_uring_cqe_seen(&l->ring, cqe);
	}
}
#endif

static void submit(struct life *l)
{
	struct drm_spyre_sync done = { .handle = l->syncobj, .flags = DRM_SPYRE_SYNC_SIGNAL };
	struct drm_spyre_cb cbs[4];
	struct drm_spyre_dma dma;
	struct drm_spyre_submit args = {
		.queue_id = l->queue[pick(l, QUEUES)],
		.cbs = { .stride = sizeof(cbs[0]), .count = make_cbs(l, cbs, &dma),
			 .array = PTR(cbs) },
		.syncs = { .stride = sizeof(done), .count = 1, .array = PTR(&done) },
		.result_handle = l->host,
		.result_offset = sizeof(struct drm_spyre_cb_result) * pick(l, 64),
	};

#ifdef ABI_URING
	if (l->have_ring && pick(l, 2)) {
		submit_uring(l, &args);
		return;
	}
#endif
	must(abi_ioctl(l->fd, DRM_IOCTL_SPYRE_SUBMIT, &args), "SUBMIT");
	if (!pick(l, 8))
		must(abi_wait_point(l->fd, l->syncobj, 0, 60000), "wait");
}

/* Reads a buffer that another process exported, through its own mapping. */
static void borrow(struct life *l)
{
	uint8_t *p;

	must(drmPrimeFDToHandle(l->fd, l->lent_file, &l->lent) ? -errno : 0,
	     "PRIME_FD_TO_HANDLE");
	p = abi_mmap(l->fd, l->lent, BO_BYTES);
	must(p ? 0 : -errno, "mmap");
	must(p[pick(l, BO_BYTES)] != 0x5a ? -EIO : 0, "what another process lent");
	must(abi_bind(l->fd, l->lent, 0, VA + MIB, BO_BYTES, DRM_SPYRE_VM_MAP_READONLY), "VM_BIND");
	munmap(p, BO_BYTES);
	if (pick(l, 2))
		must(abi_unbind(l->fd, VA + MIB, BO_BYTES), "VM_BIND");
	abi_gem_close(l->fd, l->lent);
}

static void lend(struct life *l)
{
	int file;

	must(drmPrimeHandleToFD(l->fd, l->bo, DRM_CLOEXEC | DRM_RDWR, &file) ? -errno : 0,
	     "PRIME_HANDLE_TO_FD");
	if (pick(l, 2))
		close(file);
	else
		dup2(file, 100), close(file);
}

static void map(struct life *l)
{
	if (l->map)
		munmap(l->map, BO_BYTES);
	l->map = abi_mmap(l->fd, l->bo, BO_BYTES);
	must(l->map ? 0 : -errno, "mmap");
	memset(l->map + pick(l, 8) * PAGE, 1, PAGE);
}

static void rebind(struct life *l)
{
	must(abi_unbind(l->fd, VA, PAGE * (1 + pick(l, 6))), "VM_BIND");
	must(abi_bind(l->fd, l->bo, 0, VA, BO_BYTES, 0), "VM_BIND");
}

static void requeue(struct life *l)
{
	uint32_t *id = &l->queue[pick(l, QUEUES)];

#ifdef ABI_URING
	struct io_uring_cqe *cqe;

	/* Destroying a queue cancels its work. */
	for (; l->in_flight; l->in_flight--) {
		if (io_uring_wait_cqe(&l->ring, &cqe))
			break;
		must(cqe->res, "uring_cmd");
		io_uring_cqe_seen(&l->ring, cqe);
	}
#endif
	must(abi_queue_destroy(l->fd, *id), "QUEUE_DESTROY");
	must(abi_queue_create(l->fd, abi_may_be_high() ? pick(l, 2) : 0, 0, id), "QUEUE_CREATE");
}

void kill_client_run(const struct kill_client *client)
{
	struct life l = { .fd = -1 };

	be_born(&l, client);
	for (;;) {
		switch (pick(&l, 16)) {
		case 0:
			borrow(&l);
			break;
		case 1:
			lend(&l);
			break;
		case 2:
			map(&l);
			break;
		case 3:
			rebind(&l);
			break;
		case 4:
			requeue(&l);
			break;
		default:
			submit(&l);
		}
	}
}
