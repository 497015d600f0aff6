// SPDX-License-Identifier: MIT
/*
 * From a layout and a strided host tensor to the DMA engine's descriptor:
 * where each device coordinate lies on the host, and linear bounds that say
 * which coordinates are real and which are padding.
 */
#include "libspyre/layout/transfer.h"

#include <inttypes.h>
#include <string.h>

#include "libspyre/base/error.h"
#include "libspyre/layout/stick.h"

/* State of both kinds of mapping. All numbers are in elements. */
struct plan {
	enum spyre_dma_dir direction;
	const spyre_layout *layout;
	const spyre_host_tensor *tensor;
	uint32_t rank;			/* device dimensions */
	int64_t lanes;
	uint64_t step[SPYRE_DMA_MAX_DIMS];	/* host elements per step */
	uint32_t num_bounds;
	struct spyre_dma_bound bound[SPYRE_DMA_MAX_DIMS];
};

static struct spyre_dma_bound *add_bound(struct plan *p, uint64_t limit)
{
	struct spyre_dma_bound *b = &p->bound[p->num_bounds++];

	memset(b, 0, sizeof(*b));
	b->limit = limit;
	return b;
}

/* Adds the bound that all but coordinate 0 of device dimension @j is padding. */
static void pin(struct plan *p, uint32_t j)
{
	if (p->layout->device_size[j] > 1)
		add_bound(p, 1)->coef[j] = 1;
}

/*
 * Mapped layouts (constructors 1 and 2): each device dimension walks a known
 * host dimension, the tile index of the stick dimension by whole sticks.
 */
static bool is_tile(const spyre_layout *layout, uint32_t j)
{
	return j + 1 < layout->device_rank && layout->dim_map[j] >= 0 &&
	       layout->dim_map[j] == layout->dim_map[layout->device_rank - 1];
}

/* Host indices per step along device dimension @j. */
static uint64_t index_step(const struct plan *p, uint32_t j)
{
	return is_tile(p->layout, j) ? p->lanes : 1;
}

/* True if the layout was made for a tensor of exactly this shape. */
static bool mapped_fits(const struct plan *p)
{
	const spyre_layout *l = p->layout;
	uint32_t seen = 0;

	if (!l->mapped)
		return false;
	for (uint32_t j = 0; j < p->rank; j++) {
		int d = l->dim_map[j];
		int64_t size;

		if (d < 0) {
			size = 1;
		} else if (d >= (int)p->tensor->rank) {
			return false;
		} else {
			seen |= 1u << d;
			size = p->tensor->size[d];
		}
		if (is_tile(l, j))
			size = size / p->lanes + !!(size % p->lanes);
		if (j + 1 < p->rank && l->device_size[j] != size)
			return false;
	}
	return seen == (1u << p->tensor->rank) - 1;
}

static void plan_mapped(struct plan *p)
{
	const spyre_layout *l = p->layout;
	const spyre_host_tensor *t = p->tensor;

	for (uint32_t j = 0; j < p->rank; j++) {
		int d = l->dim_map[j];

		if (d < 0)
			pin(p, j);
		else if (t->size[d] > 1)
			p->step[j] = index_step(p, j) * (uint64_t)t->stride[d];
	}
	for (uint32_t d = 0; d < t->rank; d++) {
		/* An expanded dimension has one element: D2H takes the first copy. */
		bool first = p->direction == SPYRE_DMA_D2H && !t->stride[d];
		uint64_t size = first ? 1 : t->size[d];
		struct spyre_dma_bound *b;
		uint64_t last = 0;

		for (uint32_t j = 0; j < p->rank; j++)
			if (l->dim_map[j] == (int)d)
				last += (l->device_size[j] - 1) * index_step(p, j);
		if (last < size)
			continue;
		b = add_bound(p, size);
		for (uint32_t j = 0; j < p->rank; j++)
			if (l->dim_map[j] == (int)d && l->device_size[j] > 1)
				b->coef[j] = index_step(p, j);
	}
}

/*
 * Explicit layouts (constructor 3) name host strides only. Host dimensions
 * that lie densely in one another are merged into runs; a device dimension
 * walks the run with the largest element distance that divides its stride.
 */
struct run {
	int64_t stride;
	int64_t size;
	uint32_t num_dims;
	uint32_t dim[SPYRE_DMA_MAX_DIMS];	/* device dimensions, coarse first */
};

