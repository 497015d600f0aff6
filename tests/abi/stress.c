// SPDX-License-Identifier: MIT
/*
 * Many processes do at random what a client may do, and die at random moments.
 *
 *	stress [SECONDS [SEED [tolerant]]]
 *
 * tolerant: somebody unplugs the card meanwhile, so calls may fail.
 */
#include "tests/abi/abi.h"

#define PROCESSES 4
#define QUEUES 6
#define VA PAGE
#define STICKS 64u
#define BYTES (STICKS * 128u)

static unsigned int state;
static bool tolerant;

static uint32_t pick(uint32_t n)
{
	state = state * 1664525u + 1013904223u;
	return (state >> 8) % n;
}

/* In a child: a call that must work, unless the card may be gone. */
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

static void client_open(struct client *c)
{
	const char *path = getenv("SPYRE_NODE");
	struct drm_spyre_bo_create bo = { .size = 3 * BYTES, .flags = DRM_SPYRE_BO_DEVICE };
	struct drm_spyre_bo_create host = { .size = 4 * PAGE, .flags = DRM_SPYRE_BO_HOST };
	struct image image[3];
	int i;

	memset(c, 0, sizeof(*c));
	c->fd = open(path ? path : node_path, O_RDWR | O_CLOEXEC);
	must(c->fd < 0 ? -errno : 0, "open");
	must(call(c->fd, DRM_IOCTL_SPYRE_BO_CREATE, &bo), "BO_CREATE");
	must(call(c->fd, DRM_IOCTL_SPYRE_BO_CREATE, &host), "BO_CREATE");
	c->bo = bo.handle;
	c->host = host.handle;
	must(vm_bind(c->fd, DRM_SPYRE_VM_MAP, 0, c->bo, 0, VA, 3 * BYTES), "VM_BIND");
	image_add(&image[0], STICKS, 1);
	image_add(&image[1], STICKS, 2000);
	image_add_lx(&image[2], STICKS);
	for (i = 0; i < 3; i++) {
		struct drm_spyre_program_create p = {
			.data = (uintptr_t)image[i].bytes, .size = image[i].size,
		};

		must(call(c->fd, DRM_IOCTL_SPYRE_PROGRAM_CREATE, &p), "PROGRAM_CREATE");
		c->program[i] = p.handle;
	}
	for (i = 0; i < QUEUES; i++) {
		struct drm_spyre_queue_create q = { .priority = i & 1, .timeout_ms = 60000 };
		struct drm_syncobj_create s = { 0 };

		must(call(c->fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, &q), "QUEUE_CREATE");
		must(call(c->fd, DRM_IOCTL_SYNCOBJ_CREATE, &s), "SYNCOBJ_CREATE");
		c->queue[i] = q.queue_id;
		c->syncobj[i] = s.handle;
	}
	c->user = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void client_submit(struct client *c)
{
	static const uint64_t args[3] = { VA, VA + BYTES, VA + 2 * BYTES };
	struct drm_spyre_dma dma = {
		.direction = pick(2), .host_format = DRM_SPYRE_FORMAT_IEEE_FP16,
		.device_format = DRM_SPYRE_FORMAT_SEN169_FP16, .num_dims = 2,
		.dim = { { .count = STICKS, .host_stride = 128 },
			 { .count = 64, .host_stride = 2 } },
	};
	struct drm_spyre_cb cbs[6];
	uint32_t queue = pick(QUEUES), other = pick(QUEUES), n = 1 + pick(6), i, syncs = 1;
	struct drm_spyre_sync sync[2] = {
		{ .handle = c->syncobj[queue], .flags = DRM_SPYRE_SYNC_SIGNAL,
		  .point = ++c->point[queue] },
		{ .handle = c->syncobj[other], .point = c->point[other] },
	};

	if (other != queue && c->point[other])
		syncs = 2;
	memset(cbs, 0, sizeof(cbs));
	for (i = 0; i < n; i++) {
		cbs[i].type = 1 + pick(5);
		switch (cbs[i].type) {
		case DRM_SPYRE_CB_EXEC:
			cbs[i].program = c->program[pick(3)];
			cbs[i].num_args = 3;
			cbs[i].args = (uintptr_t)args;
			break;
		case DRM_SPYRE_CB_DMA:
			cbs[i].desc = (uintptr_t)&dma;
			*(dma.direction ? &cbs[i].src : &cbs[i].dst) = VA;
			cbs[i].size = BYTES;
			if (pick(2))
				cbs[i].host_addr = (uintptr_t)c->user + pick(BYTES);
			else
				cbs[i].host_handle = c->host;
			break;
		case DRM_SPYRE_CB_COPY:
			cbs[i].src = VA + pick(BYTES);
			cbs[i].dst = VA + pick(BYTES);
			cbs[i].size = 1 + pick(2 * BYTES);
			break;
		case DRM_SPYRE_CB_FILL:
			cbs[i].dst = VA + pick(BYTES);
			cbs[i].size = 16 * (1 + pick(1000));
			cbs[i].pattern_size = 16;
			break;
		}
	}
	{
		struct drm_spyre_submit s = {
			.queue_id = c->queue[queue],
			.cbs = { .stride = sizeof(cbs[0]), .count = n, .array = (uintptr_t)cbs },
			.syncs = { .stride = sizeof(sync[0]), .count = syncs,
				   .array = (uintptr_t)sync },
			.result_handle = c->host, .result_offset = 64 * pick(32),
		};

		must(call(c->fd, DRM_IOCTL_SPYRE_SUBMIT, &s), "SUBMIT");
	}
	if (c->point[queue] % 16 == 0)
		must(timeline_wait(c->fd, c->syncobj[queue], c->point[queue], 50000), "wait");
}

static void client_requeue(struct client *c)
{
	struct drm_spyre_queue_create q = { .priority = pick(2) };
	uint32_t i = pick(QUEUES);
	struct drm_spyre_queue_destroy d = { .queue_id = c->queue[i] };

	must(call(c->fd, DRM_IOCTL_SPYRE_QUEUE_DESTROY, &d), "QUEUE_DESTROY");
	must(call(c->fd, DRM_IOCTL_SPYRE_QUEUE_CREATE, &q), "QUEUE_CREATE");
	c->queue[i] = q.queue_id;
}

static void client_rebind(struct client *c)
{
	must(vm_bind(c->fd, DRM_SPYRE_VM_UNMAP, 0, 0, 0, VA, PAGE * (1 + pick(6))), "VM_BIND");
	must(vm_bind(c->fd, DRM_SPYRE_VM_MAP, 0, c->bo, 0, VA, 3 * BYTES), "VM_BIND");
}

static void child(uint64_t end, unsigned int seed)
{
	struct client c;
	int i, n;

	state = seed;
	while (now_ns() < end) {
		client_open(&c);
		n = 20 + pick(200);
		for (i = 0; i < n && now_ns() < end; i++) {
			client_submit(&c);
			if (!pick(30))
				client_requeue(&c);
			if (!pick(20))
				client_rebind(&c);
		}
		munmap(c.user, 4 * PAGE);	/* what is pinned stays */
		close(c.fd);
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	uint64_t end = now_ns() + (argc > 1 ? atoi(argv[1]) : 10) * 1000000000ull;
	unsigned int seed = argc > 2 ? strtoul(argv[2], NULL, 0) : 1;
	pid_t pids[PROCESSES] = { 0 };
	int i, status, killed = 0, bad = 0;

	tolerant = argc > 3;
	state = seed;
	note("seed %u", seed);
	while (now_ns() < end) {
		for (i = 0; i < PROCESSES; i++) {
			if (pids[i])
				continue;
			pids[i] = fork();
			if (!pids[i])
				child(end, seed + ++killed * PROCESSES + i);
		}
		usleep(20000 + 1000 * pick(200));
		i = pick(PROCESSES);
		kill(pids[i], SIGKILL);
		waitpid(pids[i], &status, 0);
		bad += WIFEXITED(status) && WEXITSTATUS(status);
		pids[i] = 0;
		killed++;
	}
	for (i = 0; i < PROCESSES; i++) {
		if (!pids[i])
			continue;
		waitpid(pids[i], &status, 0);
		bad += !WIFEXITED(status) || WEXITSTATUS(status);
	}
	ok(!bad, "clients at random, killed at random: %d with an error", bad);
	return done_testing();
}
