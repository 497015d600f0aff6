/* SPDX-License-Identifier: MIT */
/* Lowering: one SDSC to the phases of a program. Internal. */
#ifndef SPYRE_SDSC_LOWER_H
#define SPYRE_SDSC_LOWER_H

#include "libspyre/sdsc/ir/ir.h"
#include "libspyre/sdsc/lower/encode.h"

#define SPAN_LIMIT (256ull << 20)	/* bytes of a tensor that one core reaches */

/* Where a tensor starts for one core. */
struct address {
	uint16_t operand;
	uint64_t offset;
	uint64_t turn[SPYRE_MAX_LOOPS];
};

struct lower {
	struct encoder *encoder;
	const struct ir_bundle *bundle;
	const struct ir_stmt *stmt;
	const struct ir_sdsc *sdsc;
	bool baked_pool;		/* segment 0 of baked addresses is the pool */
	uint32_t scratch;		/* first LX byte that no tensor of the bundle uses */
	uint32_t idle;			/* work on the bundle that led to no instruction */
	/* by tensor and index into sdsc->core[] */
	struct address address[IR_MAX_TENSORS][SPYRE_MAX_CORES];
};

/*
 * A loop nest of an instruction before it is fitted to the machine's limits:
 * any number of dims up to NEST_MAX_DIMS, any counts, any order.
 */
#define NEST_MAX_DIMS 48u	/* dims, and parts of sticks of every view */

struct nest_dim {
	uint64_t count;
	bool reduce;
	uint64_t stride[SPYRE_MAX_VIEWS];
};

struct nest {
	struct spyre_instr in;		/* counts and masks are filled by nest_emit() */
	struct spyre_view view[SPYRE_MAX_VIEWS];	/* strides likewise */
	bool ordered;		/* reduced dims keep their order: it counts */
	uint32_t num_dims;
	struct nest_dim dim[NEST_MAX_DIMS];
};

/* Orders, merges and splits the dims and adds the instructions that result. */
spyre_status nest_emit(struct lower *l, struct nest *nest);

/* Finds the addresses of @tensor on every core, and checks its reach. */
spyre_status lower_resolve(struct lower *l, uint32_t tensor);
spyre_status lower_unsupported(const struct lower *l, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void lower_view(struct spyre_view *view, const struct ir_tensor *t, const struct address *at);
/* Last byte (exclusive) of one core's box, from its start. */
uint64_t lower_box_bytes(const struct ir_sdsc *s, const struct ir_tensor *t);
bool lower_varies(const struct ir_tensor *t, uint32_t dim);
/* Refuses coordinateMasking_ of the dims with a bit in @dims, which the output lacks. */
spyre_status lower_unmasked(struct lower *l, uint32_t dims);
/* The argument that starts at @start, SPYRE_MAX_OPERANDS if none does. */
spyre_status lower_argument(struct lower *l, int64_t start, uint32_t *arg);
/*
 * lower_fit.c: gives l->sdsc, a copy of the file's, the layouts of a launch spec that have
 * less memory than the iteration by padding, and ends the iteration where memory does.
 */
struct launch_spec;
spyre_status lower_fit(struct lower *l, const struct launch_spec *spec, struct ir_sdsc *sdsc);
/* A constant of constantInfo_ as fp32 bits. */
bool lower_has_constant(const struct lower *l, const char *name);
spyre_status lower_constant(struct lower *l, const char *name, uint32_t *bits);

/*
 * Adds the iteration dims to a nest whose views are those of @tensor[]; the
 * lanes are along dim @lane_dim, @nest->in.lanes elements of it. Dims with a
 * bit in @skip are left out, those in @reduce are reduced. @el: the core's box.
 */
spyre_status lower_dims(struct lower *l, struct nest *nest, const struct ir_tensor *const *tensor,
			uint32_t num_tensors, uint32_t lane_dim, const int64_t *el, uint32_t skip,
			uint32_t reduce);

/*
 * Outputs @first on of an axis, in the core's share, whose taps @tap to @tap +
 * @taps lie in the input and no others; @at is where the first of them lies,
 * counted from the core's start address.
 */
struct window_run {
	int64_t first, count, tap, taps, at;
};

/* The longest such run from @first on; taps is 0 where all taps are padding. */
void window_run(const struct ir_sdsc *s, const struct ir_axis *a, uint32_t core, int64_t first,
		struct window_run *run);
/* Outputs for which tap @tap lies in the input; count may be 0. */
void window_tap(const struct ir_sdsc *s, const struct ir_axis *a, uint32_t core, int64_t tap,
		struct window_run *run);
/* Sizes of a core's share along an axis. */
int64_t window_outputs(const struct ir_sdsc *s, const struct ir_axis *a);
int64_t window_taps(const struct ir_sdsc *s, const struct ir_axis *a);

/*
 * Partial results: cores whose output address is the same each compute into
 * an fp32 tile in LX; in a second phase the first of them adds up all tiles in
 * core order over the ring and stores the result once.
 */
struct partial {
	bool active;
	/* The first core (index) with the same output, for each core index. */
	uint32_t leader[SPYRE_MAX_CORES];
	uint32_t absent;		/* cores (index mask) that have nothing to add */
	struct ir_tensor tile;
	struct address tile_address;
	uint64_t tile_bytes;
	/* Lanes of each stick of the tile that hold results, 0: all; 1 fills the output's. */
	uint32_t lanes;
};

/* The first core (index) with the same output, for each; whether any is another's. */
bool partial_leaders(const struct lower *l, uint32_t absent, uint32_t *leader);
/* A dense fp32 tile for @size elements of the output, @lanes to a stick; its bytes. */
uint64_t partial_tile(const struct ir_sdsc *s, uint32_t lanes, const int64_t *size,
		      struct ir_tensor *tile);

spyre_status partial_plan(struct lower *l, uint32_t absent, struct partial *p);
/* The same with tiles of at least @lanes elements to a stick. */
spyre_status partial_plan_lanes(struct lower *l, uint32_t absent, uint32_t lanes,
				struct partial *p);
/* True if this core computes into the tile. */
bool partial_core(const struct partial *p, const struct ir_sdsc *s, uint32_t core);
spyre_status partial_combine(struct lower *l, const struct partial *p, enum spyre_func func,
			     uint32_t scale_bits);

#endif /* SPYRE_SDSC_LOWER_H */
