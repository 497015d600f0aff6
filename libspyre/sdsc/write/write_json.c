// SPDX-License-Identifier: MIT
/* Builder: sdsc_<i>.json, with the keys and their order of the public front-end. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/graph/graph.h"
#include "libspyre/sdsc/write/write_file.h"
#include "libspyre/sdsc/write/write_json.h"

typedef yyjson_mut_val val;

struct writer {
	yyjson_mut_doc *doc;
	const struct ir_sdsc *s;
	enum build_kind kind;
};

static val *new_obj(struct writer *w)
{
	return yyjson_mut_obj(w->doc);
}

static val *new_arr(struct writer *w)
{
	return yyjson_mut_arr(w->doc);
}

static val *put_obj(struct writer *w, val *up, const char *key)
{
	return yyjson_mut_obj_add_obj(w->doc, up, key);
}

static val *put_arr(struct writer *w, val *up, const char *key)
{
	return yyjson_mut_obj_add_arr(w->doc, up, key);
}

static void put_int(struct writer *w, val *up, const char *key, int64_t n)
{
	yyjson_mut_obj_add_int(w->doc, up, key, n);
}

/* Adds a string that lives as long as the descriptor, so it is not copied. */
static void put_str(struct writer *w, val *up, const char *key, const char *text)
{
	yyjson_mut_obj_add_str(w->doc, up, key, text);
}

/* Adds a value with a copied key. */
static void put_new(struct writer *w, val *up, const char *key, val *v)
{
	yyjson_mut_obj_add(up, yyjson_mut_strcpy(w->doc, key), v);
}

static void put_dim_int(struct writer *w, val *up, uint32_t d, const char *tail, int64_t n)
{
	char key[IR_NAME_BYTES + 4];

	snprintf(key, sizeof(key), "%s%s", w->s->dim[d], tail);
	put_new(w, up, key, yyjson_mut_sint(w->doc, n));
}

/* {"factor_": n, "label_": label} */
static val *fold(struct writer *w, int64_t factor, const char *label)
{
	val *v = new_obj(w);

	put_int(w, v, "factor_", factor);
	put_str(w, v, "label_", label);
	return v;
}

/* {"Affine": {"alpha_": alpha, "beta_": 0}} */
static val *affine(struct writer *w, int64_t alpha)
{
	val *v = new_obj(w), *inner = put_obj(w, v, "Affine");

	put_int(w, inner, "alpha_", alpha);
	put_int(w, inner, "beta_", 0);
	return v;
}

static void put_kinds(struct writer *w, val *up, const char *a, const char *b, const char *c)
{
	val *list = put_arr(w, up, "dim_prop_func");
	const char *kind[3] = { a, b, c };

	for (int i = 0; i < 3; i++)
		put_obj(w, yyjson_mut_arr_add_obj(w->doc, list), kind[i]);
	list = put_arr(w, up, "dim_prop_attr");
	yyjson_mut_arr_append(list, fold(w, w->s->num_cores, "core"));
	yyjson_mut_arr_append(list, fold(w, 1, "corelet"));
	yyjson_mut_arr_append(list, fold(w, 1, "time"));
}

static void put_time_folds(struct writer *w, val *root)
{
	val *v;

	yyjson_mut_arr_append(put_arr(w, root, "sdscFoldProps_"), fold(w, 1, "time"));
	v = put_obj(w, root, "sdscFolds_");
	yyjson_mut_arr_append(put_arr(w, v, "dim_prop_func"), affine(w, 1));
	yyjson_mut_arr_append(put_arr(w, v, "dim_prop_attr"), fold(w, 1, "time"));
	put_str(w, put_obj(w, v, "data_"), "[0]", "0");
}

