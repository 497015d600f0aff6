// SPDX-License-Identifier: MIT
/*
 * Where a tensor's memory ends. A conversion iterates over whole sticks of its longest
 * format: 128 elements of fp8, of which a tensor of 64-element sticks may have the first 64
 * only. The file does not say so; the rest of the bundle does. An allocation that ends there
 * has no space for the padding, and an SDSC that reads or writes the same tensor without the
 * longer sticks is padded to the tensor's own. docs/sdsc.md has the rules.
 */
#include "libspyre/sdsc/lower/lower_reach.h"

#include "libspyre/sdsc/ir/address.h"
#include "libspyre/sdsc/lower/operations.h"
#include "libspyre/sdsc/lower/place.h"

#define MAX_DISTANCE 256u	/* statements that are searched in one direction */

struct search {
	struct lower *l;
	const struct bundle_source *source;
	uint32_t stmt;
};

static const struct ir_sdsc *sdsc_at(const struct search *x, uint32_t stmt)
{
	return bundle_source_sdsc(x->source, stmt);
}

/* True if the units of the stick dim are the outermost ones in memory. */
static bool outermost(const struct ir_sdsc *s, const struct ir_tensor *t)
{
	return t->num_parts == 1 && t->num_order && t->order[t->num_order - 1] == t->stick &&
	       lower_varies(t, t->stick) && s->slices[t->stick] == 1;
}

/*
 * Returns the extent, in sticks, that SDSC @s states for the memory of @t, a tensor of it at
 * the place of @of; 0 if it states none: it has other strides or is padded itself.
 */
static uint64_t stated_extent(const struct ir_sdsc *s, const struct ir_tensor *t,
			      const struct ir_tensor *of)
{
	if (s->has_window || t->format != of->format || !outermost(s, t) ||
	    t->stride[t->stick] != of->stride[of->stick] ||
	    ir_longest_stick(s, t->stick) != (int64_t)t->lanes)
		return 0;
	return t->extent[t->stick];
}

static bool is_output(const struct ir_sdsc *s, uint32_t tensor)
{
	return tensor == s->output;
}

/* True if a step from @first to before @stmt, other than x->stmt, writes a tensor at @place. */
static bool written_between(const struct search *x, uint32_t first, uint32_t stmt,
			    const struct place *place)
{
	for (uint32_t i = first; i < stmt; i++) {
		const struct ir_sdsc *s = sdsc_at(x, i);
		struct place other;

		if (i != x->stmt && place_of(x->l, i, &s->tensor[s->output], 0, &other) &&
		    place_same(&other, place))
			return true;
	}
	return false;
}

/*
 * True if a step reads bytes @first to @end, of what x->stmt wrote at @at, as another tensor
 * that no other step has written: the second half of the output, for example.
 */
static bool read_in_parts(const struct search *x, const struct place *at, int64_t first,
			  int64_t end)
{
	uint32_t begin = x->stmt > MAX_DISTANCE ? x->stmt - MAX_DISTANCE : 0;

	for (uint32_t i = x->stmt + 1; i < x->source->bundle.num_stmts; i++) {
		const struct ir_sdsc *s = sdsc_at(x, i);
		struct place place;
		int64_t from, to;

		for (uint32_t k = 0; k < s->num_tensors; k++) {
			if (is_output(s, k) ||
			    !place_range(x->l, i, s, &s->tensor[k], &place, &from, &to))
				continue;
			if (place.lx == at->lx && place.value.base == at->value.base &&
			    place.value.arg == at->value.arg && from < end && to > first &&
			    !place_same(&place, at) && !written_between(x, begin, i, &place))
				return true;
		}
		if (place_of(x->l, i, &s->tensor[s->output], 0, &place) && place_same(&place, at))
			break;
	}
	return false;
}

/* True if a step behind @stmt reads the tensor that @stmt wrote at @place. */
static bool read_later(const struct search *x, uint32_t stmt, const struct place *place)
{
	for (uint32_t i = stmt + 1; i < x->source->bundle.num_stmts; i++) {
		const struct ir_sdsc *s = sdsc_at(x, i);
		struct place other;

		for (uint32_t k = 0; k < s->num_tensors; k++)
			if (!is_output(s, k) && place_of(x->l, i, &s->tensor[k], 0, &other) &&
			    place_same(&other, place))
				return true;
		if (place_of(x->l, i, &s->tensor[s->output], 0, &other) &&
		    place_same(&other, place))
			return false;
	}
	return false;
}

