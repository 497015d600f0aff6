/* SPDX-License-Identifier: MIT */
/* A conversion loop between dense rows of fp16 and sticks of DL16, the peer of tiled copies. */
#ifndef SPYRE_BENCH_CONVERT_H
#define SPYRE_BENCH_CONVERT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns false if this CPU lacks F16C; the functions below must not be called then. */
bool bench_can_convert(void);

/* @columns is a multiple of 64; both sides have @rows * @columns elements. */
void bench_convert_to_card(uint16_t *dst, const uint16_t *src, size_t rows, size_t columns);
void bench_convert_to_host(uint16_t *dst, const uint16_t *src, size_t rows, size_t columns);

#endif /* SPYRE_BENCH_CONVERT_H */
