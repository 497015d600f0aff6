/* SPDX-License-Identifier: MIT */
/*
 * Bundles of one SDSC, written from a short description, run on a bare card with
 * every arithmetic unit, and compared with a function of the test. Places and start
 * addresses are computed here by the rules of docs/sdsc.md alone.
 */
#ifndef SDSC_MAKE_H
#define SDSC_MAKE_H

#include <spyre/spyre.h>

#define MAKE_DIMS 8
#define MAKE_TENSORS 6
#define MAKE_CONSTANTS 3

struct make_constant {
	const char *name, *format;
	uint32_t bits;
};

/* Stride, dilation and padding along i and j; the input's sizes follow. */
struct make_axis {
	int64_t stride, dilation, before, after;
};

/* A tensor in LX at @address of all cores. Such cases are compiled only. */
struct make_lx {
	bool used;
	unsigned int address;
	const char *held;		/* coreIdToWkSlice_ of its node, or NULL */
	const char *info;		/* coordInfo of its node, or NULL */
};

struct make_case {
	const char *op;
	/* "mb:4/2 out:128": sizes, and slices if there are several */
	const char *dims;
	/*
	 * The last is the output: "SEN169_FP16 out* j i mb", in memory order from
	 * inside out; "*" marks the stick dim, "-" scale -1, "=" scale -2, "+n" a
	 * gap of n after a dim, "%" that the stick holds pairs along a dim.
	 */
	const char *tensor[MAKE_TENSORS];
	struct make_axis axis[2];
	bool window;			/* axis[] walks the first input */
	const char *masks;		/* coordinateMasking_, or NULL */
	struct make_constant constant[MAKE_CONSTANTS];
	struct make_lx lx[MAKE_TENSORS];
	const char *sizes;		/* more members of N_ */
	const char *node;		/* more members of every scheduleTree_ node */
	const char *compute;		/* more members of computeOp_[0] */
	double low, high;		/* range of the inputs, both 0: -2 to 2 */
	double tolerance;		/* relative to the larger of 1 and the expected value */
};

struct make;

/* Returns the output's element at @at, one coordinate per dim; NAN: not checked. */
typedef double make_expect(const struct make *m, const int64_t *at);

struct make *make_new(const struct make_case *c);
void make_free(struct make *m);
int make_dim(const struct make *m, const char *name);	/* fails the test if missing */
int64_t make_size(const struct make *m, const char *name);	/* 1 if missing */
/* The input's size along axis 0 or 1, without padding. */
int64_t make_input_size(const struct make *m, int axis);
/* Elements of tensors; coordinates of dims that a tensor lacks are ignored. */
double make_get(const struct make *m, int tensor, const int64_t *at);
void make_set(struct make *m, int tensor, const int64_t *at, double value);
/* Sets one lane of the stick at @at. */
void make_set_lane(struct make *m, int tensor, const int64_t *at, uint32_t lane, double value);
/* Calls @fn for each point of the tensor's dims. */
void make_each(struct make *m, int tensor, void (*fn)(struct make *m, const int64_t *at));
/* Compiles, runs with all units, compares the output; @what names the case. */
void make_run(struct make *m, make_expect *expect, const char *what);
/* Compiles and expects a refusal that contains @text. */
void make_refused(const struct make_case *c, spyre_status status, const char *text);

#endif /* SDSC_MAKE_H */
