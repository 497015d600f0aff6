/* SPDX-License-Identifier: MIT */
/*
 * A slow interpreter of verified programs: it computes one element at a time with
 * the reference arithmetic, and checks every address against the operand's extent
 * and access flags, the LX and the core that may write it.
 */
#ifndef MODEL_CHECKED_H
#define MODEL_CHECKED_H

#include "model/card.h"

/*
 * Runs the program. Returns false if an access is not permitted; @fault then
 * describes the access, which is not made. An index that is not below its extent ends
 * the program and is described likewise; @fault begins with "index".
 */
bool checked_exec(const struct spyre_program *prog, uint8_t *const *operand, uint8_t *const *lx,
		  char *fault, size_t fault_bytes);

/* The last access to a byte: instruction, element of it, core. */
struct checked_byte {
	uint32_t written, read;		/* numbers of instructions, 0: none */
	uint32_t write_element, read_element;
	uint8_t write_core, read_core;
};

/*
 * Detects results that depend on an order which docs/isa.md leaves open: outputs
 * that overlap inputs other than element by element, or points of themselves, and
 * cores that access the same data in one phase. The caller allocates the arrays,
 * zeroed, one for each operand and LX with its length, and may reuse them for the
 * next program.
 */
struct checked_order {
	struct checked_byte *operand[SPYRE_MAX_OPERANDS];
	struct checked_byte *lx[SPYRE_MAX_CORES];
	uint32_t instr;			/* continues from program to program */
	uint64_t accesses;		/* remaining; at 0 the run is given up */
	bool open;			/* the order is not defined */
	bool given_up;
	bool index;			/* ended at an index that is not below its extent */
};

/* The same; ends early if @order sets open or given_up. */
bool checked_exec_ordered(const struct spyre_program *prog, uint8_t *const *operand,
			  uint8_t *const *lx, struct checked_order *order, char *fault,
			  size_t fault_bytes);

#endif /* MODEL_CHECKED_H */