/* Writes the three tables that have an entry per core. */
static void put_cores(struct writer *w, val *root)
{
	const struct ir_sdsc *s = w->s;
	val *dsc = put_obj(w, root, "coreIdToDsc_"), *slices, *slice, *schedule;
	char key[16];

	for (uint32_t c = 0; c < s->num_cores; c++) {
		snprintf(key, sizeof(key), "%u", c);
		put_new(w, dsc, key, yyjson_mut_int(w->doc, 0));
	}
	slices = put_obj(w, root, "numWkSlicesPerDim_");
	for (uint32_t d = 0; d < s->num_dims; d++)
		put_int(w, slices, s->dim[d], s->slices[d]);
	slice = put_obj(w, root, "coreIdToWkSlice_");
	for (uint32_t c = 0; c < s->num_cores; c++) {
		val *entry = new_obj(w);

		snprintf(key, sizeof(key), "%u", c);
		put_new(w, slice, key, entry);
		for (uint32_t d = 0; d < s->num_dims; d++)
			put_int(w, entry, s->dim[d], s->slice[c][d]);
	}
	schedule = put_obj(w, root, "coreIdToDscSchedule");
	for (uint32_t c = 0; c < s->num_cores; c++) {
		static const int64_t once[4] = { -1, 0, 0, 0 };
		val *list = new_arr(w);

		snprintf(key, sizeof(key), "%u", c);
		put_new(w, schedule, key, list);
		yyjson_mut_arr_append(list, yyjson_mut_arr_with_sint64(w->doc, once, 4));
	}
}

static void put_padding(struct writer *w, val *el)
{
	val *table = put_obj(w, el, "paddingSizes_");

	for (uint32_t k = 0; k < 2; k++) {
		const struct ir_axis *a = &w->s->axis[k];
		int64_t pair[2] = { a->before, a->after };

		put_new(w, table, w->s->dim[a->dim],
			yyjson_mut_arr_with_sint64(w->doc, pair, 2));
	}
}

static void put_steps(struct writer *w, val *attributes)
{
	for (int i = 0; i < 2; i++) {
		val *table = put_obj(w, attributes, i ? "dilations_" : "strides_");

		for (uint32_t k = 0; k < 2; k++) {
			const struct ir_axis *a = &w->s->axis[k];

			put_new(w, table, w->s->dim[a->dim],
				yyjson_mut_sint(w->doc, i ? a->dilation : a->stride));
		}
	}
}

static void put_space(struct writer *w, val *dsc)
{
	const struct ir_sdsc *s = w->s;
	val *n = put_obj(w, dsc, "N_"), *masks, *stage;

	put_str(w, n, "name_", "n");
	for (uint32_t d = 0; d < s->num_dims; d++)
		put_dim_int(w, n, d, "_", s->size[d]);
	masks = put_obj(w, dsc, "coordinateMasking_");
	for (uint32_t i = 0; i < s->num_masks; i++) {
		int64_t pair[2] = { s->mask[i].start, s->mask[i].length };

		yyjson_mut_arr_append(put_arr(w, masks, s->dim[s->mask[i].dim]),
				      yyjson_mut_arr_with_sint64(w->doc, pair, 2));
	}
	put_int(w, dsc, "maskingConstId_", s->num_masks ? 0 : -1);
	stage = put_obj(w, put_obj(w, dsc, "dataStageParam_"), "0");
	for (int i = 0; i < 2; i++) {
		val *v = put_obj(w, stage, i ? "el_" : "ss_");

		put_str(w, v, "name_", "core");
		for (uint32_t d = 0; d < s->num_dims; d++)
			put_dim_int(w, v, d, "_", s->el[d]);
		if (i && s->has_window)
			put_padding(w, v);
	}
}

/* True if each tensor is described in its own order. */
static bool own_orders(const struct writer *w)
{
	return w->kind == BUILD_MATMUL || w->kind == BUILD_WINDOW || w->kind == BUILD_TOPK ||
	       w->kind == BUILD_INDEX;
}

/*
 * Tensor whose order describes a tensor: the first with the same dims and sticks.
 * Matmuls have an entry for each tensor.
 */
