/* SPDX-License-Identifier: MIT */
/* Hosts and guarded memory for the tests of the card model. */
#ifndef MODEL_UTIL_H
#define MODEL_UTIL_H

#include <check.h>

#include "model_build.h"

/* ck_assert() writes a record on every success, which is too slow for inner loops. */
#define expect(condition, ...)				\
	do {						\
		if (!(condition))			\
			ck_abort_msg(__VA_ARGS__);	\
	} while (0)

/* A host with threads, or with one thread that runs tasks in a shuffled order. */
struct test_host {
	struct spyre_host host;
	int threads;
	uint64_t seed;
	int errors;		/* unbalanced FPU sections */
	long polls_left;	/* should_stop() returns true after this many; < 0: never */
	struct spyre_worker self;
};

void test_host_init(struct test_host *h, const struct spyre_unit *unit, int threads);
void test_host_done(struct test_host *h);

/* The units in this build that this CPU can run; NULL-terminated. */
const struct spyre_unit *const *test_units(void);
/* Prints the skipped units to the log; returns the number of the others. */
int test_units_report(void);

/* Memory with guard bytes before and after. */
struct guarded {
	uint8_t *base;
	uint8_t *p;
	size_t bytes;
};

void guarded_alloc(struct guarded *g, size_t bytes);
void guarded_free(struct guarded *g);
bool guarded_intact(const struct guarded *g);

/* Corrects the operand table from the verifier's errors; then it verifies. */
void build_seal(void *image, size_t size, uint32_t cores, struct spyre_program *prog);

#endif /* MODEL_UTIL_H */
