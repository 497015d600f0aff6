/* SPDX-License-Identifier: MIT */
/* Kernels: SDSC bundles, loaded and launched. */
#ifndef SPYRE_KERNEL_H
#define SPYRE_KERNEL_H

#include <spyre/layout.h>
#include <spyre/types.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum spyre_arg_role {
	SPYRE_ARG_INPUT = 1,
	SPYRE_ARG_OUTPUT = 2,
	SPYRE_ARG_INPUT_OUTPUT = 3,
} spyre_arg_role;

/** What a kernel wants of one argument. Since 0.1. */
typedef struct spyre_arg_info {
	/** Position in the argument array. */
	int index;
	spyre_arg_role role;
	spyre_format format;
	/** Device dimensions as the bundle implies them, row-major, stick last. */
	uint32_t device_rank;
	int64_t device_size[SPYRE_MAX_DEVICE_RANK];
	/** Bytes that the kernel reaches from the argument's address. */
	uint64_t bytes;
} spyre_arg_info;

typedef struct spyre_kernel_info {
	/** in: sizeof(struct spyre_kernel_info). */
	size_t struct_size;
	/** Root names of its SDSCs, "0_mul+1_add"; cut to fit. */
	char name[128];
	uint32_t num_args;
	uint32_t num_sdscs;
	uint32_t num_cores;
	uint32_t lx_bytes;
	/** Device memory for intermediates, owned by the kernel. */
	uint64_t pool_bytes;
	uint64_t program_bytes;
	/** Modelled cost of one launch. */
	uint64_t cycles;
	uint64_t bytes_read;
	uint64_t bytes_written;
	uint64_t macs;
} spyre_kernel_info;

/**
 * Loads a bundle directory (bundle.mlir and its sdsc_*.json), compiles it and
 * has the card verify it. Since 0.1.
 * Errors: FILE, PARSE, UNSUPPORTED, SPAN_LIMIT, LX_OVERFLOW, VERIFY: each
 * text names the file and the field or operand.
 */
SPYRE_API spyre_status spyre_kernel_load(spyre_context *context, const char *directory,
					 spyre_kernel **kernel);
/** Unloads a kernel; launches in flight keep what they need. NULL is fine. Since 0.1. */
SPYRE_API spyre_status spyre_kernel_unload(spyre_kernel *kernel);
/** What a kernel is and costs. Set struct_size before the call. Since 0.1. */
SPYRE_API spyre_status spyre_kernel_get_info(spyre_kernel *kernel, spyre_kernel_info *info);
/** What a kernel wants of argument @index, 0..num_args - 1. Since 0.1. */
SPYRE_API spyre_status spyre_kernel_get_arg(spyre_kernel *kernel, int index,
					    spyre_arg_info *info);

/** One argument of a launch. */
typedef struct spyre_arg {
	spyre_devptr address;
	/** If not NULL: checked against the kernel (format, device_size). */
	const spyre_layout *layout;
} spyre_arg;

/**
 * Queues one run of the kernel. Checked before anything runs: argument count,
 * layouts where given, and that each address lies in an allocation with room
 * for what the kernel reaches. Since 0.1.
 * Errors: ARGUMENT_MISMATCH, INVALID_ADDRESS, FORMAT, and the stream's error.
 */
SPYRE_API spyre_status spyre_launch(spyre_stream *stream, spyre_kernel *kernel,
				    const spyre_arg *args, uint32_t num_args);

#ifdef __cplusplus
}
#endif

#endif /* SPYRE_KERNEL_H */
