/* SPDX-License-Identifier: MIT */
/* Sleep on a word and wake its sleepers; the word is checked by the kernel. */
#ifndef SPYRE_FUTEX_H
#define SPYRE_FUTEX_H

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static inline uint64_t spyre_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

/*
 * Sleeps while *@word is @value, until CLOCK_MONOTONIC @deadline_ns (INT64_MAX:
 * no limit). Returns false when the deadline passed; wakes may be spurious.
 */
static inline bool spyre_futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t deadline_ns)
{
	struct timespec ts = { deadline_ns / 1000000000, deadline_ns % 1000000000 };
	long ret = syscall(SYS_futex, word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, value,
			   deadline_ns == INT64_MAX ? NULL : &ts, NULL, FUTEX_BITSET_MATCH_ANY);

	return !(ret < 0 && errno == ETIMEDOUT);
}

static inline void spyre_futex_wake(_Atomic uint32_t *word, int count)
{
	syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, count, NULL, NULL, 0);
}

static inline void spyre_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#endif
}

/*
 * Decides on spinning before a sleep. Spinning pays only while another processor
 * does the work that is waited for. After spins that failed (long work, busy
 * machine) one in 32 waits tries again and the others sleep at once.
 */
struct spyre_spin {
	_Atomic int credit;
};

#define SPYRE_SPIN_CREDIT 4
#define SPYRE_SPIN_RETRY 32

static inline bool spyre_spin_begin(struct spyre_spin *spin)
{
	int credit = atomic_load_explicit(&spin->credit, memory_order_relaxed);

	if (credit >= 0)
		return true;
	atomic_store_explicit(&spin->credit, credit + 1, memory_order_relaxed);
	return false;
}

static inline void spyre_spin_end(struct spyre_spin *spin, bool good)
{
	int credit = atomic_load_explicit(&spin->credit, memory_order_relaxed);

	if (good)
		credit = SPYRE_SPIN_CREDIT;
	else
		credit = credit > 0 ? credit - 1 : -SPYRE_SPIN_RETRY;
	atomic_store_explicit(&spin->credit, credit, memory_order_relaxed);
}

#endif /* SPYRE_FUTEX_H */
