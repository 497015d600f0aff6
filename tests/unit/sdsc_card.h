/* SPDX-License-Identifier: MIT */
/*
 * A bundle on a bare card: compiles, verifies and executes it in memory of the
 * test, and computes the expected output from the case's tensors.
 */
#ifndef SDSC_CARD_H
#define SDSC_CARD_H

#include <spyre/spyre.h>

#define CARD_MAX_RANK 7
#define CARD_MAX_TENSORS 5

struct card_tensor {
	uint32_t rank;
	int64_t shape[CARD_MAX_RANK];
	uint32_t device_rank;
	int64_t device_size[8], stride_map[8];
	spyre_format format;	/* SEN169_FP16 or IEEE_FP32 */
	bool output, zero_padding;
	char init[16];
	double *value;		/* dense, row-major */
	uint8_t *device;
	size_t device_bytes;
};

struct card_case {
	uint32_t count;
	struct card_tensor tensor[CARD_MAX_TENSORS];	/* by argument number */
	char reference[192];
	double rtol, atol;
};

void card_read_case(const char *directory, struct card_case *c);
/* Draws inputs, runs the bundle, compares the outputs; fails the test on any difference. */
void card_run_case(const char *directory, struct card_case *c, uint32_t cores);
void card_free_case(struct card_case *c);

#endif /* SDSC_CARD_H */
