// SPDX-License-Identifier: MIT
/* The network in fp32 on the host, as plainly as it can be written. */
#include "half.h"
#include "reference.h"

void reference_logits(const struct weights *weights, const uint8_t *pixels, float logits[CLASSES])
{
	uint32_t n = weights->hidden;
	float hidden[MAX_HIDDEN];

	for (uint32_t j = 0; j < n; j++) {
		float sum = 0;

		for (int k = 0; k < PIXELS; k++)
			sum += pixels[k] / 16.0f * half_to_float(weights->w1[k * n + j]);
		sum += half_to_float(weights->b1[j]);
		hidden[j] = sum > 0 ? sum : 0;
	}
	for (int j = 0; j < CLASSES; j++) {
		float sum = 0;

		for (uint32_t k = 0; k < n; k++)
			sum += hidden[k] * half_to_float(weights->w2[k * CLASSES + j]);
		logits[j] = sum + half_to_float(weights->b2[j]);
	}
}

int largest(const float logits[CLASSES])
{
	int best = 0;

	for (int j = 1; j < CLASSES; j++)
		if (logits[j] > logits[best])
			best = j;
	return best;
}
