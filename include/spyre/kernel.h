/* SPDX-License-Identifier: MIT */
/* Kernels: SDSC bundles, loaded and launched. */
#ifndef SPYRE_KERNEL_H
#define SPYRE_KERNEL_H

#include <spyre/layout.h>
#include <spyre/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Direction of a kernel argument. Since 0.1. */
typedef enum spyre_arg_role {
	SPYRE_ARG_INPUT = 1,
	SPYRE_ARG_OUTPUT = 2,
	SPYRE_ARG_INPUT_OUTPUT = 3,
} spyre_arg_role;

/** One argument of a kernel. Since 0.1. */
typedef struct spyre_arg_info {
	/** Position in the argument array. */
	int index;
	spyre_arg_role role;
	spyre_format format;
	/** Device dimensions that the bundle implies, row-major, stick last. */
	uint32_t device_rank;
	int64_t device_size[SPYRE_MAX_DEVICE_RANK];
	/** Bytes that the kernel accesses from the argument's address on. */
	uint64_t bytes;
} spyre_arg_info;

/** Name, sizes and modelled cost of a kernel. Since 0.1. */
typedef struct spyre_kernel_info {
	/** in: sizeof(struct spyre_kernel_info). */
	size_t struct_size;
	/** Root names of its SDSCs, "0_mul+1_add", truncated if necessary. */
	char name[128];
	uint32_t num_args;
	uint32_t num_sdscs;
	uint32_t num_cores;
	uint32_t lx_bytes;
	/**
	 * Bytes of device memory for intermediates, owned by the kernel. Up to eight
	 * streams that run it concurrently get a pool of this size each.
	 */
	uint64_t pool_bytes;
	uint64_t program_bytes;
	/** Modelled cost of one launch. */
	uint64_t cycles;
	uint64_t bytes_read;
	uint64_t bytes_written;
	uint64_t macs;
	/** Symbols that a launch must bind; the values above are for their maxima. */
	uint32_t num_symbols;
	/** Leading bytes of LX that a launch does not clear, see spyre_kernel_options. */
	uint32_t lx_kept;
} spyre_kernel_info;

/** Options of spyre_kernel_load_ex() and spyre_kernel_compile_ex(). Since 0.1. */
typedef struct spyre_kernel_options {
	/** in: sizeof(struct spyre_kernel_options). */
	size_t struct_size;
	/** Compile: cores of the target card, 1 to 32, or 0 for 32. Load: 0. */
	uint32_t cores;
	/**
	 * Bytes at the start of each core's LX that live beyond the kernel, a multiple of
	 * 128 of at most 2 MiB. The tensors that a bundle places there are what the
	 * kernels before it have left, and stay for those behind it; the library's own
	 * intermediate results lie above. A launch finds what the context's launches of
	 * kernels with lx_kept have written, if all of them ran on streams of the same
	 * priority and the caller has ordered them. It is zero in a new context, undefined
	 * after a failure, a reset or a kernel without lx_kept that uses LX, and never
	 * another context's. 0: LX is zero when the kernel starts.
	 */
	uint32_t lx_kept;
} spyre_kernel_options;

/** A symbolic dimension of a kernel. Since 0.1. */
typedef struct spyre_symbol_info {
	char name[32];
	/** Range of values that a launch can bind, inclusive. */
	int64_t min, max;
	/** Values are multiples of this number; 1 if any value of the range is possible. */
	int64_t granularity;
} spyre_symbol_info;

/**
 * Loads a bundle directory (bundle.mlir and its sdsc_*.json), compiles it and has the
 * card verify the program. The compiled form is stored in the directory's
 * spyreCodeDir/ if that is writable, or below SPYRE_KERNEL_CACHE_DIR, and reused as
 * long as no source has changed; SPYRE_KERNEL_CACHE=0 disables both. The caller owns
 * @kernel and unloads it with spyre_kernel_unload(). Since 0.1.
 * Errors: FILE, PARSE, UNSUPPORTED, SPAN_LIMIT, LX_OVERFLOW, VERIFY (each message
 * names the file and the field or operand), OUT_OF_DEVICE_MEMORY, CONFIGURATION
 * (SPYRE_KERNEL_CACHE, or users other than this one and root may write to
 * SPYRE_KERNEL_CACHE_DIR).
 */
SPYRE_API spyre_status spyre_kernel_load(spyre_context *context, const char *directory,
					 spyre_kernel **kernel);

/**
 * Loads a bundle directory as spyre_kernel_load() does, with @options, of which the
 * caller sets struct_size; NULL selects the defaults. A compiled form that keeps another
 * part of LX is neither used nor replaced. Since 0.1.
 * Errors: those of spyre_kernel_load(); INVALID_ARGUMENT.
 */
SPYRE_API spyre_status spyre_kernel_load_ex(spyre_context *context, const char *directory,
					    const spyre_kernel_options *options,
					    spyre_kernel **kernel);

/**
 * Loads a kernel from @bytes of memory at @image: the contents of the init_binary.bin
 * that spyre_kernel_compile() writes. The bytes need no alignment and may come from
 * anyone: every field is checked, and the card verifies the program. They are copied,
 * so the caller may free them after the call. The image of a bundle with symbols holds
 * its files, from which it is compiled here and for the values of launches. Any other
 * image holds neither launch_spec.json nor its sources; launches of such a kernel ignore
 * spyre_launch_arg.host. The library does not check whether the sources have changed. The
 * caller owns @kernel and unloads it with spyre_kernel_unload(). Since 0.1.
 * Errors: PARSE (not an image, truncated or damaged; the message gives the values
 * found and expected), UNSUPPORTED (an image of another version or for more cores than
 * the card has), VERIFY, OUT_OF_DEVICE_MEMORY; of a bundle with symbols also those of
 * spyre_kernel_load().
 */
