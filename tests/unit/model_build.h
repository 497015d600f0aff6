/* SPDX-License-Identifier: MIT */
/* Random numbers, and images of programs, for tests and fuzzers of the card model. */
#ifndef MODEL_BUILD_H
#define MODEL_BUILD_H

#include "model/card.h"

/* xorshift; fixed seeds make every run the same. */
uint64_t rng_next(uint64_t *state);
uint32_t rng_below(uint64_t *state, uint32_t n);
/* Fills with random bytes, with many NaN, Inf, zero and subnormal patterns. */
void rng_fill(uint64_t *state, void *p, size_t bytes, uint32_t format);

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
/* Views are zeroed and DL16; counts are 1. */
struct spyre_instr *build_instr(struct builder *b, uint32_t opcode, uint32_t func,
				uint32_t dims, uint32_t lanes);
/* Adds views to the last instruction: the indices of GATHER and SCATTER. */
void build_more_views(struct builder *b, struct spyre_instr *in, uint32_t views);
struct spyre_view *build_view(struct spyre_instr *in, uint32_t index, uint32_t operand,
			      uint64_t offset);
/* Returns the image; the caller frees it. */
void *build_image(struct builder *b, size_t *size);
/*
 * Corrects the operand table from the verifier's errors; returns false, with @err,
 * if the program is refused for another reason.
 */
bool build_settle(void *image, size_t size, uint32_t cores, struct spyre_program *prog,
		  struct spyre_verify_error *err);

#endif /* MODEL_BUILD_H */
