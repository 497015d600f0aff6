// SPDX-License-Identifier: MIT
/*
 * The divisions of a shuffle's tensors. coordinates_ of a scheduleTree_ node has them in
 * coreIdToWkSlice_, in the form of the SDSC's own table, which describes the schedule.
 */
#include "libspyre/sdsc/parse/division_parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/ir/address.h"

/* Derives the number of slices of a dim from the highest one that a core holds. */
static spyre_status count_slices(const struct ir_sdsc *s, struct ir_tensor *t, uint32_t dim,
				 const struct json *table)
{
	uint8_t slices = 1;

	for (uint32_t i = 0; i < s->num_cores; i++)
		if (t->slice[i][dim] >= slices)
			slices = (uint8_t)(t->slice[i][dim] + 1);
	if (s->size[dim] % slices)
		return json_wrong(table, "slices of %s that divide N_ %" PRId64 ", the highest is %u",
				  s->dim[dim], s->size[dim], slices - 1u);
	t->slices[dim] = slices;
	return SPYRE_SUCCESS;
}

/*
 * Compares the number of slices with the core_fold of coordInfo, if the file has one: of a
 * slice that no core holds, the table alone shows nothing.
 */
static spyre_status check_fold(const struct ir_sdsc *s, const struct ir_tensor *t, uint32_t dim,
			       const struct json *coordinates)
{
	struct json infos, info, folds, attrs, attr;
	int64_t factor;
	char label[IR_NAME_BYTES];

	if (t->scale[dim] < 1 || !json_find(coordinates, "coordInfo", &infos) ||
	    !json_find(&infos, s->dim[dim], &info) || !json_find(&info, "folds", &folds) ||
	    !json_find(&folds, "dim_prop_attr", &attrs))
		return SPYRE_SUCCESS;
	for (size_t i = 0; i < json_length(&attrs); i++) {
		TRY(json_element(&attrs, i, JSON_OBJECT, &attr));
		TRY(json_member_text(&attr, "label_", label, sizeof(label)));
		if (!strcmp(label, "core_fold"))
			return json_member_integer(&attr, "factor_", t->slices[dim],
						   t->slices[dim], &factor);
	}
	return SPYRE_SUCCESS;
}

static spyre_status parse_table(struct ir_sdsc *s, struct ir_tensor *t,
				const struct json *coordinates, const struct json *table)
{
	struct json entry;
	int64_t slice;

	for (uint32_t i = 0; i < s->num_cores; i++) {
		char core[16];

		snprintf(core, sizeof(core), "%u", s->core[i]);
		TRY(json_member(table, core, JSON_OBJECT, &entry));
		for (uint32_t d = 0; d < s->num_dims; d++) {
			TRY(json_member_integer(&entry, s->dim[d], 0, SPYRE_MAX_CORES - 1, &slice));
			/* All slices of a dim along which the tensor does not vary are equal. */
			t->slice[i][d] = t->scale[d] > 0 ? (uint8_t)slice : 0;
		}
	}
	for (uint32_t d = 0; d < s->num_dims; d++) {
		TRY(count_slices(s, t, d, table));
		TRY(check_fold(s, t, d, coordinates));
	}
	return SPYRE_SUCCESS;
}

/* Copies the division of the SDSC, which tensors without one of their own have. */
static void take_schedule(const struct ir_sdsc *s, struct ir_tensor *t)
{
	for (uint32_t d = 0; d < s->num_dims; d++) {
		bool varies = t->scale[d] > 0;

		t->slices[d] = varies ? (uint8_t)s->slices[d] : 1;
		for (uint32_t i = 0; i < s->num_cores; i++)
			t->slice[i][d] = varies ? (uint8_t)s->slice[i][d] : 0;
	}
}

static spyre_status parse_node(struct ir_sdsc *s, struct ir_tensor *t, const struct json *node)
{
	struct json coordinates, table;
	bool own = json_find(node, "coordinates_", &coordinates) &&
		   json_find(&coordinates, "coreIdToWkSlice_", &table);

	if (own)
		TRY(json_expect(&table, JSON_OBJECT));
	if (own && json_length(&table))
		TRY(parse_table(s, t, &coordinates, &table));
	else
		take_schedule(s, t);
	for (uint32_t d = 0; d < s->num_dims; d++)
		if (t->gap[d] < 0)
			return json_wrong(node, "a gap of %s of 0 or more, found %" PRId64,
					  s->dim[d], t->gap[d]);
	t->divided = true;
	return ir_place(s, t) ? SPYRE_SUCCESS : json_wrong(node, "a tensor of less than 2^63 bytes");
}

spyre_status ir_parse_divisions(struct ir_sdsc *s, const struct json *dsc)
{
	struct json tree, node;
	int64_t index;

	if (strcmp(s->op, "shuffle"))
		return SPYRE_SUCCESS;
	TRY(json_member(dsc, "scheduleTree_", JSON_ARRAY, &tree));
	for (size_t i = 0; i < json_length(&tree); i++) {
		TRY(json_element(&tree, i, JSON_OBJECT, &node));
		TRY(json_member_integer(&node, "ldsIdx_", 0, IR_MAX_TENSORS - 1, &index));
		/* The first node of a tensor is the one that the parser took. */
		if (index < s->num_tensors && !s->tensor[index].divided)
			TRY(parse_node(s, &s->tensor[index], &node));
	}
	return SPYRE_SUCCESS;
}
