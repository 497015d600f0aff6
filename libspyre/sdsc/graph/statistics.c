// SPDX-License-Identifier: MIT
/* Builder: variance and norms, composed of reductions. */
#include <math.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/graph/attr.h"
#include "libspyre/sdsc/graph/graph.h"
#include "libspyre/sdsc/graph/recipes.h"

#define NEW SPYRE_SDSC_NEW

static spyre_status with(spyre_sdsc_graph *g, const char *op, uint32_t in, double value,
			 uint32_t *out)
{
	spyre_sdsc_attribute other = { "other", value };

	return build_add(g, op, &other, 1, &in, 1, out);
}

/* Adds a reduction along the dims of the call. */
static spyre_status reduce(const struct build_call *call, const char *op, uint32_t in, bool keep,
			   uint32_t *out)
{
	spyre_sdsc_attribute attr[SPYRE_MAX_RANK + 1];
	uint32_t n = 0;

	for (uint32_t i = 0; i < call->num_attrs; i++) {
		if (strcmp(call->attr[i].name, "dim"))
			continue;
		if (n == SPYRE_MAX_RANK)
			return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
					   "%s: more than %d dimensions", call->op->name,
					   SPYRE_MAX_RANK);
		attr[n++] = call->attr[i];
	}
	attr[n++] = (spyre_sdsc_attribute){ "keepdim", keep };
	return build_add(call->graph, op, attr, n, &in, 1, out);
}

static double count_of(const spyre_sdsc_operand *o)
{
	double n = 1;

	for (uint32_t d = 0; d < o->rank; d++)
		n *= (double)o->size[d];
	return n;
}

/* The mean of the squares around the mean, times n / (n - correction); std is its root. */
spyre_status build_var(const struct build_call *call)
{
	uint32_t x = call->in[0], mean = NEW, centred = NEW, square = NEW, spread = NEW;
	bool keep = build_attr(call, "keepdim") != 0, root = !strcmp(call->op->name, "std");
	double n, correction = build_attr(call, "correction");
	uint32_t scaled = NEW, *var = root ? &scaled : call->out;
	spyre_sdsc_graph *g = call->graph;

	TRY(reduce(call, "mean", x, true, &mean));
	n = count_of(build_operand(g, x)) / count_of(build_operand(g, mean));
	if (n <= correction)
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "%s: %g elements with a correction of %g leave nothing to divide by",
				   call->op->name, n, correction);
	TRY(build_add(g, "sub", NULL, 0, (uint32_t[]){ x, mean }, 2, &centred));
	TRY(build_add(g, "square", NULL, 0, &centred, 1, &square));
	/* If an output is given, its rank decides whether the reduced dims are kept. */
	if (*call->out != NEW)
		keep = build_operand(g, *call->out)->rank == build_operand(g, x)->rank;
	TRY(reduce(call, "mean", square, keep, &spread));
	TRY(with(g, "mul", spread, n / (n - correction), var));
	return root ? build_add(g, "sqrt", NULL, 0, var, 1, call->out) : SPYRE_SUCCESS;
}

/* (sum |x|^p)^(1/p), and its limits for p = 0 and p = +-Inf. */
spyre_status build_vector_norm(const struct build_call *call)
{
	double p = build_attr(call, "ord");
	uint32_t x = call->in[0], size = NEW, power = NEW, sum = NEW;
	bool keep = build_attr(call, "keepdim") != 0;
	spyre_sdsc_graph *g = call->graph;
	spyre_sdsc_attribute exponent = { "exponent", p };

	if (*call->out != NEW)
		keep = build_operand(g, *call->out)->rank == build_operand(g, x)->rank;
	if (p == INFINITY)
		return reduce(call, "absmax", x, keep, call->out);
	if (p == 0) {
		TRY(with(g, "ne", x, 0, &power));
		return reduce(call, "sum", power, keep, call->out);
	}
	if (p == 2) {
		TRY(build_add(g, "square", NULL, 0, &x, 1, &power));
		TRY(reduce(call, "sum", power, keep, &sum));
		return build_add(g, "sqrt", NULL, 0, &sum, 1, call->out);
	}
	TRY(build_add(g, "abs", NULL, 0, &x, 1, &size));
	if (p == -INFINITY || p == 1)
		return reduce(call, p == 1 ? "sum" : "amin", size, keep, call->out);
	TRY(build_add(g, "pow", &exponent, 1, &size, 1, &power));
	TRY(reduce(call, "sum", power, keep, &sum));
	exponent.value = 1 / p;
	return build_add(g, "pow", &exponent, 1, &sum, 1, call->out);
}
