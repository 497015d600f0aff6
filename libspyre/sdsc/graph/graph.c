// SPDX-License-Identifier: MIT
/* Builder: graphs, their tensors and operations. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libspyre/base/array.h"
#include "libspyre/base/error.h"
#include "libspyre/sdsc/graph/attr.h"
#include "libspyre/sdsc/graph/division.h"
#include "libspyre/sdsc/graph/fill.h"
#include "libspyre/sdsc/graph/fit.h"
#include "libspyre/sdsc/graph/graph.h"
#include "libspyre/sdsc/graph/infer.h"
#include "libspyre/sdsc/graph/integer.h"
#include "libspyre/sdsc/graph/layout.h"
#include "libspyre/sdsc/graph/mark.h"
#include "libspyre/sdsc/graph/ops.h"
#include "libspyre/sdsc/graph/shapes.h"

spyre_status spyre_sdsc_graph_create(spyre_sdsc_graph **graph)
{
	if (!graph)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_sdsc_graph_create: graph is NULL");
	*graph = calloc(1, sizeof(**graph));
	if (!*graph)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory for a graph");
	return SPYRE_SUCCESS;
}

void spyre_sdsc_graph_destroy(spyre_sdsc_graph *graph)
{
	if (!graph)
		return;
	free(graph->tensor);
	free(graph->step);
	free(graph->mark);
	free(graph->change);
	free(graph);
}

static spyre_status no_more(uint32_t num, uint32_t limit, const char *what)
{
	if (num >= limit)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "a graph has at most %u %s", limit,
				   what);
	return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory for %u %s", num + 1, what);
}

spyre_status build_new_tensor(spyre_sdsc_graph *g, const spyre_sdsc_operand *operand,
			      uint32_t *tensor)
{
	struct build_tensor *t;

	if (g->num_tensors == BUILD_MAX_TENSORS ||
	    !spyre_array_reserve(&g->tensor, &g->capacity_tensors, g->num_tensors + 1, sizeof(*t)))
		return no_more(g->num_tensors, BUILD_MAX_TENSORS, "tensors");
	t = &g->tensor[g->num_tensors];
	*t = (struct build_tensor){ .operand = *operand, .padding = SPYRE_SDSC_PADDING_UNKNOWN };
	*tensor = g->num_tensors++;
	return SPYRE_SUCCESS;
}

spyre_status spyre_sdsc_graph_add_argument(spyre_sdsc_graph *graph,
					   const spyre_sdsc_operand *operand, uint32_t *tensor)
{
	spyre_sdsc_operand checked;

	if (!graph || !operand || !tensor)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_sdsc_graph_add_argument: graph, operand or tensor is NULL");
	checked = *operand;
	TRY(build_normalize("graph", graph->num_args, &checked));
	TRY(build_new_tensor(graph, &checked, tensor));
	graph->tensor[*tensor].argument = true;
	graph->tensor[*tensor].padding = SPYRE_SDSC_PADDING_ZERO;
	graph->tensor[*tensor].arg = graph->num_args++;
	return SPYRE_SUCCESS;
}

spyre_status spyre_sdsc_graph_set_padding(spyre_sdsc_graph *graph, uint32_t tensor,
					  spyre_sdsc_padding padding)
{
	if (!graph)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_sdsc_graph_set_padding: graph is NULL");
	if (tensor >= graph->num_tensors || !graph->tensor[tensor].argument)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_sdsc_graph_set_padding: tensor %u is not an argument of the graph, which has %u tensors and %u arguments",
				   tensor, graph->num_tensors, graph->num_args);
	if (padding > SPYRE_SDSC_PADDING_FOREIGN)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_sdsc_graph_set_padding: there is no kind %d",
				   (int)padding);
	return build_change_padding(graph, tensor, padding);
}

const spyre_sdsc_operand *build_operand(const spyre_sdsc_graph *graph, uint32_t tensor)
{
	return &graph->tensor[tensor].operand;
}

/* Records that a step writes whole sticks, so that the padding of the last is undefined. */
static spyre_status mark_written(const struct build_call *call, const struct build_use *out)
{
	struct build_tensor *t = &call->graph->tensor[out->tensor];
	const spyre_layout *l = &out->view.layout;
	int along = l->dim_map[l->device_rank - 1];
	int64_t size = along < 0 ? 1 : out->view.size[along];

	if (t->padding == SPYRE_SDSC_PADDING_ZERO)
		TRY(build_change_padding(call->graph, out->tensor, SPYRE_SDSC_PADDING_UNKNOWN));
	if (t->padding != SPYRE_SDSC_PADDING_FOREIGN || size % build_lanes(&out->view) == 0)
		return SPYRE_SUCCESS;
	return spyre_error(SPYRE_ERROR_LAYOUT,
			   "%s: the output ends within a stick (%" PRId64 " elements, sticks of %" PRId64 ") of which the rest belongs to others; write to a tensor of its own and copy",
			   call->op->name, size, build_lanes(&out->view));
}

