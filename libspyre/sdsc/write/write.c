// SPDX-License-Identifier: MIT
/* Builder: planned graphs as files, and one operation as a graph. */
#include "libspyre/sdsc/graph/graph.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/graph/layout.h"
#include "libspyre/sdsc/graph/ops.h"
#include "libspyre/sdsc/plan/plan.h"
#include "libspyre/sdsc/write/write.h"
#include "libspyre/sdsc/write/write_json.h"
#include "libspyre/sdsc/write/write_mlir.h"

static spyre_status write_plan(const struct plan *plan, const char *directory)
{
	if (mkdir(directory, 0777) && errno != EEXIST)
		return spyre_error(SPYRE_ERROR_FILE, "%s: cannot make the directory: %s",
				   directory, strerror(errno));
	for (uint32_t i = 0; i < plan->num_steps; i++)
		TRY(build_write_json(&plan->step[i], directory));
	return build_write_mlir(plan, directory);
}

static spyre_status write_graph(const spyre_sdsc_graph *graph, uint32_t cores,
				const int64_t *slices, const char *directory)
{
	spyre_status status;
	struct plan plan;

	TRY(plan_make(&plan, graph, cores, slices));
	status = write_plan(&plan, directory);
	plan_fini(&plan);
	return status;
}

spyre_status spyre_sdsc_graph_write(const spyre_sdsc_graph *graph, uint32_t cores,
				    const char *directory)
{
	if (!graph || !directory)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_sdsc_graph_write: graph or directory is NULL");
	return write_graph(graph, cores, NULL, directory);
}

/* Makes a graph of one operation on its operands. */
static spyre_status single(const char *name, const spyre_sdsc_operand *operands,
			   uint32_t num_operands, spyre_sdsc_graph *graph)
{
	const struct build_op *op = build_op_find(name);
	uint32_t tensor[BUILD_MAX_INPUTS + 1];

	if (!op)
		return spyre_error(SPYRE_ERROR_UNSUPPORTED,
				   "\"%s\" is not an operation of the builder; spyre_sdsc_operations() lists them",
				   name);
	if (num_operands < op->inputs + 1 || num_operands > op->most_inputs + 1) {
		char most[16] = "";

		if (op->most_inputs > op->inputs)
			snprintf(most, sizeof(most), " to %u", op->most_inputs);
		return spyre_error(SPYRE_ERROR_ARGUMENT_MISMATCH,
				   "%s takes %u%s inputs and one output, got %u operands", name,
				   op->inputs, most, num_operands);
	}
	for (uint32_t i = 0; i < num_operands; i++) {
		spyre_sdsc_operand o = operands[i];

		TRY(build_normalize(name, i, &o));
		TRY(spyre_sdsc_graph_add_argument(graph, &o, &tensor[i]));
	}
	return spyre_sdsc_graph_add_op(graph, name, NULL, 0, tensor, num_operands - 1,
				       &tensor[num_operands - 1]);
}

spyre_status build_bundle(const char *name, const spyre_sdsc_operand *operands,
			  uint32_t num_operands, uint32_t cores, const int64_t *slices,
			  const char *directory)
{
	spyre_sdsc_graph *graph;
	spyre_status status;

	TRY(plan_cores(&cores));
	TRY(spyre_sdsc_graph_create(&graph));
	status = single(name, operands, num_operands, graph);
	if (!status)
		status = write_graph(graph, cores, slices, directory);
	spyre_sdsc_graph_destroy(graph);
	return status;
}

spyre_status spyre_sdsc_build(const char *op, const spyre_sdsc_operand *operands,
			      uint32_t num_operands, uint32_t cores, const char *directory)
{
	if (!op || !operands || !directory)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_sdsc_build: op, operands or directory is NULL");
	return build_bundle(op, operands, num_operands, cores, NULL, directory);
}
