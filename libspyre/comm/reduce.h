/* SPDX-License-Identifier: MIT */
/* Kernels that combine the contributions of ranks. Internal. */
#ifndef SPYRE_COMM_REDUCE_H
#define SPYRE_COMM_REDUCE_H

#include <pthread.h>
#include <stdint.h>

#include <spyre/collective.h>

/* Kernels that are kept for each communicator: a few sizes for each operator in use. */
#define COMM_KERNELS 32

struct comm_kernel {
	spyre_kernel *kernel;
	spyre_format format;
	spyre_reduction reduction;
	uint32_t inputs;
	uint64_t sticks;
	uint64_t used;
};

struct comm_reducer {
	/* Protects the kernels, and one that is being launched. */
	pthread_mutex_t lock;
	struct comm_kernel kernels[COMM_KERNELS];
	uint64_t uses;
};

/* SUCCESS if @reduction exists for @format. */
spyre_status comm_reduce_check(spyre_format format, spyre_reduction reduction);

/*
 * Queues the reduction of @n tensors of @bytes, a multiple of 128, in the order of @inputs.
 * @out may be one of them.
 */
spyre_status comm_reduce(struct comm_reducer *reducer, spyre_stream *stream, spyre_format format,
			 spyre_reduction reduction, const spyre_devptr *inputs, uint32_t n,
			 spyre_devptr out, uint64_t bytes);

void comm_reducer_init(struct comm_reducer *reducer);
void comm_reducer_close(struct comm_reducer *reducer);

#endif /* SPYRE_COMM_REDUCE_H */