static uint32_t merge_runs(const spyre_host_tensor *t, struct run *run)
{
	uint32_t n = 0;

	for (uint32_t d = 0; d < t->rank; d++) {
		uint32_t i = n;

		if (t->size[d] == 1 || !t->stride[d])
			continue;
		while (i > 0 && run[i - 1].stride < t->stride[d]) {
			run[i] = run[i - 1];
			i--;
		}
		run[i] = (struct run){ .stride = t->stride[d], .size = t->size[d] };
		n++;
	}
	for (uint32_t i = n; i-- > 1;) {
		int64_t whole;

		if (__builtin_mul_overflow(run[i].stride, run[i].size, &whole) ||
		    run[i - 1].stride != whole)
			continue;
		run[i - 1].stride = run[i].stride;
		run[i - 1].size *= run[i].size;
		memmove(&run[i], &run[i + 1], (n - i - 1) * sizeof(*run));
		n--;
	}
	return n;
}

static void insert_dim(const spyre_layout *l, struct run *run, uint32_t j)
{
	uint32_t i = run->num_dims++;

	for (; i > 0 && l->stride_map[run->dim[i - 1]] < l->stride_map[j]; i--)
		run->dim[i] = run->dim[i - 1];
	run->dim[i] = j;
}

static spyre_status assign_dims(struct plan *p, struct run *run, uint32_t num_runs)
{
	const spyre_layout *l = p->layout;

	for (uint32_t j = 0; j < p->rank; j++) {
		int64_t stride = l->stride_map[j];
		struct run *owner = NULL;

		if (l->device_size[j] == 1)
			continue;
		if (stride < 0 || (!stride && p->direction == SPYRE_DMA_D2H))
			pin(p, j);
		if (stride <= 0)
			continue;
		for (uint32_t r = 0; r < num_runs; r++)
			if (stride % run[r].stride == 0 &&
			    (!owner || run[r].stride > owner->stride))
				owner = &run[r];
		if (!owner && num_runs)
			return spyre_error(SPYRE_ERROR_LAYOUT,
					   "device dimension %u has stride_map %" PRId64 ", which is not a multiple of any stride of the host tensor (finest %" PRId64 "); it cannot describe this tensor",
					   j, stride, run[num_runs - 1].stride);
		p->step[j] = stride;
		if (owner)
			insert_dim(l, owner, j);
		else
			pin(p, j);	/* the run has a single host element */
	}
	return SPYRE_SUCCESS;
}

/*
 * Within a run every element has one canonical place: the digits of its
 * position in the mixed radix of the strides, coarse first. So the sum of the
 * finer dimensions stays below the stride of a coarser one.
 *
 * Adds the bound "the sum of run->dim[i..] stays below @limit" unless @reach,
 * the largest such sum, always does. The bound of the next call keeps the sum
 * of dim[i+1..] below the stride of dim[i]. All are in elements.
 */
static void add_digit_bound(struct plan *p, const struct run *run, uint32_t i, int64_t limit,
			    int64_t reach)
{
	const int64_t *stride = p->layout->stride_map;
	struct spyre_dma_bound *b;

	if (reach < limit)
		return;
	if (limit % stride[run->dim[i]] == 0) {
		b = add_bound(p, limit / stride[run->dim[i]]);
		b->coef[run->dim[i]] = 1;
		return;
	}
	b = add_bound(p, (limit - 1) / run->stride + 1);
	for (; i < run->num_dims; i++)
		b->coef[run->dim[i]] = stride[run->dim[i]] / run->stride;
}

static spyre_status bound_run(struct plan *p, const struct run *run)
{
	int64_t reach[SPYRE_DMA_MAX_DIMS + 1] = { 0 };
	const spyre_layout *l = p->layout;
	int64_t total;

	for (uint32_t i = run->num_dims; i-- > 0;) {
		int64_t stride = l->stride_map[run->dim[i]];
		int64_t finer = i + 1 < run->num_dims ? reach[i + 1] : 0;

		if (finer > stride - 1)
			finer = stride - 1;
		if (__builtin_mul_overflow(l->device_size[run->dim[i]] - 1, stride, &reach[i]) ||
		    __builtin_add_overflow(reach[i], finer, &reach[i]))
			return spyre_error(SPYRE_ERROR_LAYOUT,
					   "device dimension %u of size %" PRId64 " with stride_map %" PRId64 " reaches beyond 2^63 elements",
					   run->dim[i], l->device_size[run->dim[i]], stride);
	}
	/* (size - 1) * stride is in memory, one more stride need not be. */
	if (__builtin_mul_overflow(run->stride, run->size, &total))
		total = INT64_MAX;
	for (uint32_t i = 0; i < run->num_dims; i++)
		add_digit_bound(p, run, i, i ? l->stride_map[run->dim[i - 1]] : total, reach[i]);
	return SPYRE_SUCCESS;
}

