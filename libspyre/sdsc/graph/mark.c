// SPDX-License-Identifier: MIT
/* Builder: marks. A mark holds lengths of arrays; paddings that change are noted apart. */
#include <string.h>

#include "libspyre/base/array.h"
#include "libspyre/base/error.h"
#include "libspyre/sdsc/graph/mark.h"

struct build_mark build_state(const spyre_sdsc_graph *g)
{
	struct build_mark mark = { .tensors = g->num_tensors, .steps = g->num_steps,
				   .args = g->num_args, .changes = g->num_changes,
				   .splits = g->num_splits };

	memcpy(mark.split, g->split, sizeof(mark.split));
	return mark;
}

void build_return_to(spyre_sdsc_graph *g, const struct build_mark *mark)
{
	/* A tensor that changed more than once gets its oldest padding, which comes last. */
	while (g->num_changes > mark->changes) {
		const struct build_change *c = &g->change[--g->num_changes];

		g->tensor[c->tensor].padding = c->padding;
	}
	g->num_tensors = mark->tensors;
	g->num_steps = mark->steps;
	g->num_args = mark->args;
	g->num_splits = mark->splits;
	memcpy(g->split, mark->split, sizeof(g->split));
}

spyre_status build_change_padding(spyre_sdsc_graph *g, uint32_t tensor, spyre_sdsc_padding padding)
{
	struct build_tensor *t = &g->tensor[tensor];

	if (t->padding == padding)
		return SPYRE_SUCCESS;
	if (!spyre_array_reserve(&g->change, &g->capacity_changes, (size_t)g->num_changes + 1,
				 sizeof(*g->change)))
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "no memory for %u changes of padding", g->num_changes + 1);
	g->change[g->num_changes++] = (struct build_change){ tensor, t->padding };
	t->padding = padding;
	return SPYRE_SUCCESS;
}

spyre_status spyre_sdsc_graph_mark(spyre_sdsc_graph *graph, uint32_t *mark)
{
	if (!graph || !mark)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_sdsc_graph_mark: graph or mark is NULL");
	if (!spyre_array_reserve(&graph->mark, &graph->capacity_marks, (size_t)graph->num_marks + 1,
				 sizeof(*graph->mark)))
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory for %u marks",
				   graph->num_marks + 1);
	graph->mark[graph->num_marks] = build_state(graph);
	*mark = graph->num_marks++;
	return SPYRE_SUCCESS;
}

spyre_status spyre_sdsc_graph_rollback(spyre_sdsc_graph *graph, uint32_t mark)
{
	if (!graph)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_sdsc_graph_rollback: graph is NULL");
	if (mark >= graph->num_marks)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "spyre_sdsc_graph_rollback: there is no mark %u, the graph has %u; a rollback ends the marks that were made after its own",
				   mark, graph->num_marks);
	build_return_to(graph, &graph->mark[mark]);
	graph->num_marks = mark + 1;
	return SPYRE_SUCCESS;
}