/*
 * True if a step before x->stmt writes bytes @first to @end, which x->stmt reads at @at, as
 * another tensor that no step reads: the second half of the input, for example.
 */
static bool written_in_parts(const struct search *x, const struct place *at, int64_t first,
			     int64_t end)
{
	uint32_t begin = x->stmt > MAX_DISTANCE ? x->stmt - MAX_DISTANCE : 0;

	for (uint32_t i = begin; i < x->stmt; i++) {
		const struct ir_sdsc *s = sdsc_at(x, i);
		struct place place;
		int64_t from, to;

		if (place_range(x->l, i, s, &s->tensor[s->output], &place, &from, &to) &&
		    place.lx == at->lx && place.value.base == at->value.base &&
		    place.value.arg == at->value.arg && from < end && to > first &&
		    !place_same(&place, at) && !read_later(x, i, &place))
			return true;
	}
	return false;
}

/* The extent that the step which wrote an input states, the last one before it. */
static uint64_t from_writer(const struct search *x, const struct ir_sdsc *own,
			    const struct ir_tensor *t, const struct place *at)
{
	uint32_t begin = x->stmt > MAX_DISTANCE ? x->stmt - MAX_DISTANCE : 0;
	uint64_t extent = 0;
	int64_t first, end;
	struct place base;

	for (uint32_t i = x->stmt; i-- > begin;) {
		const struct ir_sdsc *s = sdsc_at(x, i);
		struct place place;

		if (!place_of(x->l, i, &s->tensor[s->output], 0, &place))
			return 0;
		if (place_same(&place, at)) {
			extent = stated_extent(s, &s->tensor[s->output], t);
			break;
		}
	}
	if (!extent || extent >= t->extent[t->stick])
		return extent;
	if (!place_range(x->l, x->stmt, own, t, &base, &first, &end))
		return 0;
	first += (int64_t)(extent * t->stride[t->stick]);
	return written_in_parts(x, at, first, end) ? 0 : extent;
}

/* The longest extent that the steps which read an output state, up to the next that writes it. */
static uint64_t from_readers(const struct search *x, const struct ir_sdsc *own,
			     const struct ir_tensor *t, const struct place *at)
{
	uint32_t end = x->source->bundle.num_stmts;
	int64_t first, last;
	struct place base;
	uint64_t longest = 0;

	if (end - x->stmt > MAX_DISTANCE)
		return 0;
	for (uint32_t i = x->stmt + 1; i < end; i++) {
		const struct ir_sdsc *s = sdsc_at(x, i);
		bool written = false;

		for (uint32_t k = 0; k < s->num_tensors; k++) {
			struct place place;
			uint64_t extent;

			if (!place_of(x->l, i, &s->tensor[k], 0, &place))
				return 0;
			if (!place_same(&place, at))
				continue;
			written = written || is_output(s, k);
			extent = stated_extent(s, &s->tensor[k], t);
			if (!is_output(s, k) && !extent)
				return 0;
			if (!is_output(s, k) && extent > longest)
				longest = extent;
		}
		if (written)
			break;
	}
	if (!longest || longest >= t->extent[t->stick])
		return longest;
	if (!place_range(x->l, x->stmt, own, t, &base, &first, &last))
		return 0;
	first += (int64_t)(longest * t->stride[t->stick]);
	return read_in_parts(x, at, first, last) ? 0 : longest;
}

/* Bytes of the allocation that holds a place, UINT64_MAX if the bundle does not state them. */
static uint64_t allocation(const struct search *x, const struct place *place)
{
	const struct bundle_source *source = x->source;

	if (place->lx)
		return SPYRE_LX_BYTES;
	if (place->value.base == IR_BASE_MEM)
		return source->bundle.mem[place->value.arg].bytes;
	if (place->value.base == IR_BASE_POOL && source->spec.has_pool_size)
		return source->spec.pool_size;
	return UINT64_MAX;
}