/* Number of the first @size elements of a run that have a canonical place. */
static uint64_t reached(const struct plan *p, const struct run *run, uint32_t i, int64_t size)
{
	int64_t step, full, count;

	if (i == run->num_dims || size <= 0)
		return size > 0;
	step = p->layout->stride_map[run->dim[i]] / run->stride;
	count = p->layout->device_size[run->dim[i]];
	full = size / step;
	if (full >= count)
		return count * reached(p, run, i + 1, step);
	return (full ? full * reached(p, run, i + 1, step) : 0) +
	       reached(p, run, i + 1, size % step);
}

static spyre_status plan_explicit(struct plan *p)
{
	struct run run[SPYRE_MAX_RANK];
	uint32_t num_runs = merge_runs(p->tensor, run);
	uint64_t have = 1, want = 1;
	spyre_status status;

	status = assign_dims(p, run, num_runs);
	for (uint32_t r = 0; !status && r < num_runs; r++) {
		status = bound_run(p, &run[r]);
		have *= reached(p, &run[r], 0, run[r].size);
		if (__builtin_mul_overflow(want, (uint64_t)run[r].size, &want))
			want = UINT64_MAX;
	}
	if (!status && have != want)
		status = spyre_error(SPYRE_ERROR_LAYOUT,
				     "the layout holds %" PRIu64 " of the %" PRIu64 " elements of the host tensor; its device_size and stride_map must reach every element",
				     have, want);
	return status;
}

/* Elements that overlap in memory would make the result depend on the order of D2H. */
static spyre_status check_overlap(const spyre_host_tensor *t)
{
	struct run run[SPYRE_MAX_RANK];
	uint32_t n = merge_runs(t, run);
	int64_t span = 0;

	for (uint32_t r = n; r-- > 0;) {
		if (run[r].stride <= span)
			return spyre_error(SPYRE_ERROR_LAYOUT,
					   "the host tensor overlaps itself (stride %" PRId64 " within a span of %" PRId64 " elements); copy to a dense tensor instead",
					   run[r].stride, span + 1);
		span += (run[r].size - 1) * run[r].stride;
	}
	return SPYRE_SUCCESS;
}

/* Checks the tensor; @last becomes the distance of its last element, -1 if it has none. */
static spyre_status check_tensor(const spyre_host_tensor *t, int64_t *last)
{
	int64_t bytes = (int64_t)spyre_format_bytes(t->format);
	bool empty = false;

	*last = 0;
	if (t->rank > SPYRE_MAX_RANK)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "host tensor of rank %u, the limit is %d", t->rank,
				   SPYRE_MAX_RANK);
	if (!bytes)
		return spyre_error(SPYRE_ERROR_FORMAT,
				   "host tensor of a format without whole-byte elements (%d)",
				   (int)t->format);
	for (uint32_t d = 0; d < t->rank; d++) {
		if (t->size[d] < 0 || t->stride[d] < 0)
			return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
					   "host dimension %u has size %" PRId64 " and stride %" PRId64 "; neither may be negative",
					   d, t->size[d], t->stride[d]);
		empty |= !t->size[d];
	}
	for (uint32_t d = 0; d < t->rank && !empty; d++) {
		int64_t reach;

		if (__builtin_mul_overflow(t->size[d] - 1, t->stride[d], &reach) ||
		    __builtin_add_overflow(*last, reach, last) ||
		    *last > INT64_MAX / bytes - 1)
			return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
					   "host tensor reaches beyond 2^63 bytes (dimension %u, size %" PRId64 ", stride %" PRId64 ")",
					   d, t->size[d], t->stride[d]);
	}
	if (empty) {
		*last = -1;
		return SPYRE_SUCCESS;
	}
	if (t->storage_offset < 0 || t->storage_offset > INT64_MAX / bytes)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT,
				   "host tensor with a storage_offset of %" PRId64 " elements",
				   t->storage_offset);
	if (!t->data)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "host tensor without data");
	return SPYRE_SUCCESS;
}

