/* SPDX-License-Identifier: MIT */
/*
 * Results do not depend on the floating-point modes of the programs that use the
 * processors meanwhile: as many as there are processors round up and flush subnormal
 * numbers to zero.
 */
#include "abi.h"

#include <fenv.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "prog.h"

#define VA (64 * MIB)
#define FLOATS (STICK / 4)
#define MOST_SPINNERS 64
#define ROUNDS 100

static void set_modes(void)
{
#if defined(__x86_64__)
	_mm_setcsr(_mm_getcsr() | _MM_ROUND_UP | _MM_FLUSH_ZERO_ON | 0x40 /* DAZ */);
#elif defined(__aarch64__)
	const uint64_t fpcr = 1u << 22 /* round up */ | 1u << 24 /* FZ */;

	__asm__ volatile("msr fpcr, %0" : : "r"(fpcr));
#else
	fesetround(FE_UPWARD);
#endif
}

static pid_t spinner(void)
{
	volatile float tiny = 0x1p-25f;
	pid_t parent = getpid(), pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	set_modes();
	/* A processor that does not round up would measure nothing. */
	while (getppid() == parent && 1.0f + tiny > 1.0f)
		;
	_exit(1);
}

/* A sum per half of the floats, in the bits of fp32: with rounding, and of subnormal numbers. */
struct sum {
	uint32_t a, b, sum;
};

static const struct sum sums[2] = {
	{ 0x3f800000 /* 1 */, 0x33000000 /* 2^-25 */, 0x3f800000 },
	{ 0x00080000 /* 2^-130 */, 0x00080000, 0x00100000 },
};

static uint32_t *operand(const struct abi_buf *mem, uint32_t index)
{
	return (uint32_t *)mem->map + index * (mem->size / 12);
}

/* Runs a sum of fp32 @ROUNDS times and returns how many elements were wrong. */
static unsigned int wrong_sums(int fd, uint32_t cores, uint32_t sticks)
{
	const uint64_t bytes = (uint64_t)cores * sticks * STICK;
	const uint32_t count = cores * sticks * FLOATS;
	struct abi_buf mem = abi_buf(fd, 3 * bytes, DRM_SPYRE_BO_DEVICE, VA);
	const uint64_t args[3] = { VA, VA + bytes, VA + 2 * bytes };
	struct abi_prog prog = abi_prog_add(cores, sticks);
	struct abi_queue queue = abi_queue(fd, 10000);
	unsigned int round, wrong = 0;
	struct drm_spyre_cb cb;
	uint32_t i, program;

	prog.instr.lanes = FLOATS;
	for (i = 0; i < 3; i++)
		prog.views[i].format = SPYRE_FMT_IEEE_FP32;
	program = abi_prog_create(fd, &prog);
	for (i = 0; i < count; i++) {
		operand(&mem, 1)[i] = sums[i % 2].a;
		operand(&mem, 2)[i] = sums[i % 2].b;
	}
	cb = abi_cb_exec(program, args, 3);
	for (round = 0; round < ROUNDS; round++) {
		memset(mem.map, 0xff, bytes);
		if (abi_run(&queue, &cb, 1))
			tap_bail("cannot run the program");
		for (i = 0; i < count; i++)
			wrong += operand(&mem, 0)[i] != sums[i % 2].sum;
	}
	abi_prog_destroy(fd, program);
	abi_queue_free(&queue);
	abi_buf_free(fd, &mem);
	return wrong;
}

static void test_sums(int fd, const char *when)
{
	tap_eq(wrong_sums(fd, 1, 32), 0, "%s: wrong elements of light jobs", when);
	tap_eq(wrong_sums(fd, 8, 256), 0, "%s: wrong elements of jobs on several processors", when);
}

int main(void)
{
	long count = sysconf(_SC_NPROCESSORS_ONLN), i, running = 0;
	pid_t pids[MOST_SPINNERS];
	int fd = abi_open(), status;

	if (count > MOST_SPINNERS)
		count = MOST_SPINNERS;
	test_sums(fd, "idle processors");
	for (i = 0; i < count; i++) {
		pids[i] = spinner();
		if (pids[i] < 0)
			tap_bail("cannot fork");
	}
	test_sums(fd, "programs with other modes");
	for (i = 0; i < count; i++) {
		running += !waitpid(pids[i], &status, WNOHANG);
		kill(pids[i], SIGKILL);
		waitpid(pids[i], &status, 0);
	}
	tap_eq(running, count, "the programs kept their modes");
	close(fd);
	return tap_done();
}
