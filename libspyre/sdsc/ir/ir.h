/* SPDX-License-Identifier: MIT */
/*
 * The parsed bundle: the statements of bundle.mlir and the contents of each SDSC
 * file, checked and with names replaced by indices. Internal.
 */
#ifndef SPYRE_SDSC_IR_H
#define SPYRE_SDSC_IR_H

#include <spyre/types.h>

#include "libspyre/base/region.h"
#include "model/program.h"

#define IR_MAX_DIMS 12u
#define IR_MAX_TENSORS 8u
#define IR_MAX_MASKS 32u
#define IR_MAX_CONSTANTS 8u
#define IR_MAX_PARTS 4u		/* of a stick */
#define IR_NAME_BYTES 64u
#define IR_MAX_FILE_BYTES (64u << 20)
#define IR_SEGMENT_SHIFT 34
#define IR_MAX_MEM (SPYRE_MAX_OPERANDS - 1)
#define IR_SYMBOL_BYTES 32u
#define IR_MAX_SIZE_PARAMS 8u
#define IR_NO_DIM UINT32_MAX

/* A value of bundle.mlir: base + constant + sum of per_iter[level] * iteration of the loop. */
enum ir_base {
	IR_BASE_NONE,
	IR_BASE_ARG,
	IR_BASE_POOL,
	IR_BASE_MEM,	/* allocation number `arg` of device_mem_allocate */
	IR_BASE_SIZE,	/* no address: the size of a dimension, parameter number `arg` */
};

struct ir_value {
	enum ir_base base;
	uint32_t arg;
	int64_t constant;
	int64_t per_iter[SPYRE_MAX_LOOPS];	/* outermost loop first */
};

struct ir_symbol {
	int64_t id;
	struct ir_value value;
};

enum ir_stmt_kind {
	IR_STMT_EXECUTE,
	IR_STMT_LOOP,
	IR_STMT_END,
};

struct ir_stmt {
	enum ir_stmt_kind kind;
	uint32_t line;
	uint32_t count;			/* LOOP */
	const char *file;		/* EXECUTE; lives as long as the bundle */
	struct ir_symbol *symbols;	/* EXECUTE, in the bundle's memory, ascending ids */
	uint32_t num_symbols;
};

/* A device_mem_allocate. */
struct ir_mem {
	uint64_t bytes;
	uint32_t line;
};

/* A parameter of the function that is the size of a dimension: a multiple of granularity. */
struct ir_size_param {
	char name[IR_SYMBOL_BYTES];	/* of the symbol; that of the parameter if there is none */
	bool named;			/* the name is the symbol's */
	int64_t granularity, max;
	uint32_t line;
};

struct ir_bundle {
	struct spyre_region memory;	/* of file names, symbols and SDSCs */
	struct ir_stmt *stmts;
	uint32_t num_stmts;
	uint32_t num_args;		/* arguments named by the function */
	bool has_pool;
	uint32_t num_mem;
	struct ir_mem mem[IR_MAX_MEM];
	uint32_t num_size_params;
	struct ir_size_param size_param[IR_MAX_SIZE_PARAMS];
};

/* A run of elements along a dim within a stick. */
struct ir_part {
	uint32_t dim, size;
};

/* An operand: a labeledDs_ entry with its scheduleTree_ node. */
struct ir_tensor {
	enum spyre_fmt format;
	uint32_t word;			/* bytes of an element, 0 if it is smaller than a byte */
	uint32_t lanes;			/* elements of a stick */
	/*
	 * Parts of the stick from the inside out. Most sticks have one; several
	 * make a pack, whose sizes are powers of two and whose adjacent parts are
	 * along different dims. ir_place() replaces 0 parts by one along the stick dim.
	 */
	uint32_t num_parts;
	struct ir_part part[IR_MAX_PARTS];
	bool lx;
	bool windowed;			/* walked by the axes of the SDSC */
	/*
	 * A shuffle's tensors have divisions of their own: slices of each dim, and the
	 * slice that each core (by index into core[]) holds. Others have the SDSC's.
	 */
	bool divided;
	uint8_t slices[IR_MAX_DIMS];
	uint8_t slice[SPYRE_MAX_CORES][IR_MAX_DIMS];
	/*
	 * By dim: 1 the tensor varies along it, -1 it does not, -2 it does not and
	 * the dim is its stick dim, 0 the tensor lacks the dim.
	 */
	int8_t scale[IR_MAX_DIMS];
	uint32_t stick;			/* the stick dim; that of most elements of a pack */
	uint32_t num_order;
	uint32_t order[IR_MAX_DIMS];	/* memory order, inner to outer */
	/* Elements of memory beyond the extent; negative if memory ends before it. */
	int64_t gap[IR_MAX_DIMS];
	uint32_t stated;		/* dims (bits) whose size in memory maxDimSizes_ gives */
	/*
	 * A table, of which another tensor, @index, selects rows: along the dims with a bit in
	 * @indexed, indices take the place of coordinates. Their scale is -1, because the file
	 * does not say how far memory extends along them.
	 */
	uint32_t indexed;
	uint32_t index;
	uint64_t row;			/* bytes from one row to the next */
	/*
	 * The number of rows if the file states it. The gap along one indexed dim then is the rest
	 * of its memory, so that other dims may lie outside of it. 0: as many as memory holds.
	 */
	uint64_t rows;
	/* Per core: a symbol id if negative, else a byte address. */
	int64_t start[SPYRE_MAX_CORES];
	/* Derived: bytes per step of a dim, ir_unit() elements of it; 0 if scale < 1. */
	uint64_t stride[IR_MAX_DIMS];
	uint64_t extent[IR_MAX_DIMS];	/* steps in memory */
	/* Bytes from the start of a core's share for a launch's sizes to that for the maxima. */
	uint64_t back[SPYRE_MAX_CORES];
};