static spyre_status check_layout(const spyre_layout *l)
{
	int64_t lanes = spyre_stick_elements(l->device_format);

	if (!l->device_rank || l->device_rank > SPYRE_MAX_DEVICE_RANK || !lanes ||
	    l->device_size[l->device_rank - 1] != lanes)
		return spyre_error(SPYRE_ERROR_LAYOUT,
				   "the layout is not a valid one (rank %u); use a spyre_layout_init function",
				   l->device_rank);
	if (l->arrangement != SPYRE_EA_STANDARD)
		return spyre_error(SPYRE_ERROR_UNSUPPORTED,
				   "element arrangement %d: the card keeps lanes in plain order; use a STANDARD layout (docs/unsupported.md)",
				   (int)l->arrangement);
	for (uint32_t j = 0; j < l->device_rank; j++)
		if (l->device_size[j] < 1 || l->device_size[j] > INT64_C(1) << 31 ||
		    l->stride_map[j] < -1)
			return spyre_error(SPYRE_ERROR_LAYOUT,
					   "device dimension %u has size %" PRId64 " and stride_map %" PRId64 "; the DMA engine takes sizes 1 to 2^31",
					   j, l->device_size[j], l->stride_map[j]);
	if (spyre_layout_bytes(l) > INT64_MAX)
		return spyre_error(SPYRE_ERROR_LAYOUT,
				   "the device sizes multiply to more than 2^63 bytes");
	return SPYRE_SUCCESS;
}

static spyre_status check_formats(const spyre_layout *l, const spyre_host_tensor *t)
{
	const char *host = spyre_format_name(t->format);
	const char *device = spyre_format_name(l->device_format);

	if (spyre_fmt_convertible((enum spyre_fmt)t->format, (enum spyre_fmt)l->device_format))
		return SPYRE_SUCCESS;
	return spyre_error(SPYRE_ERROR_FORMAT,
			   "the DMA engine has no conversion between host format %s and device format %s",
			   host ? host : "?", device ? device : "?");
}

static spyre_status fill_desc(struct spyre_transfer *transfer, const struct plan *p)
{
	struct spyre_dma_desc *desc = &transfer->desc;
	uint64_t bytes = spyre_format_bytes(p->tensor->format);

	desc->direction = p->direction;
	desc->host_format = p->tensor->format;
	desc->device_format = p->layout->device_format;
	desc->num_dims = p->rank;
	desc->num_bounds = p->num_bounds;
	for (uint32_t j = 0; j < p->rank; j++) {
		desc->dim[j].count = (uint32_t)p->layout->device_size[j];
		/* The stride of a dimension of one step has no effect. */
		if (desc->dim[j].count > 1 &&
		    __builtin_mul_overflow(p->step[j], bytes, &desc->dim[j].host_stride))
			return spyre_error(SPYRE_ERROR_LAYOUT,
					   "device dimension %u steps %" PRIu64 " host elements, more than 2^64 bytes",
					   j, p->step[j]);
	}
	memcpy(desc->bound, p->bound, p->num_bounds * sizeof(p->bound[0]));
	return SPYRE_SUCCESS;
}

spyre_status spyre_transfer_init(struct spyre_transfer *transfer, enum spyre_dma_dir direction,
				 const spyre_layout *layout, const spyre_host_tensor *tensor)
{
	struct plan p = { .direction = direction, .layout = layout, .tensor = tensor };
	spyre_status status;
	int64_t last;

	memset(transfer, 0, sizeof(*transfer));
	if (!layout || !tensor)
		return spyre_error(SPYRE_ERROR_INVALID_ARGUMENT, "copy without a %s",
				   layout ? "host tensor" : "layout");
	status = check_tensor(tensor, &last);
	if (status || last < 0)
		return status;
	status = check_layout(layout);
	if (!status)
		status = check_formats(layout, tensor);
	if (!status && direction == SPYRE_DMA_D2H)
		status = check_overlap(tensor);
	if (status)
		return status;
	p.rank = layout->device_rank;
	p.lanes = layout->device_size[p.rank - 1];
	if (mapped_fits(&p))
		plan_mapped(&p);
	else
		status = plan_explicit(&p);
	if (!status)
		status = fill_desc(transfer, &p);
	if (status)
		return status;
	transfer->host = (uint8_t *)tensor->data +
			 tensor->storage_offset * spyre_format_bytes(tensor->format);
	transfer->host_bytes = ((uint64_t)last + 1) * spyre_format_bytes(tensor->format);
	transfer->device_bytes = spyre_layout_bytes(layout);
	return SPYRE_SUCCESS;
}