/* Sticks along the stick dim for which the allocation has space, without at most the padding. */
static uint64_t from_allocation(const struct search *x, const struct ir_sdsc *s,
				const struct ir_tensor *t)
{
	uint64_t box = lower_box_bytes(s, t), stride = t->stride[t->stick];
	uint64_t extent = t->extent[t->stick];
	uint64_t padding = (uint64_t)ir_longest_stick(s, t->stick) / t->lanes - 1;
	uint64_t least = extent > padding + 1 ? extent - padding : 1;

	for (uint32_t c = 0; c < s->num_cores; c++) {
		struct place place;
		uint64_t start, bytes;

		if (!place_of(x->l, x->stmt, t, c, &place) || place.value.constant < 0)
			return 0;
		start = (uint64_t)place.value.constant;
		bytes = allocation(x, &place);
		while (extent > least && box <= SPYRE_MAX_EXTENT &&
		       start + box - (t->extent[t->stick] - extent) * stride > bytes)
			extent--;
	}
	return extent < t->extent[t->stick] ? extent : 0;
}

/* Shortens @t to @extent sticks if these lack less than the longest stick of the dim. */
static void shorten(struct ir_sdsc *s, struct ir_tensor *t, uint64_t extent)
{
	uint32_t d = t->stick;
	int64_t held = (int64_t)extent * (int64_t)t->lanes;

	if (!extent || held >= s->size[d] || s->size[d] - held >= ir_longest_stick(s, d))
		return;
	t->gap[d] = held - s->size[d];
	/* Cannot overflow, because the tensor takes less memory than before. */
	ir_place(s, t);
}

/* Elements of the padded dims that all tensors of an SDSC have memory for. */
static int64_t held(const struct ir_sdsc *s, uint32_t dim)
{
	int64_t least = s->size[dim];

	for (uint32_t i = 0; i < s->num_tensors; i++)
		if (s->tensor[i].scale[dim] > 0 && s->size[dim] + s->tensor[i].gap[dim] < least)
			least = s->size[dim] + s->tensor[i].gap[dim];
	return least;
}

/* Only conversions are padded for sticks that a tensor does not have. */
static bool is_padded(const struct ir_sdsc *s, const struct ir_tensor *t)
{
	lower_rule_fn *rule = lower_rule(s->op);

	return (rule == lower_convert || rule == lower_quant) && outermost(s, t) &&
	       !s->symbol[t->stick][0] && !t->gap[t->stick] &&
	       ir_longest_stick(s, t->stick) > (int64_t)t->lanes &&
	       !(s->size[t->stick] % ir_longest_stick(s, t->stick));
}

/* True if launch_spec.json has the layout of an argument, which settles where it ends. */
static bool has_layout(const struct search *x, const struct place *place)
{
	const struct launch_spec *spec = &x->source->spec;

	return place->value.base == IR_BASE_ARG && !place->lx && spec->has_args &&
	       place->value.arg < spec->num_args && spec->args[place->value.arg].spec.has_layout;
}

/* Shortens the tensors of @s by what its memory and the steps that share it show. */
static void shorten_all(const struct search *x, struct ir_sdsc *s)
{
	for (uint32_t i = 0; i < s->num_tensors; i++) {
		struct ir_tensor *t = &s->tensor[i];
		struct place at;
		uint64_t extent;

		if (!is_padded(s, t) || !place_of(x->l, x->stmt, t, 0, &at) || has_layout(x, &at))
			continue;
		extent = is_output(s, i) ? from_readers(x, s, t, &at) : from_writer(x, s, t, &at);
		shorten(s, t, extent ? extent : from_allocation(x, s, t));
	}
}

/*
 * Elements that an input of statement @stmt uses of the output @of that x->stmt wrote at @at,
 * bytes @first to @end; 0 if it does not read that, and INT64_MAX if it may read all.
 */