/* True for a step that makes a constant: every core of a fused group would have to make it. */
static bool of_one_element(const struct build_call *call, const struct build_use *uses)
{
	for (uint32_t i = 0; i <= call->num_inputs; i++)
		for (uint32_t d = 0; d < uses[i].view.rank; d++)
			if (uses[i].view.size[d] > 1)
				return false;
	return true;
}

spyre_status build_add_step(const struct build_call *call, struct build_use *uses)
{
	struct build_use *out = &uses[call->num_inputs];
	spyre_sdsc_graph *g = call->graph;

	for (uint32_t i = 0; i < call->num_inputs; i++)
		TRY(build_normalize(call->op->name, i, &uses[i].view));
	if (out->tensor == SPYRE_SDSC_NEW) {
		TRY(build_infer(call, uses, &out->view));
		TRY(build_new_tensor(g, &out->view, &out->tensor));
	}
	*call->out = out->tensor;
	if (g->num_steps == BUILD_MAX_STEPS ||
	    !spyre_array_reserve(&g->step, &g->capacity_steps, g->num_steps + 1, sizeof(*g->step)))
		return no_more(g->num_steps, BUILD_MAX_STEPS, "operations");
	TRY(build_shapes(call, uses, &g->step[g->num_steps]));
	build_ask(g, &g->step[g->num_steps]);
	if (!of_one_element(call, uses))
		g->step[g->num_steps].fused = g->fusing;
	g->num_steps++;
	return mark_written(call, out);
}

static spyre_status check_count(const struct build_call *call)
{
	const struct build_op *op = call->op;

	if (call->num_inputs < op->inputs || call->num_inputs > op->most_inputs) {
		if (op->inputs == op->most_inputs)
			return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
					   "%s takes %u input%s and one output, got %u input%s",
					   op->name, op->inputs, op->inputs == 1 ? "" : "s",
					   call->num_inputs, call->num_inputs == 1 ? "" : "s");
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "%s takes %u to %u inputs and one output, got %u inputs",
				   op->name, op->inputs, op->most_inputs, call->num_inputs);
	}
	return SPYRE_SUCCESS;
}

static spyre_status check_call(const struct build_call *call)
{
	const struct build_op *op = call->op;
	const spyre_sdsc_graph *g = call->graph;

	for (uint32_t i = 0; i < call->num_inputs; i++)
		if (call->in[i] >= g->num_tensors)
			return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
					   "%s: input %u is tensor %u, the graph has %u", op->name,
					   i, call->in[i], g->num_tensors);
	if (*call->out != SPYRE_SDSC_NEW && *call->out >= g->num_tensors)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "%s: the output is tensor %u, the graph has %u", op->name,
				   *call->out, g->num_tensors);
	return SPYRE_SUCCESS;
}

