// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include "bench/device.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>

bool bench_device_open(struct bench_device *device)
{
	return bench_device_open_card(device, 0);
}

bool bench_device_open_card(struct bench_device *device, int card)
{
	*device = (struct bench_device){ 0 };
	return !bench_failed(spyre_context_create(card, 0, &device->context), "opening a card") &&
	       !bench_failed(spyre_stream_from_pool(device->context, 0, &device->stream),
			     "getting a stream");
}

void bench_device_close(struct bench_device *device)
{
	bench_failed(spyre_context_destroy(device->context), "closing the card");
}

bool bench_tensor_create(struct bench_device *device, struct bench_tensor *tensor, void *data,
			 spyre_format format, uint32_t rank, const int64_t *size)
{
	uint64_t bytes;

	if (bench_failed(spyre_host_tensor_dense(&tensor->host, data, format, rank, size),
			 "describing a tensor") ||
	    bench_failed(spyre_layout_init(&tensor->layout, rank, size, format),
			 "laying out a tensor"))
		return false;
	bytes = spyre_layout_alloc_bytes(&tensor->layout, rank, size, format);
	return !bench_failed(spyre_mem_alloc(device->context, bytes, &tensor->address),
			     "allocating a tensor");
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk)
{
	return remove(path);
}

bool bench_kernel_build(struct bench_device *device, const char *op,
			const struct bench_tensor *tensors, uint32_t count, uint32_t cores,
			spyre_kernel **kernel)
{
	char directory[] = "/tmp/spyre-bench-XXXXXX";
	spyre_sdsc_operand operand[4] = { 0 };
	bool ok;

	if (count > 4 || !mkdtemp(directory)) {
		fprintf(stderr, "spyre-bench: cannot make a folder %s\n", directory);
		return false;
	}
	for (uint32_t i = 0; i < count; i++) {
		operand[i].rank = tensors[i].host.rank;
		for (uint32_t d = 0; d < tensors[i].host.rank; d++)
			operand[i].size[d] = tensors[i].host.size[d];
		operand[i].layout = tensors[i].layout;
	}
	ok = !bench_failed(spyre_sdsc_build(op, operand, count, cores, directory),
			   "building a bundle") &&
	     !bench_failed(spyre_kernel_load(device->context, directory, kernel),
			   "loading a bundle");
	nftw(directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
	return ok;
}

bool bench_kernel_load(struct bench_device *device, const char *directory, const char *name,
		       spyre_kernel **kernel)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return !bench_failed(spyre_kernel_load(device->context, path, kernel),
			     "loading a bundle");
}