SPYRE_API spyre_status spyre_kernel_load_image(spyre_context *context, const void *image,
					       size_t bytes, spyre_kernel **kernel);

/**
 * Compiles a bundle directory ahead of time, without a card: writes spyrecode.json and
 * init_binary.bin to @output, or, if that is NULL, to spyreCodeDir in @directory,
 * where spyre_kernel_load() finds them. @cores is the number of cores of the target
 * card, 1 to 32, or 0 for 32. @info is NULL or is filled as by
 * spyre_kernel_get_info(). Since 0.1.
 * Errors: those of spyre_kernel_load().
 */
SPYRE_API spyre_status spyre_kernel_compile(const char *directory, const char *output,
					    uint32_t cores, spyre_kernel_info *info);

/**
 * Compiles a bundle directory as spyre_kernel_compile() does, with @options, of which the
 * caller sets struct_size; NULL selects the defaults. Since 0.1.
 * Errors: those of spyre_kernel_load(); INVALID_ARGUMENT.
 */
SPYRE_API spyre_status spyre_kernel_compile_ex(const char *directory, const char *output,
					       const spyre_kernel_options *options,
					       spyre_kernel_info *info);

/**
 * Unloads a kernel. Launches in flight keep the memory they need until they finish.
 * NULL is allowed and has no effect. Always returns SUCCESS. Since 0.1.
 */
SPYRE_API spyre_status spyre_kernel_unload(spyre_kernel *kernel);

/**
 * Returns the name, sizes and modelled cost of a kernel. The caller sets
 * @info->struct_size. Since 0.1.
 * Errors: INVALID_ARGUMENT.
 */
SPYRE_API spyre_status spyre_kernel_get_info(spyre_kernel *kernel, spyre_kernel_info *info);

/**
 * Returns the role, format and device size of argument @index, 0 to num_args - 1.
 * Since 0.1.
 * Errors: INVALID_ARGUMENT.
 */
SPYRE_API spyre_status spyre_kernel_get_arg(spyre_kernel *kernel, int index,
					    spyre_arg_info *info);

/**
 * Returns the name, range and granularity of symbol @index, 0 to num_symbols - 1. Since 0.1.
 * Errors: INVALID_ARGUMENT.
 */
SPYRE_API spyre_status spyre_kernel_get_symbol(spyre_kernel *kernel, int index,
					       spyre_symbol_info *info);

/** One argument of spyre_launch(). Since 0.1. */
typedef struct spyre_arg {
	spyre_devptr address;
	/** If not NULL: checked against the kernel (format, device_size). */
	const spyre_layout *layout;
} spyre_arg;

/**
 * Queues one execution of @kernel on @stream with @num_args arguments and returns. Any
 * number of threads and streams may launch a kernel concurrently. The argument count,
 * the layouts that are given, and the bytes that the kernel accesses at each address
 * are checked before anything is queued. @args is copied. Since 0.1.
 * Errors: ARGUMENT_MISMATCH, INVALID_ADDRESS, FORMAT, and the stream's error.
 */
SPYRE_API spyre_status spyre_launch(spyre_stream *stream, spyre_kernel *kernel,
				    const spyre_arg *args, uint32_t num_args);

/** The value of a symbol in one launch. Since 0.1. */
typedef struct spyre_binding {
	const char *symbol;
	int64_t value;
} spyre_binding;

/** One argument of spyre_launch_ex(). Since 0.1. */
typedef struct spyre_launch_arg {
	spyre_devptr address;
	/** If not NULL: checked against the kernel (format, device_size, arrangement). */
	const spyre_layout *layout;
	/**
	 * If not NULL: shape and format are checked against launch_spec.json, if the
	 * bundle has one. Data and strides are ignored.
	 */
	const spyre_host_tensor *host;
} spyre_launch_arg;

/** Parameters of spyre_launch_ex(). Since 0.1. */
typedef struct spyre_launch_params {
	/** in: sizeof(struct spyre_launch_params). */
	size_t struct_size;
	const spyre_launch_arg *args;
	uint32_t num_args;
	uint32_t num_bindings;
	/** One entry per symbol of the kernel, in any order. */
	const spyre_binding *bindings;
} spyre_launch_params;

/**
 * Queues one execution as spyre_launch() does, with values for the kernel's symbols
 * and optional checks of host shapes. Tensors are placed as for the symbols' maxima;
 * the values limit the part that the kernel processes. Launches of a kernel with
 * different values may be in flight together. The first launch with new values
 * compiles the kernel for them. The caller sets @params->struct_size; @params and its
 * arrays are copied. Since 0.1.
 * Errors: those of spyre_launch(); ARGUMENT_MISMATCH for a symbol that is unknown,
 * bound twice, unbound, out of range or not a multiple of its granularity; UNSUPPORTED
 * for a value that an operation cannot be cut to.
 */
SPYRE_API spyre_status spyre_launch_ex(spyre_stream *stream, spyre_kernel *kernel,
				       const spyre_launch_params *params);

#ifdef __cplusplus
}
#endif

#endif /* SPYRE_KERNEL_H */
