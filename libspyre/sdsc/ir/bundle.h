/* SPDX-License-Identifier: MIT */
/* A compiled bundle: the program image and its operands. Internal. */
#ifndef SPYRE_BUNDLE_H
#define SPYRE_BUNDLE_H

#include <spyre/kernel.h>

#include "model/program.h"

enum spyre_operand_kind {
	SPYRE_OPERAND_ARG,	/* kernel argument number `arg` */
	SPYRE_OPERAND_POOL,	/* intermediates, allocated with the kernel: 0 the pool,
				 * 1 + n allocation n of bundle.mlir */
};

struct spyre_bundle_operand {
	enum spyre_operand_kind kind;
	uint32_t arg;
	uint64_t offset;	/* POOL: within the kernel's pool_bytes */
};

#define BUNDLE_MAX_SYMBOLS 8u
#define BUNDLE_SYMBOL_BYTES 32u

/* A symbol that a launch binds. */
struct bundle_symbol {
	char name[BUNDLE_SYMBOL_BYTES];
	int64_t min, max;
	int64_t granularity;	/* values are multiples of it */
	uint32_t input;		/* place among the values that follow the addresses of a launch */
};

/* Properties of an argument from launch_spec.json that the SDSCs do not imply. */
struct bundle_arg_spec {
	bool has_shape, has_layout;
	spyre_format dtype;	/* INVALID if not given */
	uint32_t rank;
	int64_t shape[SPYRE_MAX_RANK];	/* -1 - n: symbol n */
	spyre_element_arrangement arrangement;
};

#define BUNDLE_LABEL_BYTES 64u

/* The name of an SDSC, and the first step of the program that belongs to it. */
struct bundle_label {
	uint32_t first_step;
	char name[BUNDLE_LABEL_BYTES];
};

/* A compiled bundle; owns the memory of its pointers. */
struct spyre_bundle {
	void *image;
	size_t image_bytes;
	/* operand i of the program's operand table */
	uint32_t num_operands;
	struct spyre_bundle_operand operands[SPYRE_MAX_OPERANDS];
	/* kernel arguments, by index */
	uint32_t num_args;
	spyre_arg_info args[SPYRE_MAX_OPERANDS];
	struct bundle_arg_spec specs[SPYRE_MAX_OPERANDS];
	/* Tables: the program is for one row, rows_of_launch() sets their number. */
	bool table[SPYRE_MAX_OPERANDS];
	bool named_args;	/* addresses are symbols, not baked */
	uint32_t num_symbols;
	struct bundle_symbol symbols[BUNDLE_MAX_SYMBOLS];
	uint64_t pool_bytes;
	uint32_t num_sdscs;
	uint32_t num_cores;
	uint32_t lx_bytes;
	uint32_t lx_kept;	/* of lx_bytes, as the program's header says */
	uint32_t lx_asked;	/* spyre_kernel_options.lx_kept, which may be beyond lx_bytes */
	char name[128];
	/* For traces, in the order of the steps; none in a compiled form. */
	uint32_t num_labels;
	struct bundle_label *labels;
	bool cached;		/* from a compiled form, so the verifier may reject it */
};

void spyre_bundle_fini(struct spyre_bundle *bundle);

#endif /* SPYRE_BUNDLE_H */
