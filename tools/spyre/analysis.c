// SPDX-License-Identifier: MIT
/* The analysis of a trace: sums over its kernels and their phases. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis.h"

/* A gain below this part of all time is not worth advice. */
#define LEAST_GAIN 0.01

const char *const bound_names[BOUNDS] = {
	[BOUND_PT] = "PT", [BOUND_SFU] = "SFU", [BOUND_DMA] = "DMA", [BOUND_LX] = "LX",
	[BOUND_RING] = "ring", [BOUND_LPDDR] = "LPDDR5", [BOUND_LAUNCH] = "launch",
};

/* The phase that is being read, with its slowest core. */
struct phase {
	const struct trace_event *event;
	struct kernel *kernel;
	const struct trace_event *core, *slowest;
	enum bound engine;		/* the busiest one of the slowest core */
	uint64_t engine_cycles;
	double busy;
	uint64_t lx_moved;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct kernel *)a)->name, ((const struct kernel *)b)->name);
}

static int by_cycles(const void *a, const void *b)
{
	const struct kernel *x = a, *y = b;

	return x->cycles != y->cycles ? (x->cycles < y->cycles ? 1 : -1) : by_name(a, b);
}

static int by_gain(const void *a, const void *b)
{
	const struct advice *x = a, *y = b;

	return x->cycles != y->cycles ? (x->cycles < y->cycles ? 1 : -1) :
	       (int)x->kind - (int)y->kind;
}

static int make_kernels(struct analysis *a, struct text *why)
{
	size_t count;
	struct trace_sum *sums = trace_sums(a->trace, &count);

	a->kernel = calloc(sums ? count + 1 : 1, sizeof(*a->kernel));
	if (!sums || !a->kernel) {
		free(sums);
		return explain(why, "no memory to analyse the trace");
	}
	for (size_t i = 0; i < count; i++) {
		const struct trace_sum *s = &sums[i];

		if (s->kind == TRACE_KERNEL) {
			a->kernel[a->num_kernels++] = (struct kernel){
				.name = s->name, .launches = s->count, .cycles = s->cycles,
				.bytes_read = s->bytes_read, .bytes_written = s->bytes_written,
				.macs = s->macs,
			};
			trace_add(&a->cycles, s->cycles);
		} else if (s->kind < TRACE_COLLECTIVE) {
			a->copies += s->count;
			trace_add(&a->copy_cycles, s->cycles);
			trace_add(&a->copy_bytes, s->bytes_read);
			trace_add(&a->copy_bytes, s->bytes_written);
			trace_add(&a->copy_bytes, s->rdma);
		}
	}
	free(sums);
	qsort(a->kernel, a->num_kernels, sizeof(*a->kernel), by_name);
	return 0;
}

static void end_phase(struct phase *p)
{
	const struct trace_event *e = p->event;
	struct kernel *k = p->kernel;
	enum bound bound = BOUND_LAUNCH;

	if (!e)
		return;
	if (e->lpddr_cycles > e->core_cycles)
		bound = BOUND_LPDDR;
	/* Below half, most of the core's time goes into the issue of its instructions. */
	else if (p->engine_cycles * 2 >= e->core_cycles && p->engine_cycles)
		bound = p->engine;
	trace_add(&k->bound[bound], e->lpddr_cycles > e->core_cycles ? e->lpddr_cycles :
									e->core_cycles);
	trace_add(&k->bound[BOUND_LAUNCH], e->barrier_cycles);
	k->phases++;
	k->used_core_cycles += (double)e->core_cycles * (double)e->cores;
	k->all_core_cycles += (double)e->core_cycles * (double)k->card_cores;
	k->busy_core_cycles += p->busy;
	k->longest_core_cycles += (double)e->core_cycles * (double)e->cores;
	trace_add(&k->lx_moved, p->lx_moved);
	p->event = NULL;
}

