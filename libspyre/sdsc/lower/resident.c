// SPDX-License-Identifier: MIT
/*
 * Tensors that stay in LX: one set of written sticks stands for all cores, since a shuffle
 * moves data between them. Earlier kernels may have written what the kernel keeps.
 */
#include "libspyre/sdsc/lower/resident.h"

#include <inttypes.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/lower/lower.h"

#define STICKS (SPYRE_LX_BYTES / SPYRE_STICK_BYTES)

struct resident {
	const struct bundle_source *source;
	uint64_t written[STICKS / 64];		/* bit per stick */
};

/* Gets the sticks of LX that a core's share of a tensor covers; false if it has none. */
static bool sticks_of(const struct ir_sdsc *s, const struct ir_tensor *t, uint32_t core,
		      uint32_t *first, uint32_t *end)
{
	int64_t start = t->start[core];
	uint64_t bytes;

	if (!t->lx || start < 0 || start >= SPYRE_LX_BYTES)
		return false;
	bytes = lower_box_bytes(s, t);
	if (bytes > SPYRE_LX_BYTES)
		return false;
	*first = (uint32_t)start / SPYRE_STICK_BYTES;
	*end = ((uint32_t)start + (uint32_t)bytes + SPYRE_STICK_BYTES - 1) / SPYRE_STICK_BYTES;
	if (*end > STICKS)
		*end = STICKS;
	return true;
}

static void note_output(struct resident *r, const struct ir_sdsc *s)
{
	uint32_t first, end;

	for (uint32_t c = 0; c < s->num_cores; c++)
		if (sticks_of(s, &s->tensor[s->output], c, &first, &end))
			for (uint32_t i = first; i < end; i++)
				r->written[i / 64] |= 1ull << i % 64;
}

static bool is_written(const struct resident *r, uint32_t first, uint32_t end)
{
	for (uint32_t i = first; i < end; i++)
		if (r->written[i / 64] >> i % 64 & 1)
			return true;
	return false;
}

static spyre_status refuse(const struct resident *r, const struct ir_sdsc *s, uint32_t tensor,
			   uint32_t core)
{
	const char *file = s->file;
	int64_t start = s->tensor[tensor].start[core];

	if (r->source->lx_kept)
		return spyre_error(SPYRE_ERROR_UNSUPPORTED,
				   "%s: Tensor%u is in LX from byte %" PRId64 " on, which no earlier SDSC of the bundle writes; only the first %u bytes are kept between kernels, so keep more (lx_kept) or place the tensor in HBM",
				   file, tensor, start, r->source->lx_kept);
	return spyre_error(SPYRE_ERROR_UNSUPPORTED,
			   "%s: Tensor%u is in LX from byte %" PRId64 " on, which no earlier SDSC of the bundle writes; LX is cleared between kernels, so keep it (lx_kept, spyre compile --lx-kept) or place the tensor in HBM (torch-spyre: LX_PLANNING=0)",
			   file, tensor, start);
}

static spyre_status check_input(const struct resident *r, const struct ir_sdsc *s, uint32_t tensor)
{
	const uint32_t kept = r->source->lx_kept / SPYRE_STICK_BYTES;
	uint32_t first, end;

	for (uint32_t c = 0; c < s->num_cores; c++)
		if (sticks_of(s, &s->tensor[tensor], c, &first, &end) && end > kept &&
		    !is_written(r, first, end))
			return refuse(r, s, tensor, c);
	return SPYRE_SUCCESS;
}

static spyre_status check_inputs(const struct resident *r, const struct ir_sdsc *s)
{
	for (uint32_t i = 0; i < s->num_tensors; i++)
		if (lower_is_input(s, i))
			TRY(check_input(r, s, i));
	return SPYRE_SUCCESS;
}

/* Notes the outputs of a whole loop: its iterations read those of the ones before. */
static void note_loop(struct resident *r, uint32_t begin)
{
	const struct ir_bundle *bundle = &r->source->bundle;
	uint32_t depth = 0;

	for (uint32_t i = begin; i < bundle->num_stmts; i++) {
		if (bundle->stmts[i].kind == IR_STMT_LOOP)
			depth++;
		else if (bundle->stmts[i].kind == IR_STMT_EXECUTE)
			note_output(r, bundle_source_sdsc(r->source, i));
		else if (!--depth)
			return;
	}
}

spyre_status resident_check(const struct bundle_source *source)
{
	struct resident r = { .source = source };

	for (uint32_t i = 0; i < source->bundle.num_stmts; i++) {
		enum ir_stmt_kind kind = source->bundle.stmts[i].kind;

		if (kind == IR_STMT_LOOP)
			note_loop(&r, i);
		if (kind != IR_STMT_EXECUTE)
			continue;
		TRY(check_inputs(&r, bundle_source_sdsc(source, i)));
		note_output(&r, bundle_source_sdsc(source, i));
	}
	return SPYRE_SUCCESS;
}
