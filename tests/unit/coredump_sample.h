/* SPDX-License-Identifier: MIT */
/* A coredump as a card would write it, for tests of its readers. */
#ifndef COREDUMP_SAMPLE_H
#define COREDUMP_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#define COREDUMP_SAMPLE_MAX 8192

/* Writes a dump to @data and returns its size. */
size_t coredump_sample(uint8_t data[COREDUMP_SAMPLE_MAX]);

#endif /* COREDUMP_SAMPLE_H */