static void add_engine(struct phase *p, const struct trace_event *e)
{
	if (p->core != p->slowest || !e->engine || e->cycles <= p->engine_cycles)
		return;
	for (int i = 0; i <= BOUND_RING; i++) {
		if (strcmp(e->engine, bound_names[i]))
			continue;
		p->engine = (enum bound)i;
		p->engine_cycles = e->cycles;
	}
}

static void add_core(struct phase *p, const struct trace_event *e)
{
	p->core = e;
	p->busy += (double)e->cycles;
	trace_add(&p->lx_moved, e->lx_bytes_read + e->lx_bytes_written);
	if (p->slowest && p->slowest->cycles >= e->cycles)
		return;
	p->slowest = e;
	p->engine_cycles = 0;
}

static int begin_launch(struct analysis *a, struct phase *p, const struct trace_event *e,
			struct text *why)
{
	struct kernel wanted = { .name = e->name };
	struct kernel *k = bsearch(&wanted, a->kernel, a->num_kernels, sizeof(*k), by_name);

	if (!k)
		return explain(why, "cannot analyse the trace: the modelled launch of \"%.64s\" "
			       "has no kernel of that name", e->name);
	p->kernel = k;
	/* Without them, the trace does not have the time of its cores. */
	if (!e->card_cores)
		return 0;
	k->detailed++;
	trace_add(&k->detailed_cycles, e->cycles);
	k->card_cores = e->card_cores;
	if (e->lx_bytes > k->lx_bytes)
		k->lx_bytes = e->lx_bytes;
	return 0;
}

static int read_phases(struct analysis *a, struct text *why)
{
	struct phase p = { 0 };

	for (size_t i = 0; i < a->trace->count; i++) {
		const struct trace_event *e = &a->trace->event[i];

		if (e->kind == TRACE_LAUNCH) {
			end_phase(&p);
			if (begin_launch(a, &p, e, why))
				return -1;
		} else if (e->kind == TRACE_PHASE && p.kernel) {
			end_phase(&p);
			p = (struct phase){ .event = e, .kernel = p.kernel };
		} else if (e->kind == TRACE_CORE && p.event) {
			add_core(&p, e);
		} else if (e->kind == TRACE_ENGINE && p.core && p.event) {
			add_engine(&p, e);
		} else if (e->kind >= TRACE_FIRST_MODELLED) {
			return explain(why, "cannot analyse the trace: its %s \"%.64s\" comes before "
				       "the event that it is part of", trace_kind_name(e->kind),
				       e->name);
		}
	}
	end_phase(&p);
	return 0;
}

/* The cycles of kernels and copies. */
static double analysis_all(const struct analysis *a)
{
	return (double)a->cycles + (double)a->copy_cycles;
}

static void advise(struct analysis *a, enum advice_kind kind, const struct kernel *kernel,
		   double cycles)
{
	const double all = analysis_all(a);

	/* Without any time there is nothing to gain, and a file may claim a gain nevertheless. */
	if (all > 0 && cycles > 0 && cycles >= LEAST_GAIN * all)
		a->advice[a->num_advice++] = (struct advice){ kind, kernel, cycles };
}

static void advise_kernel(struct analysis *a, const struct kernel *k)
{
	double cores = 0;

	if (!k->detailed)
		return;
	for (int i = 0; i <= BOUND_RING; i++)
		cores += (double)k->bound[i];
	advise(a, ADVICE_LPDDR, k, (double)k->bound[BOUND_LPDDR]);
	advise(a, ADVICE_LAUNCH, k, (double)k->bound[BOUND_LAUNCH]);
	if (k->all_core_cycles > 0)
		advise(a, ADVICE_IDLE_CORES, k,
		       cores * (1 - k->used_core_cycles / k->all_core_cycles));
	if (k->longest_core_cycles > 0)
		advise(a, ADVICE_BALANCE, k,
		       cores * (1 - k->busy_core_cycles / k->longest_core_cycles));
}

