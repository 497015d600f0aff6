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

/* Shapes of boxes, by the dim that is contiguous on the device: the lanes. */
enum dma_box_shape {
	DMA_BOX_ROWS,		/* lanes are contiguous on the host as well */
	DMA_BOX_LONG,		/* more lanes than the engine has in a row */
	DMA_BOX_STRIDED,	/* no dim is contiguous on the host */
	DMA_BOX_TRANSPOSED,	/* another dim is contiguous on the host */
	DMA_BOX_TILE,		/* as TRANSPOSED, with 64 rows and lanes of 128 bytes */
	DMA_BOX_SCATTERED,	/* no dim is contiguous on the device */
	DMA_BOX_REPEATED,	/* a dim repeats its source */
	DMA_BOX_SHAPES
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
	DMA_FORM_BOX,
	DMA_FORM_BOX_D2H = DMA_FORM_BOX + DMA_BOX_SHAPES,
	DMA_FORMS = DMA_FORM_BOX_D2H + DMA_BOX_SHAPES
};

/* Supported pairs of a host and a device format; pair 0 stands for no pair. */
uint32_t dma_pairs(void);
uint32_t dma_pair(uint32_t host_format, uint32_t device_format);
void dma_pair_formats(uint32_t pair, uint32_t *host_format, uint32_t *device_format);

/* Makes a random box of the direction and formats in @input->desc, and its host_bytes. */
void dma_make_box(struct dma_input *input, enum dma_box_shape shape);
enum dma_box_shape dma_box_shape(const struct spyre_dma_desc *desc);

/* Creates a random input; cycles through all forms and pairs. */
void dma_make(struct dma_input *input);

#endif /* SPYRE_FUZZ_DMA_H */
