/* SPDX-License-Identifier: MIT */
/*
 * A slow interpreter of verified programs: one element at a time, with the
 * reference arithmetic, and with every address held against the operand's
 * extent and access flags, the LX and the core that may write it.
 */
#ifndef MODEL_CHECKED_H
#define MODEL_CHECKED_H

#include "model/card.h"

/*
 * Runs the program.  Returns false if an access was not allowed; it is then
 * described in @fault, and was not made.
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
 * Tells if results depend on an order that docs/isa.md leaves open: outputs that
 * overlap inputs other than element for element, or points of themselves, and
 * cores that meet in one phase.  The caller makes the arrays, zeroed, one as
 * long as each operand and LX, and may use them for the next program.
 */
struct checked_order {
	struct checked_byte *operand[SPYRE_MAX_OPERANDS];
	struct checked_byte *lx[SPYRE_MAX_CORES];
	uint32_t instr;			/* counts on from program to program */
	uint64_t accesses;		/* that are left; then the run is given up */
	bool open;			/* the order is not defined */
	bool given_up;
};

/* The same; ends early if @order says open or given_up. */
bool checked_exec_ordered(const struct spyre_program *prog, uint8_t *const *operand,
			  uint8_t *const *lx, struct checked_order *order, char *fault,
			  size_t fault_bytes);

#endif /* MODEL_CHECKED_H */
