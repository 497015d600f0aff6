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

#endif /* MODEL_CHECKED_H */
