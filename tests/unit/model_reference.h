/* SPDX-License-Identifier: MIT */
/*
 * An independent, naive implementation of the card's arithmetic and of its DMA
 * engine, one element at a time; model_checked.h runs programs with it.
 */
#ifndef MODEL_REFERENCE_H
#define MODEL_REFERENCE_H

#include "model/card.h"

void reference_dma(const struct spyre_dma_desc *desc, uint8_t *device, uint8_t *host,
		   uint64_t host_bytes);

/*
 * Offsets of element @index of a box on both sides, in bytes; returns false past the last
 * element.
 */
bool reference_box_at(const struct spyre_dma_desc *desc, uint64_t index, uint64_t *host,
		      uint64_t *device);
/* Moves one element, which has the host's byte order on the host. */
void reference_move(const struct spyre_dma_desc *desc, uint8_t *device, uint8_t *host);
void reference_box(const struct spyre_dma_desc *desc, uint8_t *device, uint8_t *host);

/* Converts one element by the DMA engine's rules. */
void reference_convert(uint32_t to, uint8_t *dst, uint32_t from, const uint8_t *src);

/* Loads element @lane of a row as the float that the SFU computes with. */
float reference_load(uint32_t format, const uint8_t *p, uint32_t lane);
void reference_store(uint32_t format, uint8_t *p, uint32_t lane, float x);
/* Applies a pointwise function that consists of IEEE operations. */
float reference_apply(uint32_t func, const uint32_t *imm, uint32_t coord, const float *x);
/* Reductions: the start value, each element, the tree over 128 accumulators, the result. */
float reference_first(uint32_t func);
float reference_combine(uint32_t func, float acc, float x, float y, bool square);
void reference_across(uint32_t func, float *acc);
void reference_finish(uint32_t func, float factor, float *acc, const float *squares);

/* The same of integer functions: elements are 32-bit integers, and their order is irrelevant. */
int32_t reference_load_integer(uint32_t format, const uint8_t *p, uint32_t lane);
void reference_store_integer(uint32_t format, uint8_t *p, uint32_t lane, int32_t x);
int32_t reference_apply_integer(uint32_t func, const int32_t *x);
int32_t reference_first_integer(uint32_t func);
int32_t reference_combine_integer(uint32_t func, int32_t acc, int32_t x);

#endif /* MODEL_REFERENCE_H */