static int64_t elements_used(const struct search *x, uint32_t stmt, uint32_t tensor,
			     const struct ir_tensor *of, const struct place *at, int64_t first,
			     int64_t end)
{
	struct search next = { .l = x->l, .source = x->source, .stmt = stmt };
	const struct ir_sdsc *s = sdsc_at(x, stmt);
	const struct ir_tensor *t = &s->tensor[tensor];
	int64_t from, to;
	struct ir_sdsc copy;
	struct place place;

	if (!place_range(x->l, stmt, s, t, &place, &from, &to))
		return INT64_MAX;
	if (place.lx != at->lx || place.value.base != at->value.base ||
	    place.value.arg != at->value.arg || to <= first || from >= end ||
	    written_between(x, x->stmt + 1, stmt, &place))
		return 0;
	if (!place_same(&place, at) || t->format != of->format || s->has_window ||
	    !outermost(s, t) || t->stride[t->stick] != of->stride[of->stick])
		return INT64_MAX;
	ir_copy_sdsc(&copy, s);
	shorten_all(&next, &copy);
	return held(&copy, t->stick);
}

/*
 * Elements along the stick of the output that later steps use, INT64_MAX if that is unknown.
 * Elements behind them are padding that no step reads, since only the bundle has this memory.
 */
static int64_t used_of_output(const struct search *x, const struct ir_sdsc *s)
{
	const struct ir_tensor *t = &s->tensor[s->output];
	uint32_t end_stmt = x->source->bundle.num_stmts;
	int64_t first, end, most = 0;
	struct place at;

	if (end_stmt - x->stmt > MAX_DISTANCE || !outermost(s, t) ||
	    !place_range(x->l, x->stmt, s, t, &at, &first, &end) ||
	    (!at.lx && at.value.base != IR_BASE_MEM && at.value.base != IR_BASE_POOL))
		return INT64_MAX;
	for (uint32_t i = x->stmt + 1; i < end_stmt; i++) {
		const struct ir_sdsc *next = sdsc_at(x, i);
		struct place place;

		for (uint32_t k = 0; k < next->num_tensors; k++) {
			int64_t used = is_output(next, k) ? 0 :
				       elements_used(x, i, k, t, &at, first, end);

			if (used > most)
				most = used;
		}
		if (!place_of(x->l, i, &next->tensor[next->output], 0, &place))
			return INT64_MAX;
		if (place_same(&place, &at))
			break;
	}
	return most ? most : INT64_MAX;
}

/* Shortens inputs whose padding makes only elements of the output that no step uses. */
static void shorten_inputs(const struct search *x, struct ir_sdsc *s)
{
	for (uint32_t i = 0; i < s->num_tensors; i++) {
		struct ir_tensor *t = &s->tensor[i];
		struct place at;
		int64_t used;

		if (is_output(s, i) || !is_padded(s, t) || t->stick != s->tensor[s->output].stick ||
		    !place_of(x->l, x->stmt, t, 0, &at) || has_layout(x, &at))
			continue;
		used = used_of_output(x, s);
		if (used < s->size[t->stick])
			shorten(s, t, ((uint64_t)used + t->lanes - 1) / t->lanes);
	}
}

/* In a loop, the step that writes a tensor may stand behind those that read it. */
static bool near_loop(const struct search *x)
{
	const struct ir_bundle *bundle = &x->source->bundle;
	uint32_t first = x->stmt > MAX_DISTANCE ? x->stmt - MAX_DISTANCE : 0;
	uint32_t end = bundle->num_stmts - x->stmt > MAX_DISTANCE ? x->stmt + MAX_DISTANCE :
		       bundle->num_stmts;

	for (uint32_t i = first; i < end; i++)
		if (bundle->stmts[i].kind != IR_STMT_EXECUTE)
			return true;
	return x->l->encoder->depth > 0;
}

static bool any_padded(const struct ir_sdsc *s)
{
	for (uint32_t i = 0; i < s->num_tensors; i++)
		if (is_padded(s, &s->tensor[i]))
			return true;
	return false;
}

void lower_reach(struct lower *l, const struct bundle_source *source, struct ir_sdsc *s)
{
	struct search x = { .l = l, .source = source,
			    .stmt = (uint32_t)(l->stmt - source->bundle.stmts) };

	if (s->has_window || !any_padded(s) || near_loop(&x))
		return;
	shorten_all(&x, s);
	if (any_padded(s))
		shorten_inputs(&x, s);
}
