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
	/**
	 * Device memory for intermediates, owned by the kernel. Streams that run it
	 * at the same time each have as much, up to eight times in all.
	 */
	uint64_t pool_bytes;
	uint64_t program_bytes;
	/** Modelled cost of one launch. */
	uint64_t cycles;
	uint64_t bytes_read;
	uint64_t bytes_written;
	uint64_t macs;
	/** Symbols that a launch has to bind; the figures above are for their maxima. */
	uint32_t num_symbols;
} spyre_kernel_info;

/** A symbolic dimension of a kernel. Since 0.1. */
typedef struct spyre_symbol_info {
	char name[32];
	/** A launch binds a value of this range. */
	int64_t min, max;
} spyre_symbol_info;

/**
 * Loads a bundle directory (bundle.mlir and its sdsc_*.json), compiles it and
 * has the card verify it. The compiled form is kept in spyreCodeDir/ in the
 * directory, where it can be written, and taken from there the next time if
 * nothing has changed (SPYRE_KERNEL_CACHE=0: neither). Since 0.1.
 * Errors: FILE, PARSE, UNSUPPORTED, SPAN_LIMIT, LX_OVERFLOW, VERIFY: each
 * text names the file and the field or operand.
 */
SPYRE_API spyre_status spyre_kernel_load(spyre_context *context, const char *directory,
					 spyre_kernel **kernel);
/**
 * Compiles a bundle directory ahead of time, without a card: writes
 * spyrecode.json and init_binary.bin to @output, or to spyreCodeDir in
 * @directory if that is NULL, where spyre_kernel_load() finds them. @cores: of
 * the card that it is for, 1..32, or 0 for 32. @info: NULL, or filled as by
 * spyre_kernel_get_info(). Since 0.1.
 * Errors: as spyre_kernel_load().
 */
SPYRE_API spyre_status spyre_kernel_compile(const char *directory, const char *output,
					    uint32_t cores, spyre_kernel_info *info);
/** Unloads a kernel; launches in flight keep what they need. NULL is fine. Since 0.1. */
SPYRE_API spyre_status spyre_kernel_unload(spyre_kernel *kernel);
/** What a kernel is and costs. Set struct_size before the call. Since 0.1. */
SPYRE_API spyre_status spyre_kernel_get_info(spyre_kernel *kernel, spyre_kernel_info *info);
/** What a kernel wants of argument @index, 0..num_args - 1. Since 0.1. */
SPYRE_API spyre_status spyre_kernel_get_arg(spyre_kernel *kernel, int index,
					    spyre_arg_info *info);

/** Symbol @index of a kernel, 0..num_symbols - 1. Since 0.1. */
SPYRE_API spyre_status spyre_kernel_get_symbol(spyre_kernel *kernel, int index,
					       spyre_symbol_info *info);

/** One argument of a launch. */
typedef struct spyre_arg {
	spyre_devptr address;
	/** If not NULL: checked against the kernel (format, device_size). */
	const spyre_layout *layout;
} spyre_arg;

/**
 * Queues one run of the kernel. Any number of threads and streams may launch
 * one kernel at the same time. Checked before anything runs: argument count,
 * layouts where given, and that each address lies in an allocation with room
 * for what the kernel reaches. Since 0.1.
 * Errors: ARGUMENT_MISMATCH, INVALID_ADDRESS, FORMAT, and the stream's error.
 */
SPYRE_API spyre_status spyre_launch(spyre_stream *stream, spyre_kernel *kernel,
				    const spyre_arg *args, uint32_t num_args);

/** The value of a symbol in one launch. */
typedef struct spyre_binding {
	const char *symbol;
	int64_t value;
} spyre_binding;

/** One argument of spyre_launch_ex(). */
typedef struct spyre_launch_arg {
	spyre_devptr address;
	/** If not NULL: checked against the kernel (format, device_size, arrangement). */
	const spyre_layout *layout;
	/**
	 * If not NULL: shape and format are checked against what launch_spec.json
	 * says, where there is one. Data and strides are not looked at.
	 */
	const spyre_host_tensor *host;
} spyre_launch_arg;

typedef struct spyre_launch_params {
	/** in: sizeof(struct spyre_launch_params). */
	size_t struct_size;
	const spyre_launch_arg *args;
	uint32_t num_args;
	uint32_t num_bindings;
	/** One per symbol of the kernel, in any order. */
	const spyre_binding *bindings;
} spyre_launch_params;

/**
 * spyre_launch() with values for the kernel's symbols, and with more to check.
 * Tensors lie in memory as for the symbols' maxima; the values limit what the
 * kernel works on. Each launch has its own: launches of one kernel with
 * different values may be in flight together. The first launch with new values
 * compiles the kernel for them. Since 0.1.
 * Errors: those of spyre_launch(); ARGUMENT_MISMATCH for a symbol that is
 * unknown, bound twice, not bound or out of range; UNSUPPORTED for a value that
 * an operation cannot be cut to.
 */
SPYRE_API spyre_status spyre_launch_ex(spyre_stream *stream, spyre_kernel *kernel,
				       const spyre_launch_params *params);

#ifdef __cplusplus
}
#endif

#endif /* SPYRE_KERNEL_H */
