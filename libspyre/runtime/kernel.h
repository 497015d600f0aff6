/* SPDX-License-Identifier: MIT */
/* A loaded kernel. Internal. */
#ifndef SPYRE_RUNTIME_KERNEL_H
#define SPYRE_RUNTIME_KERNEL_H

#include "libspyre/runtime/stream.h"
#include "libspyre/sdsc/lower/rows.h"
#include "libspyre/sdsc/parse/source.h"

/* The sizes that a program is made for: values of the symbols, bytes of the tables by argument. */
struct kernel_sizes {
	int64_t values[BUNDLE_MAX_SYMBOLS];
	uint64_t bytes[SPYRE_MAX_OPERANDS];	/* 0: not a table */
};

/* The program for some sizes. */
struct kernel_variant {
	TAILQ_ENTRY(kernel_variant) link;
	uint32_t refs;			/* protected by the kernel's variants_lock */
	struct kernel_sizes sizes;
	struct spyre_program_handle *program;
	uint32_t num_operands;
	struct spyre_bundle_operand operands[SPYRE_MAX_OPERANDS];
};

/* Memory for the intermediates of launches, and the last launch that uses it. */
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
	/* The image is freed once the card has a copy, unless there are tables. */
	struct spyre_bundle bundle;
	bool has_tables;
	struct rows_width width[SPYRE_MAX_OPERANDS];	/* of the tables, by argument */
	size_t image_bytes;
	struct spyre_program_handle *program;	/* for the symbols' maxima and tables of one row */
	/* Memory for intermediates, most recently used first; protected by the lock. */
	pthread_mutex_t pools_lock;
	TAILQ_HEAD(kernel_pool_list, kernel_pool) pools;
	uint32_t num_pools;
	/* Kernels with symbols: the source of programs for other values. */
	struct bundle_source *source;
	/* The programs for other sizes. */
	pthread_mutex_t variants_lock;
	TAILQ_HEAD(kernel_variant_list, kernel_variant) variants;	/* in LRU order */
	uint32_t num_variants;
};

spyre_status kernel_check(const struct spyre_kernel *kernel);
/* Creates the program of @bundle on the card, which verifies it and may take its image. */
spyre_status kernel_create_program(struct spyre_kernel *kernel, struct spyre_bundle *bundle,
				   struct spyre_program_handle **program);
/* Makes a malloc'd copy of the image of @bundle. */
spyre_status kernel_copy_image(const struct spyre_bundle *bundle, void **copy);

/*
 * Gets the program for @sizes, whose unused entries are 0, and makes it if it is not cached.
 * *@out is NULL if the kernel's own program is the one; else the caller puts it.
 */
spyre_status kernel_variant_get(struct spyre_kernel *kernel, const struct kernel_sizes *sizes,
				struct kernel_variant **out);
void kernel_variants_drop(struct spyre_kernel *kernel);

/* kernel_pool.c: callers hold pools_lock, except for kernel_pools_drop() */
spyre_status kernel_pool_add(struct spyre_kernel *kernel);
/* Gets memory for a launch on @stream; if all is in use, @stream waits for another stream. */
spyre_status kernel_pool_take(struct spyre_kernel *kernel, struct spyre_stream *stream,
			      struct kernel_pool **pool);
/* Records that operation @seq of @stream uses @pool. */
void kernel_pool_used(struct spyre_kernel *kernel, struct kernel_pool *pool,
		      struct spyre_stream *stream, uint64_t seq);
void kernel_pools_drop(struct spyre_kernel *kernel);

#endif /* SPYRE_RUNTIME_KERNEL_H */