static uint32_t model_of(const struct writer *w, uint32_t index)
{
	const struct ir_tensor *t = &w->s->tensor[index];

	for (uint32_t i = 0; i < index && !own_orders(w); i++)
		if (w->s->tensor[i].stick == t->stick && w->s->tensor[i].lanes == t->lanes)
			return i;
	return index;
}

static const char *label_of(const struct writer *w, uint32_t index)
{
	static const char *const matmul[] = { "INPUT", "KERNEL", "OUTPUT" };
	static const char *const other[] = { "OUTPUT", "KERNEL", "INPUT", "KERNEL_IDX" };
	uint32_t n = 0;

	if (w->kind == BUILD_MATMUL && index >= 2 && index != w->s->output)
		return other[3];
	if (own_orders(w))
		return index == w->s->output ? matmul[2] : matmul[index];
	for (uint32_t i = 0; i < model_of(w, index); i++)
		n += model_of(w, i) == i;
	return other[n % 4];
}

/* Tensor whose order scale_ and coordInfo follow. */
static const struct ir_tensor *model(const struct writer *w, uint32_t index)
{
	const struct ir_sdsc *s = w->s;
	const struct ir_tensor *t = &s->tensor[model_of(w, index)];

	/* Broadcast inputs may come first; the output varies along all dims. */
	if (w->kind == BUILD_POINTWISE)
		t = &s->tensor[s->output];
	return t;
}

static void put_order(struct writer *w, val *up, const struct ir_tensor *t)
{
	val *order = put_arr(w, up, "layoutDimOrder_");

	for (uint32_t k = 0; k < t->num_order; k++)
		yyjson_mut_arr_add_str(w->doc, order, w->s->dim[t->order[k]]);
}

static void put_labels(struct writer *w, val *dsc)
{
	val *infos = put_obj(w, dsc, "primaryDsInfo_");

	for (uint32_t i = 0; i < w->s->num_tensors; i++) {
		const struct ir_tensor *t = model(w, i);
		val *info;

		if (model_of(w, i) != i)
			continue;
		info = put_obj(w, infos, label_of(w, i));
		put_order(w, info, t);
		yyjson_mut_arr_add_str(w->doc, put_arr(w, info, "stickDimOrder_"),
				       w->s->dim[t->stick]);
		yyjson_mut_arr_add_int(w->doc, put_arr(w, info, "stickSize_"),
				       w->s->tensor[i].lanes);
	}
}

/* Writes the start of each core's share: an address or a symbol. */
static void put_starts(struct writer *w, val *node, const struct ir_tensor *t)
{
	val *start = put_obj(w, node, "startAddressCoreCorelet_"), *data;

	put_kinds(w, start, "Map", "Const", "Const");
	data = put_obj(w, start, "data_");
	for (uint32_t c = 0; c < w->s->num_cores; c++) {
		char key[32], text[32];

		snprintf(key, sizeof(key), "[%u, 0, 0]", c);
		snprintf(text, sizeof(text), "%" PRId64, t->start[c]);
		put_new(w, data, key, yyjson_mut_strcpy(w->doc, text));
	}
}

/* Memory beyond the iteration space, of a table's indexed dims beyond its rows. */
static int64_t gap_of(const struct ir_tensor *t, uint32_t d)
{
	int64_t unit = d == t->stick ? t->lanes : 1;

	if (!(t->indexed >> d & 1) || (!t->gap[d] && d != t->stick))
		return t->gap[d];
	return t->gap[d] - (((int64_t)t->rows + unit - 1) / unit - 1) * unit;
}

/* Writes the gaps: memory of a tensor beyond the iteration space. LX has none. */
static void put_gaps(struct writer *w, val *node, const struct ir_tensor *t)
{
	val *gaps = NULL;

	for (uint32_t k = 0; k < t->num_order; k++) {
		uint32_t d = t->order[k];
		char text[32];

		if (!gap_of(t, d))
			continue;
		if (!gaps)
			gaps = put_obj(w, node, "backGapCore_");
		snprintf(text, sizeof(text), "%" PRId64, gap_of(t, d));
		yyjson_mut_obj_add_strcpy(w->doc, put_obj(w, gaps, w->s->dim[d]), "-1", text);
	}
}

