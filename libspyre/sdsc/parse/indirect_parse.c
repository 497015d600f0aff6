// SPDX-License-Identifier: MIT
/*
 * Indirect access. The node of a table (value_tensor) and that of its indices (index_tensor)
 * name each other; the operation lists the indices apart from its inputs. docs/sdsc.md has the
 * dimensions along which indices take the place of coordinates.
 */
#include "libspyre/sdsc/parse/indirect_parse.h"

#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/layout/stick.h"
#include "libspyre/sdsc/ir/address.h"
#include "libspyre/sdsc/parse/sdsc_parse.h"

enum kind {
	DIRECT,
	INDICES,
	TABLE,
};

/* The part of a tensor's scheduleTree_ node that concerns indirect access. */
struct node {
	bool present;
	enum kind kind;
	struct json at, type, related;
	char name[IR_NAME_BYTES];	/* of this node, and of the related one */
	char other[IR_NAME_BYTES];
};

struct nodes {
	struct json tree;
	struct node node[IR_MAX_TENSORS];
	uint32_t listed;		/* tensors (bits) of indirectAccessIndexLabeledDs */
};

static spyre_status unsupported(const struct ir_sdsc *s, uint32_t tensor, const char *reason,
				uint32_t dim)
{
	return spyre_error(SPYRE_ERROR_UNSUPPORTED,
			   "%s: %s: cannot access Tensor%u by indices: %s%s (docs/unsupported.md)",
			   s->file, s->op, tensor, reason, dim == IR_NO_DIM ? "" : s->dim[dim]);
}

static spyre_status read_kind(struct node *n)
{
	if (!json_find(&n->at, "indirectAllocType_", &n->type) ||
	    yyjson_equals_str(n->type.val, "no_indirection"))
		n->kind = DIRECT;
	else if (yyjson_equals_str(n->type.val, "index_tensor"))
		n->kind = INDICES;
	else if (yyjson_equals_str(n->type.val, "value_tensor"))
		n->kind = TABLE;
	else
		return json_wrong(&n->type,
				  "\"no_indirection\", \"index_tensor\" or \"value_tensor\"");
	return SPYRE_SUCCESS;
}

static spyre_status read_names(struct node *n)
{
	bool named = json_find(&n->at, "relatedIndirectAccessAlloc_", &n->related) &&
		     (json_length(&n->related) || yyjson_get_len(n->related.val));

	if (n->kind == DIRECT)
		return named ? json_wrong(&n->related, "no name, since it has no indirection") :
			       SPYRE_SUCCESS;
	TRY(json_text(&n->related, n->other, sizeof(n->other)));
	return json_member_text(&n->at, "name_", n->name, sizeof(n->name));
}

/* Reads the nodes of all tensors; the first of each tensor counts. */
static spyre_status read_nodes(const struct ir_sdsc *s, const struct json *dsc, struct nodes *all)
{
	int64_t tensor;
	struct json at;

	TRY(json_member(dsc, "scheduleTree_", JSON_ARRAY, &all->tree));
	for (size_t i = 0; i < json_length(&all->tree); i++) {
		TRY(json_element(&all->tree, i, JSON_OBJECT, &at));
		TRY(json_member_integer(&at, "ldsIdx_", 0, IR_MAX_TENSORS - 1, &tensor));
		if (tensor >= (int64_t)s->num_tensors || all->node[tensor].present)
			continue;
		all->node[tensor].present = true;
		all->node[tensor].at = at;
		TRY(read_kind(&all->node[tensor]));
		TRY(read_names(&all->node[tensor]));
	}
	return SPYRE_SUCCESS;
}

/* Reads indirectAccessIndexLabeledDs, whose tensors have to be those of indices. */
static spyre_status read_list(const struct ir_sdsc *s, const struct json *op, struct nodes *all)
{
	struct json list, at;
	uint32_t tensor;

	if (!json_find(op, "indirectAccessIndexLabeledDs", &list))
		return SPYRE_SUCCESS;
	TRY(json_expect(&list, JSON_ARRAY));
	for (size_t i = 0; i < json_length(&list); i++) {
		TRY(json_element(&list, i, JSON_STRING, &at));
		TRY(ir_parse_label(s, &at, &tensor));
		if (all->node[tensor].kind != INDICES)
			return json_wrong(&at, "a tensor that is an \"index_tensor\"");
		if (all->listed >> tensor & 1)
			return json_wrong(&at, "each tensor once");
		all->listed |= 1u << tensor;
	}
	return SPYRE_SUCCESS;
}

