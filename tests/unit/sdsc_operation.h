/* SPDX-License-Identifier: MIT */
/* One operation of the builder, compiled, run and compared with plain loops. */
#ifndef SDSC_OPERATION_H
#define SDSC_OPERATION_H

#include <math.h>

#include "runtime_check.h"

#define MAX_IN 5
#define MAX_ATTRS 8
#define MAX_ELEMENTS (1 << 18)
#define DL16 SPYRE_FORMAT_IEEE_FP16
#define FP32 SPYRE_FORMAT_IEEE_FP32
#define END -9
/* Sticks: the last dim, one element each, the second last dim, the third last. */
#define DENSE 0
#define SPARSE 1
#define TRANSPOSED 2
#define CHANNELS 3

struct tensor {
	int64_t size[6];
	int kind;
	spyre_format format;	/* 0: that of the case */
};

struct operation;
typedef void (*reference_fn)(const struct operation *op);

struct operation {
	const char *name;
	reference_fn reference;
	double tolerance;
	spyre_format format;
	struct tensor tensor[MAX_IN + 2];	/* inputs, output */
	spyre_sdsc_attribute attr[MAX_ATTRS];
	bool positive;
};

/* The placement of operands on the card. */
enum placing {
	AS_COPIED,	/* padding holds zeros */
	POISONED,	/* padding holds NaN */
	WINDOWS,	/* parts of larger tensors, which hold NaN as well */
	NUM_PLACINGS
};

struct value {
	uint32_t rank;
	int64_t size[6];
	spyre_sdsc_operand operand;
	float *data;
	size_t elements;
	spyre_devptr device;
	/* The layout as a separate tensor, through which it is copied. */
	spyre_layout plain;
	spyre_devptr plain_device;
	/* The tensor of which it is a window, and its expected contents. */
	spyre_devptr base;
	size_t base_bytes;
	uint8_t *shadow;
	bool zeros;				/* in the padding */
	uint32_t where[SPYRE_MAX_DEVICE_RANK];	/* the window's layout dim of each dim */
};

extern struct value in[MAX_IN], out;
extern float *want;
extern uint32_t inputs;

double attribute(const struct operation *op, const char *name, double fallback);
/* Returns the element of @v for a coordinate of @full, broadcast from the right. */
double at(const struct value *v, const struct value *full, size_t element);
/* Returns the reduced dims as bits. */
uint32_t reduced(const struct operation *op);
/* Returns the element of a tensor without the dims in @mask to which element @i contributes. */
size_t fold(const struct value *v, uint32_t mask, size_t i);
/* Runs a suite of two cases, on the embedded card unless the environment names another. */
int run_both(const char *name, TCase *first, TCase *second);
/* Runs it on 1, 7, 24 and 32 cores, compiled directly and through files. */
void run(const struct operation *op, enum placing placing);

/* sdsc_placing.c: replaces describe()'s plain layout by the one in use. */
void put_down(struct value *v, enum placing placing, uint32_t seed);
/* Fills all of the tensor with NaN. */
void scribble(const struct value *v);
/* Moves the plain tensor's contents to their place and back. */
void settle(const struct value *v);
void gather(const struct value *v);
/* Checks that nothing around the window has changed; nothing in it either if @whole. */
void check_surroundings(const struct value *v, bool whole, const char *name);
extern spyre_context *context;

/* The tested operations, in several files. */
extern const struct operation math_operations[], layer_operations[], integer_operations[];
extern const int num_math_operations, num_layer_operations, num_integer_operations;

/* References shared by several tables: windows, ranks, a transposed matrix. */
void window(const struct operation *op);
void topk(const struct operation *op);
void matrix_transpose(const struct operation *op);

#define D(...) { { __VA_ARGS__, END }, DENSE, 0 }
#define S(...) { { __VA_ARGS__, END }, SPARSE, 0 }
#define T(...) { { __VA_ARGS__, END }, TRANSPOSED, 0 }
#define F32(...) { { __VA_ARGS__, END }, DENSE, FP32 }
#define F16(...) { { __VA_ARGS__, END }, DENSE, DL16 }
#define BF16(...) { { __VA_ARGS__, END }, DENSE, SPYRE_FORMAT_BFLOAT16 }
#define SCALAR { { END }, DENSE, 0 }
#define UNARY(name, tol) \
	{ name, pointwise, tol, DL16, { D(100, 150), D(100, 150) }, { { 0 } }, 1 }, \
	{ name, pointwise, tol, FP32, { D(3, 33), D(3, 33) }, { { 0 } }, 1 }
#define BINARY(name, tol) \
	{ name, pointwise, tol, DL16, { D(100, 150), D(100, 150), D(100, 150) }, { { 0 } }, 0 }, \
	{ name, pointwise, tol, DL16, { D(2, 1, 33), D(5, 1), D(2, 5, 33) }, { { 0 } }, 0 }, \
	{ name, pointwise, tol, FP32, { D(64), SCALAR, D(64) }, { { 0 } }, 0 }
#define E16 2e-3

#endif /* SDSC_OPERATION_H */