/* Size in memory, which resolves the two meanings of a ReStickifyOpHBM's gap (docs/sdsc.md). */
static int64_t stated_size(const struct ir_sdsc *s, const struct ir_tensor *t, uint32_t d)
{
	return t->gap[d] && !strcmp(s->op, "ReStickifyOpHBM") ? s->size[d] + t->gap[d] : -1;
}

/* Writes the folds of a coordinate: alpha and factor of each, outer to inner. */
static void put_coordinate(struct writer *w, val *up, const struct ir_tensor *t, uint32_t d)
{
	static const char *const stick_names[] = { "core_fold", "corelet_fold", "row_fold",
						   "elem_arr_1", "elem_arr_0" };
	static const char *const plain_names[] = { "core_fold", "corelet_fold", "row_fold",
						   "elem_arr_0" };
	const struct ir_sdsc *s = w->s;
	bool stick = d == t->stick, varies = t->scale[d] > 0;
	int64_t lanes = t->lanes, el = varies ? s->el[d] : stick ? lanes : 1;
	int64_t n = varies ? s->slices[d] : 1;
	int64_t alpha[5] = { el, 0, 0, stick ? lanes : 1, varies || t->scale[d] == -1 };
	int64_t factor[5] = { n, 1, 1, stick ? (el + lanes - 1) / lanes : el, lanes };
	val *info = put_obj(w, up, s->dim[d]), *folds, *list;
	int count = stick ? 5 : 4;

	put_int(w, info, "spatial", 3);
	put_int(w, info, "temporal", 0);
	put_int(w, info, "elemArr", count - 3);
	put_str(w, info, "padding", "nopad");
	folds = put_obj(w, info, "folds");
	list = put_arr(w, folds, "dim_prop_func");
	for (int i = 0; i < count; i++)
		yyjson_mut_arr_append(list, affine(w, alpha[i]));
	list = put_arr(w, folds, "dim_prop_attr");
	for (int i = 0; i < count; i++)
		yyjson_mut_arr_append(list, fold(w, factor[i],
						 stick ? stick_names[i] : plain_names[i]));
}

/* Adds the name of a tensor's node. */
static void put_node_name(struct writer *w, val *up, const char *key, uint32_t index)
{
	char name[64];

	snprintf(name, sizeof(name), "allocate-Tensor%u_%s", index,
		 w->s->tensor[index].lx ? "lx" : "hbm");
	yyjson_mut_obj_add_strcpy(w->doc, up, key, name);
}

/* The table of which a tensor holds the indices, or UINT32_MAX. */
static uint32_t own_table(const struct ir_sdsc *s, uint32_t index)
{
	for (uint32_t i = 0; i < s->num_tensors; i++)
		if (s->tensor[i].indexed && s->tensor[i].index == index)
			return i;
	return UINT32_MAX;
}

static void put_indirection(struct writer *w, val *node, uint32_t index)
{
	const struct ir_tensor *t = &w->s->tensor[index];
	uint32_t table = own_table(w->s, index), rows = IR_NO_DIM;
	val *sizes;

	if (table < w->s->num_tensors) {
		put_str(w, node, "indirectAllocType_", "index_tensor");
		put_node_name(w, node, "relatedIndirectAccessAlloc_", table);
		put_str(w, node, "indexTensorType_", "index");
		return;
	}
	if (!t->indexed) {
		put_str(w, node, "indirectAllocType_", "no_indirection");
		return;
	}
	put_str(w, node, "indirectAllocType_", "value_tensor");
	put_node_name(w, node, "relatedIndirectAccessAlloc_", t->index);
	sizes = put_obj(w, node, "indexedSizes_");
	for (uint32_t d = 0; d < w->s->num_dims; d++)
		if ((t->indexed >> d & 1) && (t->gap[d] || d == t->stick))
			rows = d;
	for (uint32_t d = 0; d < w->s->num_dims; d++)
		if (t->indexed >> d & 1)
			put_int(w, sizes, w->s->dim[d], d == rows ? (int64_t)t->rows : 1);
}

