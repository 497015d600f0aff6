/* SPDX-License-Identifier: MIT */
/* Random valid programs with defined results. */
#ifndef MODEL_GENERATE_H
#define MODEL_GENERATE_H

#include "model_build.h"

#define GENERATE_CORES 4u
/* Operands that programs read; they write the others. */
#define GENERATE_INPUTS 4u
#define GENERATE_OPERANDS 6u
/* The input whose 32-bit integers are indices of GATHER and SCATTER. */
#define GENERATE_INDICES 3u

/*
 * Generates the program of @seed: any opcode, function and format, loops, ring,
 * splats, several cores and phases. Indices are below their extents. One in three keeps a
 * part of the LX. @small: fewer and shorter, for fuzzers. The caller frees the image.
 * Returns NULL, with @err, if the verifier refuses it.
 */
void *generate_program(uint64_t seed, bool small, size_t *size, struct spyre_program *prog,
		       struct spyre_verify_error *err);

/* Fills an operand of a generated program before it runs. */
void generate_operand(uint64_t seed, uint32_t operand, void *p, size_t bytes);

#endif /* MODEL_GENERATE_H */
