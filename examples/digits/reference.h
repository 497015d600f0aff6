/* SPDX-License-Identifier: MIT */
/* The network in fp32 on the host. */
#ifndef DIGITS_REFERENCE_H
#define DIGITS_REFERENCE_H

#include "dataset.h"

/* Logits of one image. */
void reference_logits(const struct weights *weights, const uint8_t *pixels, float logits[CLASSES]);

/* Index of the largest; the first of equals. */
int largest(const float logits[CLASSES]);

#endif /* DIGITS_REFERENCE_H */