static spyre_status check_indices(const struct ir_sdsc *s, uint32_t tensor,
				  const struct nodes *all)
{
	const struct node *n = &all->node[tensor];
	enum spyre_fmt format = s->tensor[tensor].format;
	struct json at;

	if (!(all->listed >> tensor & 1))
		return json_wrong(&n->type,
				  "\"no_indirection\", since indirectAccessIndexLabeledDs lacks Tensor%u",
				  tensor);
	if (json_find(&n->at, "indexTensorType_", &at) && yyjson_equals_str(at.val, "address"))
		return unsupported(s, tensor, "indexTensorType_ is \"address\"; use \"index\"",
				   IR_NO_DIM);
	if (at.val && !yyjson_equals_str(at.val, "index"))
		return json_wrong(&at, "\"index\"");
	for (uint32_t i = 0; i <= s->num_inputs; i++)
		if ((i < s->num_inputs ? s->input[i] : s->output) == tensor)
			return json_wrong(&n->type,
					  "\"no_indirection\", since Tensor%u is an input or the output",
					  tensor);
	if (format != SPYRE_FMT_IEEE_INT32 && format != SPYRE_FMT_SENUINT32)
		return spyre_error(SPYRE_ERROR_UNSUPPORTED,
				   "%s: %s: cannot read indices from Tensor%u: it is %s; use IEEE_INT32 or SENUINT32 (docs/unsupported.md)",
				   s->file, s->op, tensor,
				   spyre_format_name((spyre_format)format));
	return SPYRE_SUCCESS;
}

/* Finds the tensor of @kind whose node is related to that of @tensor, in both directions. */
static spyre_status find_other(const struct ir_sdsc *s, uint32_t tensor, enum kind kind,
			       const struct nodes *all, uint32_t *out)
{
	const struct node *n = &all->node[tensor];

	for (uint32_t i = 0; i < s->num_tensors; i++) {
		const struct node *other = &all->node[i];

		if (other->kind != kind || strcmp(other->name, n->other))
			continue;
		*out = i;
		if (!strcmp(other->other, n->name))
			return SPYRE_SUCCESS;
		if (kind == TABLE)
			return unsupported(s, i, "several tensors hold its indices", IR_NO_DIM);
	}
	return json_wrong(&n->related, "the name of a node of \"%s\" that names this one",
			  kind == TABLE ? "value_tensor" : "index_tensor");
}

static bool counts(const struct ir_sdsc *s, const struct ir_tensor *t, uint32_t dim)
{
	return t->scale[dim] > 0 && s->size[dim] > 1;
}

/*
 * Finds the dims along which indices select rows: those of the indices, except for that of the
 * table's sticks, along which a row is continuous. Without a dim of several elements, one of
 * a single element will do, but not one with a gap: memory of the row extends along it.
 */
static spyre_status find_rows(const struct ir_sdsc *s, uint32_t tensor, struct ir_tensor *t)
{
	const struct ir_tensor *indices = &s->tensor[t->index];
	uint32_t single = 0;

	for (uint32_t d = 0; d < s->num_dims; d++) {
		if (counts(s, indices, d) && !t->scale[d])
			return unsupported(s, tensor, "it lacks a dimension of its indices, ", d);
		if (!indices->scale[d] || !t->scale[d] || d == t->stick)
			continue;
		if (counts(s, indices, d))
			t->indexed |= 1u << d;
		else if (s->size[d] == 1 && !t->gap[d])
			single |= 1u << d;
	}
	/* With an index per element, the other dims of the indices may be the table's own. */
	if (counts(s, indices, t->stick) && (t->indexed & (t->indexed - 1)))
		return unsupported(s, tensor,
				   "the indices vary along several dimensions and along ", t->stick);
	t->indexed = t->indexed ?: single;
	return t->indexed ? SPYRE_SUCCESS :
	       unsupported(s, tensor, "its indices are along its sticks, ", t->stick);
}

/* Dims outside the rows would have a stride that depends on the number of rows. */
static spyre_status place_rows(const struct ir_sdsc *s, uint32_t tensor, struct ir_tensor *t)
{
	bool outside = false;

	for (uint32_t d = 0; d < s->num_dims; d++)
		if (t->indexed >> d & 1) {
			t->scale[d] = -1;
			t->gap[d] = 0;
		}
	if (!ir_place(s, t))
		return unsupported(s, tensor, "a row has 2^63 bytes or more", IR_NO_DIM);
	for (uint32_t k = 0; k < t->num_order; k++) {
		uint32_t d = t->order[k];

		outside = outside || ((t->indexed >> d & 1) && s->size[d] > 1);
		if (outside && t->extent[d] > 1)
			return unsupported(s, tensor,
					   "the indexed dimension has to be the outermost, not ", d);
	}
	return SPYRE_SUCCESS;
}

/*
 * A node relates to one other, so the second table of the same indices appears as a direct
 * tensor. Its size of 1 along their dims identifies it.
 */
static spyre_status check_direct(const struct ir_sdsc *s, uint32_t tensor, uint32_t dims,
				 const struct json *node)
{
	const struct ir_tensor *t = &s->tensor[tensor];
	struct json sizes;

	if (!json_find(node, "maxDimSizes_", &sizes))
		return SPYRE_SUCCESS;
	for (uint32_t k = 0; k < t->num_order; k++) {
		yyjson_val *val = yyjson_arr_get(sizes.val, k);

		if ((dims >> t->order[k] & 1) && counts(s, t, t->order[k]) && yyjson_is_int(val) &&
		    yyjson_get_sint(val) == 1)
			return unsupported(s, tensor,
					   "its node names no indices, but maxDimSizes_ is 1 along ",
					   t->order[k]);
	}
	return SPYRE_SUCCESS;
}