int analysis_make(struct analysis *a, const struct trace *trace, struct text *why)
{
	memset(a, 0, sizeof(*a));
	a->trace = trace;
	if (make_kernels(a, why) || read_phases(a, why)) {
		analysis_free(a);
		return -1;
	}
	qsort(a->kernel, a->num_kernels, sizeof(*a->kernel), by_cycles);
	a->advice = calloc(a->num_kernels * 4 + 1, sizeof(*a->advice));
	if (!a->advice) {
		analysis_free(a);
		return explain(why, "no memory to analyse the trace");
	}
	for (size_t i = 0; i < a->num_kernels; i++)
		advise_kernel(a, &a->kernel[i]);
	advise(a, ADVICE_COPIES, NULL, (double)a->copy_cycles);
	qsort(a->advice, a->num_advice, sizeof(*a->advice), by_gain);
	return 0;
}

void analysis_free(struct analysis *a)
{
	free(a->kernel);
	free(a->advice);
	memset(a, 0, sizeof(*a));
}

enum bound analysis_bound(const struct kernel *kernel)
{
	enum bound most = BOUND_PT;

	if (!kernel->detailed)
		return BOUNDS;
	for (int i = 0; i < BOUNDS; i++)
		if (kernel->bound[i] > kernel->bound[most])
			most = (enum bound)i;
	return most;
}

uint64_t analysis_bytes(const struct kernel *kernel)
{
	uint64_t bytes = kernel->bytes_read;

	trace_add(&bytes, kernel->bytes_written);
	return bytes;
}

double analysis_us(const struct analysis *a, double cycles)
{
	return cycles * 1e6 / (double)a->trace->clock_hz;
}

/* The beginning of a name that ends between two characters. */
struct short_name {
	char s[88];
};

static struct short_name shorten(const char *name)
{
	struct short_name to;
	size_t n = strlen(name);

	if (n > 80)
		for (n = 80; n && ((unsigned char)name[n] & 0xc0) == 0x80;)
			n--;
	snprintf(to.s, sizeof(to.s), "%.*s%s", (int)n, name, name[n] ? "\u2026" : "");
	return to;
}

void analysis_sentence(const struct analysis *a, const struct advice *advice, struct text *to)
{
	const struct kernel *k = advice->kernel;
	const double us = analysis_us(a, advice->cycles);
	const double part = 100 * advice->cycles / analysis_all(a);
	const struct short_name name = shorten(k ? k->name : "");

	switch (advice->kind) {
	case ADVICE_LPDDR:
		write_text(to, "%s waits for LPDDR5 for %.3f us (%.1f %%): it reads %" PRIu64
			   " and writes %" PRIu64 " bytes; fuse it with its neighbours, so that "
			   "tensors between them stay in LX, or use a smaller format", name.s, us,
			   part, k->bytes_read, k->bytes_written);
		break;
	case ADVICE_IDLE_CORES:
		write_text(to, "%s uses %.1f of %" PRIu64 " cores on average, all of them would "
			   "save at most %.3f us (%.1f %%); divide dimensions whose sizes have more "
			   "divisors, as 'spyre build --explain' shows them", name.s,
			   k->used_core_cycles * (double)k->card_cores / k->all_core_cycles,
			   k->card_cores, us, part);
		break;
	case ADVICE_BALANCE:
		write_text(to, "%s has cores that wait for the slowest one of their phase, equal "
			   "shares would save at most %.3f us (%.1f %%); choose sizes that the cores "
			   "divide", name.s, us, part);
		break;
	case ADVICE_LAUNCH:
		write_text(to, "%s spends %.3f us (%.1f %%) on the barriers of %" PRIu64
			   " phases and the issue of small instructions; larger tensors or fewer "
			   "operations have less of it", name.s, us, part, k->phases);
		break;
	case ADVICE_COPIES:
		write_text(to, "%" PRIu64 " copies and fills of %" PRIu64 " bytes take %.3f us "
			   "(%.1f %%); keep tensors on the card", a->copies, a->copy_bytes, us, part);
		break;
	}
}
