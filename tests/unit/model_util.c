// SPDX-License-Identifier: MIT
#include "model_util.h"
#include "libspyre/backend/cpu.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUARD 256

static __thread int fpu_depth;

static void fpu_begin(struct spyre_host *host)
{
	struct test_host *h = (struct test_host *)host;

	if (fpu_depth++)
		__atomic_add_fetch(&h->errors, 1, __ATOMIC_RELAXED);
}

static void fpu_end(struct spyre_host *host)
{
	struct test_host *h = (struct test_host *)host;

	if (--fpu_depth)
		__atomic_add_fetch(&h->errors, 1, __ATOMIC_RELAXED);
}

static void relax(struct spyre_host *host)
{
	struct test_host *h = (struct test_host *)host;

	if (fpu_depth)
		__atomic_add_fetch(&h->errors, 1, __ATOMIC_RELAXED);
}

static bool should_stop(struct spyre_host *host, void *job)
{
	struct test_host *h = (struct test_host *)host;

	(void)job;
	if (__atomic_load_n(&h->polls_left, __ATOMIC_RELAXED) < 0)
		return false;
	return __atomic_fetch_sub(&h->polls_left, 1, __ATOMIC_RELAXED) <= 0;
}

struct crew {
	struct spyre_host *host;
	spyre_work_fn fn;
	void *arg;
	uint32_t n;
	uint32_t next;
};

static void *crew_member(void *arg)
{
	struct crew *crew = arg;
	struct spyre_worker worker = { aligned_alloc(64, SPYRE_SCRATCH_BYTES) };
	uint32_t i;

	memset(worker.scratch, 0xa5, 65536);
	while ((i = __atomic_fetch_add(&crew->next, 1, __ATOMIC_RELAXED)) < crew->n)
		crew->fn(crew->arg, i, &worker);
	free(worker.scratch);
	return NULL;
}

static void parallel(struct spyre_host *host, struct spyre_worker *self, uint32_t n,
		     spyre_work_fn fn, void *arg)
{
	struct test_host *h = (struct test_host *)host;
	struct crew crew = { .host = host, .fn = fn, .arg = arg, .n = n };
	uint32_t *order, i;
	pthread_t thread[8];

	if (h->threads > 1) {
		for (i = 0; i < (uint32_t)h->threads; i++)
			pthread_create(&thread[i], NULL, crew_member, &crew);
		for (i = 0; i < (uint32_t)h->threads; i++)
			pthread_join(thread[i], NULL);
		return;
	}
	order = malloc(n * sizeof(*order));
	for (i = 0; i < n; i++) {
		uint32_t j = rng_below(&h->seed, i + 1);

		order[i] = order[j];
		order[j] = i;
	}
	for (i = 0; i < n; i++)
		fn(arg, order[i], self);
	free(order);
}

void test_host_init(struct test_host *h, const struct spyre_unit *unit, int threads)
{
	*h = (struct test_host){
		.host = {
			.unit = unit,
			.parallel = parallel,
			.fpu_begin = fpu_begin,
			.fpu_end = fpu_end,
			.relax = relax,
			.should_stop = should_stop,
		},
		.threads = threads,
		.seed = 99,
		.polls_left = -1,
		.self = { aligned_alloc(64, SPYRE_SCRATCH_BYTES) },
	};
	memset(h->self.scratch, 0x5a, 65536);
}

void test_host_done(struct test_host *h)
{
	free(h->self.scratch);
	ck_assert_int_eq(h->errors, 0);
	ck_assert_int_eq(fpu_depth, 0);
}

#define MAX_UNITS 8

const struct spyre_unit *const *test_units(void)
{
	static const struct spyre_unit *units[MAX_UNITS];
	u32 at = 0;
	int n = 0;

	while (n < MAX_UNITS - 1 && (units[n] = cpu_next_unit(&at)))
		n++;
	return units;
}

int test_units_report(void)
{
	const struct spyre_unit *unit;
	int units = 0;

	for (u32 i = 0; (unit = spyre_unit_at(i)); i++)
		if (!cpu_runs(spyre_unit_name(unit)))
			printf("# unit %s skipped: this CPU lacks it\n", spyre_unit_name(unit));
	while (test_units()[units])
		units++;
	return units;
}

void guarded_alloc(struct guarded *g, size_t bytes)
{
	size_t total = (bytes + 2 * GUARD + 127) / 128 * 128;

	g->base = aligned_alloc(128, total);
	g->p = g->base + GUARD;
	g->bytes = bytes;
	memset(g->base, 0xc3, total);
}

void guarded_free(struct guarded *g)
{
	free(g->base);
}

bool guarded_intact(const struct guarded *g)
{
	size_t i;

	for (i = 0; i < GUARD; i++)
		if (g->base[i] != 0xc3 || g->p[g->bytes + i] != 0xc3)
			return false;
	return true;
}

void build_seal(void *image, size_t size, uint32_t cores, struct spyre_program *prog)
{
	struct spyre_verify_error err;

	if (!build_settle(image, size, cores, prog, &err))
		ck_abort_msg("%s: core %u instr %u view %u value %llu limit %llu",
			     spyre_stop_name(err.stop), err.core, err.instr, err.view,
			     (unsigned long long)err.value, (unsigned long long)err.limit);
}