static void put_node(struct writer *w, val *tree, uint32_t index)
{
	const struct ir_tensor *t = &w->s->tensor[index], *order = model(w, index);
	val *node = yyjson_mut_arr_add_obj(w->doc, tree), *sizes, *coordinates, *info;

	put_str(w, node, "nodeType_", "allocate");
	put_node_name(w, node, "name_", index);
	put_str(w, node, "prev_", "");
	put_int(w, node, "ldsIdx_", index);
	put_str(w, node, "component_", t->lx ? "lx" : "hbm");
	if (!t->lx)
		put_int(w, node, "isStartAddrSymbolic_", 1);
	put_order(w, node, t);
	sizes = put_arr(w, node, "maxDimSizes_");
	for (uint32_t k = 0; k < t->num_order; k++)
		yyjson_mut_arr_add_int(w->doc, sizes, stated_size(w->s, t, t->order[k]));
	put_indirection(w, node, index);
	put_starts(w, node, t);
	put_gaps(w, node, t);
	coordinates = put_obj(w, node, "coordinates_");
	info = put_obj(w, coordinates, "coordInfo");
	for (uint32_t k = 0; k < order->num_order; k++)
		put_coordinate(w, info, t, order->order[k]);
	put_obj(w, coordinates, "coreIdToWkSlice_");
}

static void put_tensor(struct writer *w, val *list, uint32_t index)
{
	const struct ir_tensor *t = &w->s->tensor[index], *order = model(w, index);
	val *v = yyjson_mut_arr_add_obj(w->doc, list), *scale, *org;
	char name[32];

	snprintf(name, sizeof(name), "Tensor%u", index);
	put_int(w, v, "ldsIdx_", index);
	yyjson_mut_obj_add_strcpy(w->doc, v, "dsName_", name);
	put_str(w, v, "dsType_", label_of(w, index));
	scale = put_arr(w, v, "scale_");
	for (uint32_t k = 0; k < order->num_order; k++)
		yyjson_mut_arr_add_int(w->doc, scale, t->scale[order->order[k]]);
	put_int(w, v, "wordLength", t->word);
	put_str(w, v, "dataFormat_", spyre_format_name((spyre_format)t->format));
	org = put_obj(w, v, "memOrg_");
	if (!t->lx)
		put_int(w, put_obj(w, org, "hbm"), "isPresent", 1);
	put_int(w, put_obj(w, org, "lx"), "isPresent", 1);
}

static void put_constants(struct writer *w, val *dsc)
{
	val *table;

	if (!w->s->num_constants) {
		put_str(w, dsc, "constantInfo_", "{}");
		return;
	}
	table = put_obj(w, dsc, "constantInfo_");
	for (uint32_t i = 0; i < w->s->num_constants; i++) {
		const struct ir_constant *c = &w->s->constant[i];
		val *entry = new_obj(w), *data, *list;
		char text[16];

		snprintf(text, sizeof(text), "%u", i);
		put_new(w, table, text, entry);
		put_str(w, entry, "dataFormat_", spyre_format_name((spyre_format)c->format));
		put_str(w, entry, "name_", c->name);
		data = put_obj(w, entry, "data_");
		put_kinds(w, data, "Const", "Const", "Map");
		list = put_arr(w, put_obj(w, data, "data_"), "[0, 0, 0]");
		snprintf(text, sizeof(text), "%u", c->bits);
		yyjson_mut_arr_add_strcpy(w->doc, list, text);
	}
}

static void add_idx(struct writer *w, val *list, uint32_t index)
{
	char name[32];

	snprintf(name, sizeof(name), "Tensor%u-idx%u", index, index);
	yyjson_mut_arr_add_strcpy(w->doc, list, name);
}

