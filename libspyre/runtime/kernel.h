/* SPDX-License-Identifier: MIT */
/* A loaded kernel. Internal. */
#ifndef SPYRE_RUNTIME_KERNEL_H
#define SPYRE_RUNTIME_KERNEL_H

#include "libspyre/runtime/stream.h"
#include "libspyre/sdsc/parse/source.h"

/* The program for one set of values of the symbols. */
struct kernel_variant {
	TAILQ_ENTRY(kernel_variant) link;
	uint32_t refs;			/* under the kernel's variants_lock */
	int64_t values[BUNDLE_MAX_SYMBOLS];
	struct spyre_program_handle *program;
	uint32_t num_operands;
	struct spyre_bundle_operand operands[SPYRE_MAX_OPERANDS];
};

/* Memory that launches keep their intermediates in, and the last launch that has it. */
struct kernel_pool {
	TAILQ_ENTRY(kernel_pool) link;
	spyre_devptr address;
	struct spyre_stream *stream;	/* holds a reference */
	uint64_t seq;
};

struct spyre_kernel {
	TAILQ_ENTRY(spyre_kernel) link;
	struct spyre_context *context;
	_Atomic uint32_t refs;
	/* Its image is gone once the card has it. */
	struct spyre_bundle bundle;
	size_t image_bytes;
	struct spyre_program_handle *program;	/* for the symbols' maxima */
	/* Memory for intermediates, the latest used first; under the lock. */
	pthread_mutex_t pools_lock;
	TAILQ_HEAD(kernel_pool_list, kernel_pool) pools;
	uint32_t num_pools;
	/* With symbols: what programs for other values come from, and these. */
	struct bundle_source *source;
	pthread_mutex_t variants_lock;
	TAILQ_HEAD(kernel_variant_list, kernel_variant) variants;	/* latest used first */
	uint32_t num_variants;
};

spyre_status kernel_check(const struct spyre_kernel *kernel);
/* Has the card verify and keep the program of @bundle. */
spyre_status kernel_create_program(struct spyre_kernel *kernel, const struct spyre_bundle *bundle,
				   struct spyre_program_handle **program);

/*
 * The program for @values, compiled if it is not among the latest used. @out is
 * NULL for the maxima, whose program is the kernel's own; else it is to be put.
 */
spyre_status kernel_variant_get(struct spyre_kernel *kernel, const int64_t *values,
				struct kernel_variant **out);
void kernel_variants_drop(struct spyre_kernel *kernel);

/* kernel_pool.c: these with pools_lock held, but for kernel_pools_drop() */
spyre_status kernel_pool_add(struct spyre_kernel *kernel);
/* Memory for a launch on @stream, which waits for another stream if need be. */
spyre_status kernel_pool_take(struct spyre_kernel *kernel, struct spyre_stream *stream,
			      struct kernel_pool **pool);
/* Operation @seq of @stream has it now. */
void kernel_pool_used(struct spyre_kernel *kernel, struct kernel_pool *pool,
		      struct spyre_stream *stream, uint64_t seq);
void kernel_pools_drop(struct spyre_kernel *kernel);

#endif /* SPYRE_RUNTIME_KERNEL_H */
