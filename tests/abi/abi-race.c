/* SPDX-License-Identifier: MIT */
/*
 * Threads that use and destroy each other's handles: create, use and destroy by
 * guessed numbers. Any errno is acceptable, but the kernel must survive and leak
 * nothing. ABI_SECONDS sets the duration (4).
 */
#include "abi.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <xf86drm.h>

#include "prog.h"

#define THREADS 6
#define GUESS 12		/* handles and ids are small numbers */
#define VA (64 * MIB)

static int fd;
static uint64_t deadline;
static void *image;
static uint64_t image_size;

static void one_submit(unsigned int *seed)
{
	uint64_t args[3] = { VA, VA + PAGE, VA + 2 * PAGE };
	uint32_t pick = (uint32_t)rand_r(seed), error_cb;
	struct drm_spyre_dma desc = abi_dma_raw(pick & 1, PAGE);
	/* Not on the stack: a job may still write here after the function returns. */
	static __thread uint8_t host[MOST_PAGE];
	struct drm_spyre_cb cbs[4] = {
		abi_cb_exec(1 + pick / 2 % GUESS, args, 3),
		abi_cb_copy(VA, VA + 4 * PAGE, 2 * PAGE),
		abi_cb_fill32(VA + pick % 8 * PAGE, PAGE, pick),
		pick & 16 ? abi_cb_dma(&desc, VA, host, PAGE) :
			    abi_cb_dma_bo(&desc, VA, 1 + pick / 32 % GUESS, 0, PAGE),
	};
	struct abi_queue q = {
		.fd = fd,
		.id = 1 + pick / 64 % GUESS,
		.syncobj = 1 + pick / 256 % GUESS,
		.point = abi_now_ns(),
		.results.handle = pick & 1024 ? 1 + pick / 2048 % GUESS : 0,
	};

	if (!abi_submit(&q, cbs + pick % 4, 1 + pick / 4096 % (4 - pick % 4), &error_cb) &&
	    pick / 65536 % 2)
		abi_wait(&q, 50);
}

static void one_step(unsigned int *seed)
{
	uint32_t guess = 1 + (uint32_t)rand_r(seed) % GUESS, made;
	struct drm_spyre_program_create args;
	struct drm_spyre_queue_query query = { .queue_id = guess };
	void *p;

	switch (rand_r(seed) % 12) {
	case 0:
		abi_bo(fd, 8 * PAGE, guess & 1 ? DRM_SPYRE_BO_DEVICE : DRM_SPYRE_BO_HOST, &made);
		break;
	case 1:
		abi_gem_close(fd, guess);
		break;
	case 2:
		abi_bind(fd, guess, 0, VA + guess % 4 * PAGE, 8 * PAGE, guess & 1);
		break;
	case 3:
		abi_unbind(fd, VA + guess * PAGE, guess * PAGE);
		break;
	case 4:
		abi_queue_create(fd, guess & 1, 5 + guess, &made);
		break;
	case 5:
		abi_queue_destroy(fd, guess);
		break;
	case 6:
		abi_prog_load(fd, image, image_size, &args);
		break;
	case 7:
		abi_prog_destroy(fd, guess);
		break;
	case 8:
		p = abi_mmap(fd, guess, 8 * PAGE);
		if (p) {
			memset(p, 1, PAGE);
			munmap(p, 8 * PAGE);
		}
		break;
	case 9:
		abi_ioctl(fd, DRM_IOCTL_SPYRE_QUEUE_QUERY, &query);
		break;
	default:
		one_submit(seed);
	}
}

static void *thread(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)arg;
	uintptr_t steps = 0;

	while (abi_now_ns() < deadline) {
		one_step(&seed);
		steps++;
	}
	return (void *)steps;
}

/* Keeps ids low, so that guesses hit. */
static void sweep(void)
{
	uint32_t i;

	for (i = 1; i < 4096; i++) {
		abi_queue_destroy(fd, i);
		abi_prog_destroy(fd, i);
		abi_gem_close(fd, i);
	}
	abi_unbind(fd, VA - 16 * PAGE, 64 * PAGE);
}

int main(void)
{
	const char *env = getenv("ABI_SECONDS");
	uint64_t seconds = env ? strtoull(env, NULL, 0) : 4;
	struct abi_prog prog = abi_prog_add(1, 16);
	int watch = abi_open(), i, round;
	uint64_t used = abi_memory(watch).used, steps = 0;
	pthread_t threads[THREADS];
	void *ret;

	prog.num_loops = 1;
	prog.loops[0] = 2000;
	image = abi_prog_encode(&prog, &image_size);
	for (round = 0; round < 4; round++) {
		fd = abi_open();
		for (i = 0; i < GUESS; i++)
			abi_syncobj(fd);
		deadline = abi_now_ns() + seconds * 1000000000ull / 4;
		for (i = 0; i < THREADS; i++)
			if (pthread_create(&threads[i], NULL, thread,
					   (void *)(uintptr_t)(round * THREADS + i + 1)))
				tap_bail("pthread_create");
		for (i = 0; i < THREADS; i++) {
			pthread_join(threads[i], &ret);
			steps += (uintptr_t)ret;
		}
		/* Half of the rounds leave the clean-up to close(). */
		if (round & 1)
			sweep();
		close(fd);
	}
	tap_ok(steps > 100,
	       "race: %llu steps of %d threads, no unexpected error",
	       (unsigned long long)steps, THREADS);
	tap_ok(abi_memory_settles(watch, used), "race: all memory is back");
	free(image);
	return tap_done();
}
