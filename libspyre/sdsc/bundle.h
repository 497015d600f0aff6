/* SPDX-License-Identifier: MIT */
/* Compiler: bundle directory -> program image. Internal. */
#ifndef SPYRE_BUNDLE_H
#define SPYRE_BUNDLE_H

#include <spyre/kernel.h>

#include "model/program.h"

enum spyre_operand_kind {
	SPYRE_OPERAND_ARG,	/* kernel argument number `arg` */
	SPYRE_OPERAND_POOL,	/* intermediates, allocated with the kernel */
};

struct spyre_bundle_operand {
	enum spyre_operand_kind kind;
	uint32_t arg;
};

/* A compiled bundle; owns what it points to. */
struct spyre_bundle {
	void *image;
	size_t image_bytes;
	/* operand i of the program's operand table */
	uint32_t num_operands;
	struct spyre_bundle_operand operands[SPYRE_MAX_OPERANDS];
	/* kernel arguments, by index */
	uint32_t num_args;
	spyre_arg_info args[SPYRE_MAX_OPERANDS];
	uint64_t pool_bytes;
	uint32_t num_sdscs;
	uint32_t num_cores;
	uint32_t lx_bytes;
	char name[128];
};

/* @max_cores: cores of the card. Errors as spyre_kernel_load(). */
spyre_status spyre_bundle_compile(const char *directory, uint32_t max_cores,
				  struct spyre_bundle *bundle);
void spyre_bundle_fini(struct spyre_bundle *bundle);

#endif /* SPYRE_BUNDLE_H */
