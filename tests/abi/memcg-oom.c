/* SPDX-License-Identifier: MIT */
/*
 * Out of memory: processes in the group use up its limit with device memory, pinned
 * memory and their own, until the kernel kills them with work in flight. A context
 * outside computes the same sum throughout.
 */
#include "memcg.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fence.h"
#include "prog.h"

#define ROUNDS 6u
#define VICTIM_VA (512 * MIB)
#define SURVIVOR_VA (1536 * MIB)
#define STICKS 512u
#define BYTES ((uint64_t)STICKS * STICK)

/* --- the survivor: a sum with a constant checksum --- */
struct survivor {
	int fd;
	struct abi_queue queue;
	struct abi_buf mem;
	uint32_t program;
	uint64_t sum;		/* of the undisturbed result */
	uint32_t rounds, wrong;
};

static uint64_t compute(struct survivor *s)
{
	const uint64_t args[3] = { s->mem.va, s->mem.va + BYTES, s->mem.va + 2 * BYTES };
	struct drm_spyre_cb cb = abi_cb_exec(s->program, args, 3);
	const uint8_t *out = s->mem.map;
	uint64_t sum = 0xcbf29ce484222325ull, i;

	memset(s->mem.map, 0xee, BYTES);
	if (abi_run(&s->queue, &cb, 1))
		return 0;
	for (i = 0; i < BYTES; i++)
		sum = (sum ^ out[i]) * 0x100000001b3ull;
	return sum;
}

static struct survivor survivor_make(void)
{
	struct abi_prog prog = abi_prog_add(4, STICKS / 4);
	struct survivor s = { .fd = abi_open() };
	uint16_t *in;
	uint64_t i;

	s.queue = abi_queue(s.fd, 0);
	s.mem = abi_buf(s.fd, 3 * BYTES, DRM_SPYRE_BO_DEVICE, SURVIVOR_VA);
	s.program = abi_prog_create(s.fd, &prog);
	in = (uint16_t *)((uint8_t *)s.mem.map + BYTES);
	for (i = 0; i < BYTES; i++)
		in[i] = abi_dl16((int)(i % 509) - 254);
	s.sum = compute(&s);
	return s;
}

static void survivor_goes_on(struct survivor *s)
{
	s->rounds++;
	s->wrong += compute(s) != s->sum;
}

/* --- the victim, in the group --- */
/* Touches device memory by its work until SUBMIT fails for lack of memory. */
static int fill_device(int fd, struct abi_queue *q)
{
	const uint64_t step = 4 * MIB;
	struct drm_spyre_cb cb;
	uint64_t va = VICTIM_VA + 64 * MIB;
	uint32_t handle;
	int ret;

	for (ret = 0; !ret && va < VICTIM_VA + 256 * MIB; va += step) {
		ret = abi_bo(fd, step, DRM_SPYRE_BO_DEVICE, &handle) ?:
		      abi_bind(fd, handle, 0, va, step, 0);
		cb = abi_cb_fill32(va, step, 7);
		if (!ret)
			ret = abi_run(q, &cb, 1);
	}
	return ret;
}

/* Pins its own memory by work that does not start, and then allocates more. */
static void fill_own(struct abi_queue *held)
{
	const uint64_t size = 4 * MEMCG_LIMIT, part = 2 * MIB;
	struct drm_spyre_dma down = abi_dma_raw(DRM_SPYRE_DMA_H2D, part);
	struct drm_spyre_cb cb;
	uint8_t *own = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t at;

	if (own == MAP_FAILED)
		_exit(95);
	for (at = 0; at < size; at += part) {
		memset(own + at, 1, part);
		cb = abi_cb_dma(&down, VICTIM_VA, own + at, part);
		abi_submit(held, &cb, 1, NULL);
	}
}

/*
 * Odd rounds first use up device memory, so that the next page of any kind exceeds
 * the limit; even ones use pinned pages only.
 */
static void victim(uint32_t round, int socket)
{
	struct abi_gate gate;
	struct abi_queue q, held;
	int fd;

	memcg_join();
	gate = abi_gate();
	fd = abi_open();
	q = abi_queue(fd, 0);
	held = abi_queue(fd, 60000);
	abi_buf(fd, 2 * MIB, DRM_SPYRE_BO_DEVICE, VICTIM_VA);
	memcg_send_fd(socket, abi_sync_file(gate.fd, gate.syncobj));
	if (round & 1 && fill_device(fd, &q) != -ENOMEM)
		_exit(94);
	fill_own(&held);
	_exit(93);
}

static void one_round(struct survivor *s, uint32_t round, uint32_t *killed, uint32_t *stuck)
{
	int socket, file, status = 0;
	pid_t pid = abi_fork(&socket);

	if (!pid)
		victim(round, socket);
	file = memcg_receive_fd(socket);
	do
		survivor_goes_on(s);
	while (!waitpid(pid, &status, WNOHANG));
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		++*killed;
	else
		tap_note("round %u: status %#x", round, status);
	*stuck += !abi_sync_file_poll(file, 10000) || abi_sync_file_status(file) != -ECANCELED;
	survivor_goes_on(s);
	close(file);
	close(socket);
}

void memcg_test_oom(int fd)
{
	const uint64_t kills = memcg_kills();
	struct survivor s = survivor_make();
	uint64_t used = abi_memory(fd).used;
	uint32_t killed = 0, stuck = 0, i;

	for (i = 0; i < ROUNDS; i++)
		one_round(&s, i, &killed, &stuck);
	tap_eq(killed, ROUNDS, "oom: each process in the group is killed");
	tap_eq(memcg_kills() - kills, ROUNDS, "oom: the group's OOM killer killed them");
	tap_eq(stuck, 0, "oom: each fence signals with ECANCELED");
	tap_ok(s.sum && s.rounds > ROUNDS && !s.wrong,
	       "oom: the survivor's checksum is right, %u of %u times", s.rounds - s.wrong,
	       s.rounds);
	tap_ok(abi_memory_settles(fd, used), "oom: all device memory is back");
	for (i = 0; i < 500 && memcg_number("memory.current") >= 8 * MIB; i++)
		abi_sleep_ms(10);
	tap_ok(memcg_number("memory.current") < 8 * MIB,
	       "oom: the group's charge is back (%llu KiB left)",
	       (unsigned long long)memcg_number("memory.current") >> 10);
	abi_queue_free(&s.queue);
	abi_buf_free(s.fd, &s.mem);
	close(s.fd);
}
