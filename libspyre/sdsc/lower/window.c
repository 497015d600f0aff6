// SPDX-License-Identifier: MIT
/* Intersection of a moving window with its input. */
#include <inttypes.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/lower/lower.h"
#include "libspyre/sdsc/lower/window.h"

int64_t window_outputs(const struct ir_sdsc *s, const struct ir_axis *a)
{
	return a->dim == IR_NO_DIM ? 1 : s->el[a->dim];
}

int64_t window_taps(const struct ir_sdsc *s, const struct ir_axis *a)
{
	return a->tap == IR_NO_DIM ? 1 : s->el[a->tap];
}

/* Input coordinate of the core's first output and tap; negative in padding. */
static int64_t first_place(const struct ir_sdsc *s, const struct ir_axis *a, uint32_t core)
{
	int64_t at = -a->before;

	if (a->dim != IR_NO_DIM)
		at += (int64_t)s->slice[core][a->dim] * s->el[a->dim] * a->stride;
	if (a->tap != IR_NO_DIM)
		at += (int64_t)s->slice[core][a->tap] * s->el[a->tap] * a->dilation;
	return at;
}

/* The core's start address belongs to the first input coordinate that it reaches. */
static int64_t start_place(const struct ir_sdsc *s, const struct ir_axis *a, uint32_t core)
{
	int64_t at = first_place(s, a, core);

	return at < 0 ? 0 : at < a->size ? at : a->size - 1;
}

int64_t window_reach(const struct ir_sdsc *s, const struct ir_axis *a, uint32_t core)
{
	int64_t end = first_place(s, a, core) + (window_outputs(s, a) - 1) * a->stride +
		      (window_taps(s, a) - 1) * a->dilation + 1;
	int64_t reach = (end < a->size ? end : a->size) - start_place(s, a, core);

	return reach > 0 ? reach : 1;
}

/* Smallest x >= 0 with from + x * step >= 0. */
static int64_t reaches_zero(int64_t from, int64_t step)
{
	return from >= 0 ? 0 : (-from + step - 1) / step;
}

/* Finds the taps of output @i that lie in the input: from @lo to before @hi. */
static void taps_of(const struct ir_sdsc *s, const struct ir_axis *a, uint32_t core, int64_t i,
		    int64_t *lo, int64_t *hi)
{
	int64_t from = first_place(s, a, core) + i * a->stride, taps = window_taps(s, a);

	*lo = reaches_zero(from, a->dilation);
	*hi = reaches_zero(from - a->size, a->dilation);
	if (*hi > taps)
		*hi = taps;
	if (*lo > *hi)
		*lo = *hi;
}

void window_run(const struct ir_sdsc *s, const struct ir_axis *a, uint32_t core, int64_t first,
		struct window_run *run)
{
	int64_t lo, hi, low = first, high;

	*run = (struct window_run){ .first = first, .count = 1, .taps = 1 };
	if (a->dim == IR_NO_DIM)
		return;
	taps_of(s, a, core, first, &lo, &hi);
	/* Both bounds decrease along the outputs, so outputs with equal bounds are adjacent. */
	for (high = s->el[a->dim]; high - low > 1;) {
		int64_t middle = low + (high - low) / 2, next_lo, next_hi;

		taps_of(s, a, core, middle, &next_lo, &next_hi);
		if (next_lo == lo && next_hi == hi)
			low = middle;
		else
			high = middle;
	}
	run->count = high - first;
	run->tap = lo;
	run->taps = hi - lo;
	run->at = first_place(s, a, core) + first * a->stride + lo * a->dilation -
		  start_place(s, a, core);
	if (!run->taps)
		run->at = 0;
}

void window_tap(const struct ir_sdsc *s, const struct ir_axis *a, uint32_t core, int64_t tap,
		struct window_run *run)
{
	int64_t from, end;

	*run = (struct window_run){ .count = 1, .tap = tap, .taps = 1 };
	if (a->dim == IR_NO_DIM)
		return;
	from = first_place(s, a, core) + tap * a->dilation;
	run->first = reaches_zero(from, a->stride);
	end = reaches_zero(from - a->size, a->stride);
	if (end > s->el[a->dim])
		end = s->el[a->dim];
	run->count = end > run->first ? end - run->first : 0;
	run->at = from + run->first * a->stride - start_place(s, a, core);
	if (!run->count)
		run->first = run->at = 0;
}

/* True if two cores have the same share of all dims but @dim. */
static bool same_but(const struct ir_sdsc *s, uint32_t a, uint32_t b, uint32_t dim)
{
	for (uint32_t d = 0; d < s->num_dims; d++)
		if (d != dim && s->slice[a][d] != s->slice[b][d])
			return false;
	return true;
}

static spyre_status check_starts(const struct lower *l, const struct ir_axis *a)
{
	const struct ir_sdsc *s = l->sdsc;
	const uint32_t input = s->input[0];
	const struct address *at = l->address[input];

	for (uint32_t c = 0; c < s->num_cores; c++)
		for (uint32_t b = 0; b < s->num_cores; b++) {
			uint64_t rows, apart;

			if (s->slice[b][a->dim] || !s->slice[c][a->dim] ||
			    !same_but(s, b, c, a->dim))
				continue;
			rows = (uint64_t)(start_place(s, a, c) - start_place(s, a, b));
			apart = rows * s->tensor[input].stride[a->dim];
			if (at[c].operand == at[b].operand && at[c].offset - at[b].offset == apart)
				continue;
			return spyre_error(SPYRE_ERROR_UNSUPPORTED,
					   "%s: %s: Tensor%u of core %u starts %" PRId64 " bytes after that of core %u; the first element that it accesses along %s is %" PRIu64 " bytes after, %" PRIu64 " rows; state the address of that element (docs/sdsc.md)",
					   s->file, s->op, input, s->core[c],
					   (int64_t)(at[c].offset - at[b].offset), s->core[b],
					   s->dim[a->dim], apart, rows);
		}
	return SPYRE_SUCCESS;
}

spyre_status window_check_starts(const struct lower *l)
{
	for (uint32_t k = 0; k < 2; k++)
		if (l->sdsc->axis[k].stated)
			TRY(check_starts(l, &l->sdsc->axis[k]));
	return SPYRE_SUCCESS;
}
