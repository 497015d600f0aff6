// SPDX-License-Identifier: MIT
/* Builder: operations that are composed of others. */
#include <math.h>

#include "libspyre/base/error.h"
#include "libspyre/layout/stick.h"
#include "libspyre/sdsc/graph/attr.h"
#include "libspyre/sdsc/graph/fill.h"
#include "libspyre/sdsc/graph/graph.h"
#include "libspyre/sdsc/graph/recipes.h"

#define NEW SPYRE_SDSC_NEW
#define IN(...) ((const uint32_t[]){ __VA_ARGS__ })
#define COUNT(...) (sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))
/* Adds an operation without attributes; its result is *out. */
#define DO(g, op, out, ...) \
	TRY(build_add(g, op, NULL, 0, IN(__VA_ARGS__), COUNT(__VA_ARGS__), out))

static spyre_status keep(const struct build_call *call, const char *op, double dim, uint32_t in,
			 uint32_t *out)
{
	spyre_sdsc_attribute attr[2] = { { "dim", dim }, { "keepdim", 1 } };

	return build_add(call->graph, op, attr, 2, &in, 1, out);
}

spyre_status build_exponentials(const struct build_call *call, double dim, uint32_t *shifted,
				uint32_t *power, uint32_t *sum)
{
	spyre_sdsc_graph *g = call->graph;
	uint32_t top = NEW;

	*shifted = *power = *sum = NEW;
	TRY(keep(call, "amax", dim, call->in[0], &top));
	DO(g, "sub", shifted, call->in[0], top);
	DO(g, "exp", power, *shifted);
	return keep(call, "sum", dim, *power, sum);
}

spyre_status build_softmax(const struct build_call *call)
{
	uint32_t shifted, power, sum;

	TRY(build_exponentials(call, build_attr(call, "dim"), &shifted, &power, &sum));
	DO(call->graph, "div", call->out, power, sum);
	return SPYRE_SUCCESS;
}

spyre_status build_log_softmax(const struct build_call *call)
{
	uint32_t shifted, power, sum, log = NEW;

	TRY(build_exponentials(call, build_attr(call, "dim"), &shifted, &power, &sum));
	DO(call->graph, "log", &log, sum);
	DO(call->graph, "sub", call->out, shifted, log);
	return SPYRE_SUCCESS;
}

/*
 * Subtracts the mean of each row of 16-bit numbers. exx2 stores both moments in the format of
 * its input, and the variance is their difference, of which nothing would be left where the
 * mean is large against the deviation. The difference to a rounded mean is nearly exact.
 */
static spyre_status centre(const struct build_call *call, uint32_t *x)
{
	const spyre_sdsc_operand *operand = build_operand(call->graph, call->in[0]);
	uint32_t mean = NEW, centred = NEW;

	*x = call->in[0];
	/* A row of one number is its own mean, and its result 0 whatever the variance is. */
	if (operand->layout.device_format == SPYRE_FORMAT_IEEE_FP32 ||
	    (operand->rank && operand->size[operand->rank - 1] == 1))
		return SPYRE_SUCCESS;
	TRY(keep(call, "mean", -1, *x, &mean));
	DO(call->graph, "sub", &centred, *x, mean);
	*x = centred;
	return SPYRE_SUCCESS;
}

/*
 * The eps of a norm. One that DL16 rounds to 0, as BERT's 1e-12, would make 0 / 0 of a row
 * of equal numbers, so it is DL16's least number there.
 */
static double norm_eps(const struct build_call *call)
{
	const spyre_sdsc_operand *operand = build_operand(call->graph, call->in[0]);
	double eps = build_attr(call, "eps"), least = 0x1.008p-31;

	if (operand->layout.device_format == SPYRE_FORMAT_SEN169_FP16 && eps > 0 && eps < least)
		return least;
	return eps;
}

/* Normalises along the last dimension; weight and bias are optional. */
spyre_status build_layer_norm(const struct build_call *call)
{
	spyre_sdsc_attribute eps = { "eps", norm_eps(call) };
	uint32_t moments = NEW, scale = NEW, centred = NEW, x;
	uint32_t scaled = NEW, *out = call->num_inputs > 1 ? &scaled : call->out;
	spyre_sdsc_graph *g = call->graph;

	TRY(centre(call, &x));
	TRY(keep(call, "exx2", -1, x, &moments));
	TRY(build_add(g, "layernormscale", &eps, 1, &moments, 1, &scale));
	if (call->num_inputs == 3) {
		DO(g, "layernormnorm", call->out, x, moments, scale, call->in[1], call->in[2]);
		return SPYRE_SUCCESS;
	}
	DO(g, "sub", &centred, x, moments);
	DO(g, "mul", out, centred, scale);
	if (call->num_inputs > 1)
		DO(g, "mul", call->out, scaled, call->in[1]);
	return SPYRE_SUCCESS;
}

spyre_status build_rms_norm(const struct build_call *call)
{
	uint32_t x = call->in[0], square = NEW, mean = NEW, eps, moved = NEW, scale = NEW;
	uint32_t scaled = NEW, *out = call->num_inputs > 1 ? &scaled : call->out;
	spyre_sdsc_graph *g = call->graph;

	TRY(build_constant(g, build_operand(g, x)->layout.device_format,
			   norm_eps(call), &eps));
	DO(g, "mul", &square, x, x);
	TRY(keep(call, "mean", -1, square, &mean));
	DO(g, "add", &moved, mean, eps);
	DO(g, "rsqrt", &scale, moved);
	DO(g, "mul", out, x, scale);
	if (call->num_inputs > 1)
		DO(g, "mul", call->out, scaled, call->in[1]);
	return SPYRE_SUCCESS;
}

spyre_status build_swiglu(const struct build_call *call)
{
	uint32_t gate = NEW;

	DO(call->graph, "silu", &gate, call->in[0]);
	DO(call->graph, "mul", call->out, gate, call->in[1]);
	return SPYRE_SUCCESS;
}

/* x W^T + b, with W as [out, in]. */
spyre_status build_linear(const struct build_call *call)
{
	spyre_sdsc_attribute transpose = { "transpose_b", 1 };
	uint32_t product = NEW, *out = call->num_inputs > 2 ? &product : call->out;

	TRY(build_add(call->graph, "matmul", &transpose, 1, call->in, 2, out));
	if (call->num_inputs > 2)
		DO(call->graph, "add", call->out, product, call->in[2]);
	return SPYRE_SUCCESS;
}

spyre_status build_addmm(const struct build_call *call)
{
	uint32_t product = NEW;

	DO(call->graph, "matmul", &product, call->in[1], call->in[2]);
	DO(call->graph, "add", call->out, product, call->in[0]);
	return SPYRE_SUCCESS;
}
