/* SPDX-License-Identifier: MIT */
/* A second, naive implementation of the card: one element at a time. */
#ifndef MODEL_REFERENCE_H
#define MODEL_REFERENCE_H

#include "model/card.h"

void reference_exec(const struct spyre_program *prog, uint8_t *const *operand,
		    uint8_t *const *lx);
void reference_dma(const struct spyre_dma_desc *desc, uint8_t *device, uint8_t *host,
		   uint64_t host_bytes);

#endif /* MODEL_REFERENCE_H */
