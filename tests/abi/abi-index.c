/* SPDX-License-Identifier: MIT */
/*
 * GATHER and SCATTER on the card: an index beyond its extent fails its context, and it
 * alone, even if a thread changes the index while the card uses it.
 */
#include "abi.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "prog.h"

#define VA (64 * MIB)
#define ROWS 64u
#define POINTS 256u
#define TABLE_BYTES (ROWS * STICK)
#define POINT_BYTES (POINTS * STICK)
#define INDEX_AT (2 * MIB)	/* in the BO; the operands before it are the table and the points */
#define POINTS_AT MIB
#define BO_BYTES (3 * MIB)

struct ctx {
	int fd;
	struct abi_queue queue;
	struct abi_buf mem;
	uint32_t gather, scatter;
	uint64_t gather_args[3], scatter_args[3];
};

/* Operands: output, input, indices; a row of the table is a stick. */
static struct abi_prog program(uint32_t opcode)
{
	struct abi_prog p = abi_prog_add(1, POINTS);
	uint32_t table = opcode == SPYRE_OP_GATHER;

	p.operands[table].extent = TABLE_BYTES;
	p.operands[2].extent = POINTS * 4;
	p.instr.opcode = (uint16_t)opcode;
	p.instr.func = SPYRE_FUNC_NONE;
	p.instr.reduce_mask = 1;
	p.instr.imm[0] = ROWS;
	p.views[2].format = SPYRE_FMT_IEEE_INT32;
	p.views[2].lanes = SPYRE_LANES_SPLAT;
	p.views[2].stride[0] = 4;
	return p;
}

static int32_t *indices(struct ctx *c)
{
	return (int32_t *)((uint8_t *)c->mem.map + INDEX_AT);
}

static uint8_t *points(struct ctx *c)
{
	return (uint8_t *)c->mem.map + POINTS_AT;
}

static void fill(struct ctx *c)
{
	uint32_t i;

	memset(c->mem.map, 0xee, BO_BYTES);
	for (i = 0; i < TABLE_BYTES; i++)
		((uint8_t *)c->mem.map)[i] = (uint8_t)(i / STICK * 3 + 1);
	for (i = 0; i < POINTS; i++)
		indices(c)[i] = (int32_t)(i * 37 % ROWS);
}

static struct ctx ctx_open(void)
{
	struct abi_prog gather = program(SPYRE_OP_GATHER), scatter = program(SPYRE_OP_SCATTER);
	struct ctx c = { .fd = abi_open() };

	c.queue = abi_queue(c.fd, 10000);
	c.mem = abi_buf(c.fd, BO_BYTES, DRM_SPYRE_BO_DEVICE, VA);
	c.gather = abi_prog_create(c.fd, &gather);
	c.scatter = abi_prog_create(c.fd, &scatter);
	c.gather_args[0] = c.scatter_args[1] = VA + POINTS_AT;
	c.gather_args[1] = c.scatter_args[0] = VA;
	c.gather_args[2] = c.scatter_args[2] = VA + INDEX_AT;
	fill(&c);
	return c;
}

static void ctx_close(struct ctx *c)
{
	abi_queue_free(&c->queue);
	munmap(c->mem.map, c->mem.size);
	close(c->fd);
}

static int run(struct ctx *c, bool scatter)
{
	struct drm_spyre_cb cb = abi_cb_exec(scatter ? c->scatter : c->gather,
					     scatter ? c->scatter_args : c->gather_args, 3);

	return abi_run(&c->queue, &cb, 1);
}

static bool gathered(struct ctx *c)
{
	uint32_t i;

	for (i = 0; i < POINT_BYTES; i++)
		if (points(c)[i] != (uint8_t)(indices(c)[i / STICK] * 3 + 1))
			return false;
	return true;
}