/* The second input of a binary operation may be a number. */
static spyre_status scalar_input(struct build_call *call)
{
	const spyre_sdsc_operand *first;

	if (call->op->inputs != 2 || call->num_inputs != 1 || !build_has_attr(call, "other"))
		return call->num_inputs > 1 && call->op->inputs == 2 &&
		       build_has_attr(call, "other") ?
		       spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "%s takes its second operand as an input or as the attribute \"other\", not both",
				   call->op->name) : SPYRE_SUCCESS;
	if (call->in[0] >= call->graph->num_tensors)
		return SPYRE_SUCCESS;	/* check_call() reports the error */
	first = build_operand(call->graph, call->in[0]);
	call->num_inputs = 2;
	return build_constant(call->graph, first->layout.device_format,
			      build_attr(call, "other"), &call->in[1]);
}

spyre_status build_add(spyre_sdsc_graph *graph, const char *name, const spyre_sdsc_attribute *attr,
		       uint32_t num_attrs, const uint32_t *in, uint32_t num_inputs, uint32_t *out)
{
	struct build_call call = { .graph = graph, .op = build_op_find(name), .attr = attr,
				   .num_attrs = num_attrs, .num_inputs = num_inputs, .out = out };
	struct build_use uses[BUILD_MAX_INPUTS + 1] = { 0 };

	if (!call.op)
		return spyre_error(SPYRE_ERROR_UNSUPPORTED,
				   "\"%s\" is not an operation of the builder; spyre_sdsc_operations() lists them",
				   name);
	/* A surplus of inputs is not read; check_count() reports it. */
	for (uint32_t i = 0; i < num_inputs && num_inputs <= call.op->most_inputs; i++)
		call.in[i] = in[i];
	call.op = build_integer_choice(&call);
	TRY(build_check_attrs(&call));
	TRY(scalar_input(&call));
	TRY(check_count(&call));
	TRY(check_call(&call));
	num_inputs = call.num_inputs;
	in = call.in;
	if (call.op->recipe)
		return call.op->recipe(&call);
	for (uint32_t i = 0; i < num_inputs; i++)
		uses[i] = build_use_of(graph, in[i]);
	uses[num_inputs].tensor = *out;
	if (*out != SPYRE_SDSC_NEW)
		uses[num_inputs].view = *build_operand(graph, *out);
	TRY(build_align(&call, uses));
	return build_add_step(&call, uses);
}

/* True if the error's text begins with @op, or quotes it. */
static bool names_operation(const char *op)
{
	const char *text = spyre_last_error();
	size_t n = strlen(op);

	return *text == '"' || (!strncmp(text, op, n) && (text[n] == ':' || text[n] == ' '));
}

spyre_status spyre_sdsc_graph_add_op(spyre_sdsc_graph *graph, const char *op,
				     const spyre_sdsc_attribute *attributes,
				     uint32_t num_attributes, const uint32_t *inputs,
				     uint32_t num_inputs, uint32_t *tensor)
{
	struct build_mark before;
	spyre_status status;
	uint32_t out;

	if (!graph || !op || !tensor || (num_attributes && !attributes) || (num_inputs && !inputs))
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_sdsc_graph_add_op: graph, op, attributes, inputs or tensor is NULL");
	graph->helping = false;
	graph->fusing = 0;
	before = build_state(graph);
	out = *tensor;
	status = build_add(graph, op, attributes, num_attributes, inputs, num_inputs, &out);
	/* An error of a step inside a recipe gets the name of the operation that was called. */
	if (status && !names_operation(op))
		status = spyre_error_prefix(status, "%s", op);
	if (!status)
		status = build_check_division(graph, op, before.steps);
	if (!status) {
		*tensor = out;
		return status;
	}
	/* A failed operation is rolled back. */
	build_return_to(graph, &before);
	return status;
}

spyre_status spyre_sdsc_graph_get_tensor(const spyre_sdsc_graph *graph, uint32_t tensor,
					 spyre_sdsc_operand *operand)
{
	if (!graph || !operand)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_sdsc_graph_get_tensor: graph or operand is NULL");
	if (tensor >= graph->num_tensors)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_sdsc_graph_get_tensor: there is no tensor %u, the graph has %u",
				   tensor, graph->num_tensors);
	*operand = graph->tensor[tensor].operand;
	return SPYRE_SUCCESS;
}