/* The table of an SDSC that has one; an output that is a table comes first. */
static uint32_t first_table(const struct ir_sdsc *s)
{
	uint32_t table = s->output;

	for (uint32_t i = 0; i < s->num_tensors && !s->tensor[table].indexed; i++)
		table = i;
	return table;
}

static void put_compute(struct writer *w, val *dsc)
{
	const struct ir_sdsc *s = w->s;
	const struct ir_tensor *first = &s->tensor[w->kind == BUILD_INDEX ? s->output : 0];
	val *op = yyjson_mut_arr_add_obj(w->doc, put_arr(w, dsc, "computeOp_")), *v;

	put_str(w, op, "exUnit", w->kind == BUILD_MATMUL || !strcmp(s->op, "conv2d") ?
		"pt" : "sfp");
	put_str(w, op, "opFuncName", s->op);
	v = put_obj(w, op, "attributes_");
	put_str(w, v, "dataFormat_", spyre_format_name((spyre_format)first->format));
	put_str(w, v, "fidelity_", "regular");
	if (s->has_window)
		put_steps(w, v);
	put_str(w, op, "location", "Inner");
	v = put_arr(w, op, "inputLabeledDs");
	for (uint32_t i = 0; i < s->num_inputs; i++)
		add_idx(w, v, s->input[i]);
	add_idx(w, put_arr(w, op, "outputLabeledDs"), s->output);
	if (s->indirect)
		add_idx(w, put_arr(w, op, "indirectAccessIndexLabeledDs"),
			s->tensor[first_table(s)].index);
}

static void put_all(struct writer *w)
{
	const struct ir_sdsc *s = w->s;
	val *doc = new_obj(w), *root, *dsc, *list;

	yyjson_mut_doc_set_root(w->doc, doc);
	root = put_obj(w, doc, s->root);
	put_time_folds(w, root);
	yyjson_mut_obj_add_val(w->doc, root, "coreFoldProp_", fold(w, s->num_cores, "core"));
	yyjson_mut_obj_add_val(w->doc, root, "coreletFoldProp_", fold(w, 1, "corelet"));
	put_int(w, root, "numCoresUsed_", s->num_cores);
	put_cores(w, root);
	dsc = put_obj(w, yyjson_mut_arr_add_obj(w->doc, put_arr(w, root, "dscs_")), s->op);
	put_int(w, dsc, "numCoresUsed_", s->num_cores);
	put_int(w, dsc, "numCoreletsUsed_", 1);
	list = put_arr(w, dsc, "coreIdsUsed_");
	for (uint32_t c = 0; c < s->num_cores; c++)
		yyjson_mut_arr_add_int(w->doc, list, s->core[c]);
	put_space(w, dsc);
	put_labels(w, dsc);
	list = put_arr(w, dsc, "scheduleTree_");
	for (uint32_t i = 0; i < s->num_tensors; i++)
		put_node(w, list, i);
	list = put_arr(w, dsc, "labeledDs_");
	for (uint32_t i = 0; i < s->num_tensors; i++)
		put_tensor(w, list, i);
	put_constants(w, dsc);
	put_compute(w, dsc);
}

spyre_status build_write_json(const struct build_step *step, const char *directory)
{
	const struct ir_sdsc *sdsc = &step->sdsc;
	struct writer w = { .s = sdsc, .kind = step->op->kind };
	spyre_status status;
	char *text = NULL;
	size_t size = 0;

	w.doc = yyjson_mut_doc_new(NULL);
	if (w.doc) {
		put_all(&w);
		text = yyjson_mut_write(w.doc, YYJSON_WRITE_PRETTY_TWO_SPACES, &size);
	}
	if (text)
		status = build_write_file(directory, sdsc->file, text, size);
	else
		status = spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "%s: no memory to write it",
				     sdsc->file);
	free(text);
	yyjson_mut_doc_free(w.doc);
	return status;
}