/* Several points have the same row, so each row has the last of them. */
static void test_rows(struct ctx *c, const char *when)
{
	uint32_t i, bad = 0;

	fill(c);
	tap_ret(run(c, false), 0, "%s: rows are gathered", when);
	tap_ok(gathered(c), "%s: they are those of the indices", when);
	for (i = 0; i < POINT_BYTES; i++)
		points(c)[i] = (uint8_t)(i / STICK);
	tap_ret(run(c, true), 0, "%s: rows are scattered", when);
	for (i = 0; i < POINTS; i++)
		if (i + ROWS >= POINTS)
			bad += ((uint8_t *)c->mem.map)[indices(c)[i] * (int)STICK] != (uint8_t)i;
	tap_eq(bad, 0, "%s: the last of the equal indices remains", when);
}

static void test_fault(struct ctx *other, int32_t index, bool scatter, const char *what)
{
	struct ctx c = ctx_open();
	struct drm_spyre_context_info info;
	uint32_t i, touched = 0;

	indices(&c)[POINTS - 1] = index;
	tap_ret(run(&c, scatter), -EFAULT, "%s: the program reports EFAULT", what);
	info = abi_context(c.fd);
	tap_eq(info.state, DRM_SPYRE_CONTEXT_FAULTED, "%s: the context is faulted", what);
	tap_eq(info.fault, DRM_SPYRE_FAULT_ACCESS, "%s: the kind is access", what);
	tap_ret(info.error, -EFAULT, "%s: errno", what);
	tap_eq(info.fault_job, 1, "%s: the job", what);
	for (i = TABLE_BYTES; i < POINTS_AT; i++)
		touched += ((uint8_t *)c.mem.map)[i] != 0xee;
	tap_eq(touched, 0, "%s: nothing beyond the table is written", what);
	tap_ret(run(&c, scatter), -ECANCELED, "%s: the context refuses work", what);
	test_rows(other, what);
	tap_ret(abi_context_reset(c.fd, NULL), 0, "%s: CONTEXT_RESET", what);
	abi_queue_free(&c.queue);
	c.queue = abi_queue(c.fd, 10000);
	test_rows(&c, "after CONTEXT_RESET");
	ctx_close(&c);
}

struct scribbler {
	int32_t *index;
	bool stop;
};

/* A good index and one that names memory of the same BO beyond the table, in turn. */
static void *scribble(void *arg)
{
	struct scribbler *s = arg;

	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED)) {
		__atomic_store_n(s->index, 1 << 12, __ATOMIC_RELAXED);
		__atomic_store_n(s->index, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

/*
 * A job uses the value of an index that it has checked, although a thread rewrites it: the
 * point gets row 1, or the program stops before it.
 */
static void test_race(void)
{
	struct ctx c = ctx_open();
	struct scribbler s = { .index = &indices(&c)[POINTS / 2] };
	uint32_t i, bad = 0, faults = 0;
	pthread_t thread;
	int ret;

	/* A run may come before the thread's first write. */
	*s.index = 1;
	if (pthread_create(&thread, NULL, scribble, &s))
		tap_bail("no thread");
	for (i = 0; i < 200; i++) {
		points(&c)[POINT_BYTES / 2] = 0xee;
		ret = run(&c, false);
		bad += ret ? ret != -EFAULT || points(&c)[POINT_BYTES / 2] != 0xee :
			     points(&c)[POINT_BYTES / 2] != 4;
		if (!ret)
			continue;
		faults++;
		bad += abi_context_reset(c.fd, NULL) != 0;
		abi_queue_free(&c.queue);
		c.queue = abi_queue(c.fd, 10000);
	}
	__atomic_store_n(&s.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	tap_eq(bad, 0, "race: 200 runs used the index that was checked (%u of them failed by it)",
	       faults);
	ctx_close(&c);
}

int main(void)
{
	int fd = abi_open();
	uint64_t used = abi_memory(fd).used;
	struct ctx other = ctx_open();

	test_rows(&other, "at first");
	test_fault(&other, ROWS, false, "gather, the extent");
	test_fault(&other, -1, false, "gather, -1");
	test_fault(&other, 1 << 12, true, "scatter, far beyond");
	test_fault(&other, INT32_MIN, true, "scatter, -2^31");
	test_race();
	test_rows(&other, "at last");
	tap_eq(abi_context(other.fd).errors, 0, "the other context never failed");
	ctx_close(&other);
	tap_ok(abi_memory_settles(fd, used), "all memory is back");
	return tap_done();
}
