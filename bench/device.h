/* SPDX-License-Identifier: MIT */
/* A card with one stream, tensors on it and kernels built for the occasion. */
#ifndef SPYRE_BENCH_DEVICE_H
#define SPYRE_BENCH_DEVICE_H

#include "bench/bench.h"

struct bench_device {
	spyre_context *context;
	spyre_stream *stream;
};

/* A dense tensor: host description, device layout and memory. */
struct bench_tensor {
	spyre_host_tensor host;
	spyre_layout layout;
	spyre_devptr address;
};

bool bench_device_open(struct bench_device *device);	/* card 0 */
bool bench_device_open_card(struct bench_device *device, int card);
void bench_device_close(struct bench_device *device);

/* @data may be NULL if it is never copied. */
bool bench_tensor_create(struct bench_device *device, struct bench_tensor *tensor, void *data,
			 spyre_format format, uint32_t rank, const int64_t *size);

/* Builds the bundle of @op for these operands in a temporary folder, loads it
 * and removes the folder again. */
bool bench_kernel_build(struct bench_device *device, const char *op,
			const struct bench_tensor *tensors, uint32_t count, uint32_t cores,
			spyre_kernel **kernel);

/* Loads the bundle in @directory / @name. */
bool bench_kernel_load(struct bench_device *device, const char *directory, const char *name,
		       spyre_kernel **kernel);

#endif /* SPYRE_BENCH_DEVICE_H */
