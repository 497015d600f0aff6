// SPDX-License-Identifier: MIT
/* Two threads that wake each other through a futex. */
#include "bench/bench.h"
#include "bench/pingpong.h"

#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static void wait_for(_Atomic uint32_t *next, uint32_t mine)
{
	uint32_t now;

	while ((now = atomic_load_explicit(next, memory_order_acquire)) != mine)
		syscall(SYS_futex, next, FUTEX_WAIT_PRIVATE, now, NULL, NULL, 0);
}

static void pass(_Atomic uint32_t *next, uint32_t to)
{
	atomic_store_explicit(next, to, memory_order_release);
	syscall(SYS_futex, next, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void *pong(void *state)
{
	struct bench_pingpong *p = state;

	for (int i = 0; i < p->rounds; i++) {
		wait_for(&p->next, 1);
		pass(&p->next, 0);
	}
	return NULL;
}

double bench_pingpong(struct bench_pingpong *pingpong, int rounds)
{
	pthread_t other;
	double start;

	pingpong->rounds = rounds;
	atomic_store(&pingpong->next, 0);
	if (pthread_create(&other, NULL, pong, pingpong)) {
		fprintf(stderr, "spyre-bench: cannot start a thread\n");
		return -1;
	}
	start = bench_now();
	for (int i = 0; i < rounds; i++) {
		pass(&pingpong->next, 1);
		wait_for(&pingpong->next, 0);
	}
	start = bench_now() - start;
	pthread_join(other, NULL);
	return start / rounds;
}
