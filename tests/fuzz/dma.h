/* SPDX-License-Identifier: MIT */
/* Inputs of fuzz-dma, and the forms by which they are counted. */
#ifndef SPYRE_FUZZ_DMA_H
#define SPYRE_FUZZ_DMA_H

#include "model/card.h"

#define DMA_MAX_BYTES (128u << 10)	/* of a span */

enum dma_input_kind {
	DMA_INPUT_TRANSFER,	/* the descriptor */
	DMA_INPUT_STREAM,	/* its last two dims as one call of a unit, bypassing the caches */
	DMA_INPUT_COPY,		/* within device memory */
	DMA_INPUT_FILL,
	DMA_INPUT_KINDS
};

struct dma_input {
	struct spyre_dma_desc desc;
	uint64_t host_bytes;
	uint32_t kind;
	uint32_t seed;		/* of the bytes and of their location */
};

/* Transfers in either direction, with or without padding lanes. */
enum dma_form {
	DMA_FORM_ROWS,		/* lanes are contiguous on the host */
	DMA_FORM_STRIDED,	/* neither lanes nor rows are */
	DMA_FORM_TRANSPOSED,	/* rows are contiguous on the host */
	DMA_FORM_TILE,		/* as TRANSPOSED, with 64 rows whose valid lanes are 128 bytes */
	DMA_FORM_REPEATED,	/* one element in all lanes */
	DMA_FORM_SHAPES,
	DMA_FORM_PADDED = DMA_FORM_SHAPES,
	DMA_FORM_D2H = 2 * DMA_FORM_SHAPES,
	DMA_FORM_STREAM = 4 * DMA_FORM_SHAPES,
	DMA_FORM_STREAM_D2H,
	DMA_FORM_COPY,
	DMA_FORM_COPY_OVERLAP,
	DMA_FORM_FILL,
	DMA_FORMS
};

/* Supported pairs of a host and a device format; pair 0 stands for no pair. */
uint32_t dma_pairs(void);
uint32_t dma_pair(uint32_t host_format, uint32_t device_format);
void dma_pair_formats(uint32_t pair, uint32_t *host_format, uint32_t *device_format);

/* Creates a random input; cycles through all forms and pairs. */
void dma_make(struct dma_input *input);

#endif /* SPYRE_FUZZ_DMA_H */