struct ir_mask {
	uint32_t dim;
	int64_t start, length;
};

struct ir_constant {
	char name[IR_NAME_BYTES];
	enum spyre_fmt format;
	uint32_t bits;
};

/*
 * An axis of the window that convolutions and pooling move over their first
 * input: output i takes input i * stride + tap * dilation - before.
 */
struct ir_axis {
	uint32_t dim;			/* i or j, IR_NO_DIM if the file has none */
	uint32_t tap;			/* ki or kj, IR_NO_DIM: one tap */
	int64_t stride, dilation;
	int64_t before, after;		/* padding */
	int64_t size;			/* of the input, without padding */
	bool stated;			/* the file states the rows in memory: the public form */
};

/* One SDSC file. */
struct ir_sdsc {
	char file[IR_NAME_BYTES];
	char root[IR_NAME_BYTES];
	char op[IR_NAME_BYTES];		/* opFuncName */
	uint32_t num_cores;
	uint32_t core[SPYRE_MAX_CORES];	/* ascending */
	uint32_t num_dims;
	char dim[IR_MAX_DIMS][IR_NAME_BYTES];
	int64_t size[IR_MAX_DIMS];	/* N_ */
	int64_t slices[IR_MAX_DIMS];
	int64_t el[IR_MAX_DIMS];	/* size of one core's share */
	uint32_t slice[SPYRE_MAX_CORES][IR_MAX_DIMS];	/* by index into core[] */
	/* Symbolic dims: sizes are those of the maximum. */
	bool symbolic;
	char symbol[IR_MAX_DIMS][IR_SYMBOL_BYTES];	/* "": a fixed dim */
	/*
	 * Dims whose size is a parameter of bundle.mlir: the id of the operand, else 0, and the
	 * granularity of one core's share. Cores share the value evenly; any other symbol cuts
	 * the shares of the maximum.
	 */
	int64_t size_id[IR_MAX_DIMS];
	int64_t granularity[IR_MAX_DIMS];
	uint32_t num_inputs;
	uint32_t input[IR_MAX_TENSORS];
	uint32_t output;
	uint32_t num_masks;
	struct ir_mask mask[IR_MAX_MASKS];
	uint32_t num_constants;
	struct ir_constant constant[IR_MAX_CONSTANTS];
	bool has_window;
	struct ir_axis axis[2];
	bool indirect;			/* it has tables */
	uint32_t num_tensors;
	/*
	 * One more than a file has: lowering adds a copy of the output in LX (lower_apart()). They
	 * come last because a parsed file's memory ends behind its last tensor: ir_pack_sdsc().
	 */
	struct ir_tensor tensor[IR_MAX_TENSORS + 1];
};

void ir_bundle_fini(struct ir_bundle *bundle);
/* Copies an SDSC; the tensors that it does not have stay as they are in @to. */
void ir_copy_sdsc(struct ir_sdsc *to, const struct ir_sdsc *from);
/*
 * Copies an SDSC into the bundle's memory without place for further tensors, which would double
 * the memory of most bundles. NULL if there is no memory.
 */
struct ir_sdsc *ir_pack_sdsc(struct ir_bundle *bundle, const struct ir_sdsc *sdsc);
/* Index of the dim of that name, IR_NO_DIM if there is none. */
uint32_t ir_find_dim(const struct ir_sdsc *s, const char *name);

#endif /* SPYRE_SDSC_IR_H */
