/* SPDX-License-Identifier: MIT */
/* Hosts, programs and guarded memory for the tests of the card model. */
#ifndef MODEL_UTIL_H
#define MODEL_UTIL_H

#include <check.h>

#include "model/card.h"

/* ck_assert() writes a record each time it passes: too slow for inner loops. */
#define expect(condition, ...)				\
	do {						\
		if (!(condition))			\
			ck_abort_msg(__VA_ARGS__);	\
	} while (0)

/* xorshift; fixed seeds make every run the same. */
uint64_t rng_next(uint64_t *state);
uint32_t rng_below(uint64_t *state, uint32_t n);
/* Random bytes with plenty of NaN, Inf, zero and subnormal patterns. */
void rng_fill(uint64_t *state, void *p, size_t bytes, uint32_t format);

/* A host on threads, or on one thread in a shuffled order. */
struct test_host {
	struct spyre_host host;
	int threads;
	uint64_t seed;
	int errors;		/* unbalanced FPU sections */
	long polls_left;	/* should_stop says yes after so many; < 0: never */
	struct spyre_worker self;
};

void test_host_init(struct test_host *h, const struct spyre_unit *unit, int threads);
void test_host_done(struct test_host *h);

/* Units that are built in and that this CPU runs; NULL terminated. */
const struct spyre_unit *const *test_units(void);
/* Prints what is skipped, for the log. */
void test_units_report(void);

/* Memory with guard bytes before and after. */
struct guarded {
	uint8_t *base;
	uint8_t *p;
	size_t bytes;
};

void guarded_alloc(struct guarded *g, size_t bytes);
void guarded_free(struct guarded *g);
bool guarded_intact(const struct guarded *g);

/* Builds an image section by section. */
struct builder {
	struct spyre_prog_header header;
	struct spyre_prog_operand operands[SPYRE_MAX_OPERANDS];
	struct spyre_prog_step steps[64];
	struct spyre_prog_stream streams[512];
	uint64_t instrs[32768];
};

void build_start(struct builder *b, uint32_t cores, uint32_t lx_bytes, uint32_t operands);
void build_loop(struct builder *b, uint32_t count);
void build_end(struct builder *b);
void build_phase(struct builder *b);
void build_stream(struct builder *b, uint32_t core);
/* Views are zeroed, all DL16; counts are 1. */
struct spyre_instr *build_instr(struct builder *b, uint32_t opcode, uint32_t func,
				uint32_t dims, uint32_t lanes);
struct spyre_view *build_view(struct spyre_instr *in, uint32_t index, uint32_t operand,
			      uint64_t offset);
/* The image; free() it. */
void *build_image(struct builder *b, size_t *size);
/* Corrects the operand table from what the verifier says; then it verifies. */
void build_seal(void *image, size_t size, uint32_t cores, struct spyre_program *prog);

#endif /* MODEL_UTIL_H */
