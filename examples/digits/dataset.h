/* SPDX-License-Identifier: MIT */
/* The images (digits.u8, see pack.py) and the trained weights (weights.f16, see train.py). */
#ifndef DIGITS_DATASET_H
#define DIGITS_DATASET_H

#include <stdint.h>

#define PIXELS 64
#define CLASSES 10
#define MAX_HIDDEN 1024

struct images {
	uint32_t count;
	const uint8_t *labels;
	/* [count][PIXELS], 0..16 */
	const uint8_t *pixels;
	/* Position in the whole data set. */
	uint32_t *source;
	uint32_t total;
	void *storage;
};

/* IEEE half precision, row-major. */
struct weights {
	uint32_t hidden;
	const uint16_t *w1; /* [PIXELS][hidden] */
	const uint16_t *b1; /* [hidden] */
	const uint16_t *w2; /* [hidden][CLASSES] */
	const uint16_t *b2; /* [CLASSES] */
	void *storage;
};

/* The held-out third: every image i with i % 3 == 2. Print what is wrong to
 * stderr and return -1. */
int images_load(struct images *images, const char *directory);
void images_free(struct images *images);
int weights_load(struct weights *weights, const char *directory);
void weights_free(struct weights *weights);

#endif /* DIGITS_DATASET_H */