/* True if nothing lies between the sticks of a table, so that its elements follow each other. */
static bool is_row_of_sticks(const struct ir_tensor *t)
{
	for (uint32_t k = 0; k < t->num_order && t->order[k] != t->stick; k++)
		if (t->extent[t->order[k]] > 1)
			return false;
	return true;
}

/* Reads a dim of indexedSizes_: it takes the place of one of the table's own. */
static spyre_status read_size(struct ir_sdsc *s, struct ir_tensor *t, uint32_t d,
			      const struct json *at, int64_t *size)
{
	const struct ir_tensor *indices = &s->tensor[t->index];
	int64_t unit = (int64_t)ir_unit(t, d);

	TRY(json_integer(at, 1, SPYRE_MAX_INDEX, size));
	if (!t->scale[d] || (s->size[d] > 1 && !indices->scale[d]))
		return json_wrong(at, "no size, since the table or its indices lack %s",
				  s->dim[d]);
	if (t->gap[d] < 0 || (*size > 1 && t->rows > 1))
		return json_wrong(at, "a size above 1 along one dimension, without a gap below 0");
	if (d == t->stick && !is_row_of_sticks(t))
		return json_wrong(at, "no size, since the sticks along %s are not adjacent",
				  s->dim[d]);
	t->indexed |= 1u << d;
	t->scale[d] = d == t->stick ? -2 : -1;
	t->gap[d] += ((*size + unit - 1) / unit - 1) * unit;
	if (*size > 1 || !t->rows)
		t->rows = (uint64_t)*size;
	return SPYRE_SUCCESS;
}

/* The rows are the steps of the only indexed dim with memory, so that no other may have any. */
static spyre_status check_others(const struct ir_sdsc *s, uint32_t tensor,
				 const struct ir_tensor *t, uint32_t rows)
{
	for (uint32_t d = 0; d < s->num_dims && t->rows > 1; d++)
		if (d != rows && (t->indexed >> d & 1) && (t->gap[d] || d == t->stick))
			return unsupported(s, tensor,
					   "indexedSizes_ is 1 along a dimension that has memory, ",
					   d);
	return SPYRE_SUCCESS;
}

/* Reads the rows of a table whose file states them, which then may lie in any order. */
static spyre_status find_stated(struct ir_sdsc *s, uint32_t tensor, struct ir_tensor *t,
				const struct json *sizes)
{
	uint32_t rows = IR_NO_DIM;
	struct json at;
	int64_t size;

	TRY(json_expect(sizes, JSON_OBJECT));
	for (uint32_t d = 0; d < s->num_dims; d++) {
		if (!json_find(sizes, s->dim[d], &at))
			continue;
		TRY(read_size(s, t, d, &at, &size));
		rows = size > 1 ? d : rows;
	}
	if (!t->indexed)
		return json_wrong(sizes, "the sizes of the table along indexed dimensions");
	TRY(check_others(s, tensor, t, rows));
	return ir_place(s, t) ? SPYRE_SUCCESS :
	       unsupported(s, tensor, "it has 2^63 bytes or more", IR_NO_DIM);
}

static spyre_status set_table(struct ir_sdsc *s, uint32_t tensor, const struct nodes *all)
{
	struct ir_tensor *t = &s->tensor[tensor];
	struct json sizes;

	TRY(find_other(s, tensor, INDICES, all, &t->index));
	if (t->lx)
		return unsupported(s, tensor, "a table is in HBM, not in LX", IR_NO_DIM);
	if (t->num_parts > 1 || !t->word)
		return unsupported(s, tensor,
				   "elements are whole bytes, along one dimension of a stick",
				   IR_NO_DIM);
	s->indirect = true;
	if (json_find(&all->node[tensor].at, "indexedSizes_", &sizes))
		return find_stated(s, tensor, t, &sizes);
	TRY(find_rows(s, tensor, t));
	return place_rows(s, tensor, t);
}

spyre_status ir_parse_indirect(struct ir_sdsc *s, const struct json *dsc, const struct json *op)
{
	struct nodes all = { 0 };
	uint32_t table, dims = 0;

	TRY(read_nodes(s, dsc, &all));
	TRY(read_list(s, op, &all));
	for (uint32_t t = 0; t < s->num_tensors; t++) {
		if (all.node[t].kind != INDICES)
			continue;
		TRY(check_indices(s, t, &all));
		TRY(find_other(s, t, TABLE, &all, &table));
		for (uint32_t d = 0; d < s->num_dims; d++)
			dims |= s->tensor[t].scale[d] ? 1u << d : 0;
	}
	for (uint32_t t = 0; t < s->num_tensors; t++) {
		if (all.node[t].kind == TABLE)
			TRY(set_table(s, t, &all));
		if (all.node[t].kind == DIRECT && dims)
			TRY(check_direct(s, t, dims, &all.node[t].at));
	}
	return SPYRE_SUCCESS;
}
