// SPDX-License-Identifier: MIT
/* Program images: see encode.h and docs/isa.md. */
#include "libspyre/sdsc/lower/encode.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libspyre/base/array.h"
#include "libspyre/base/error.h"
#include "libspyre/sdsc/lower/rows.h"

#define MAX_INSTR_BYTES (64u << 20)

void encoder_fini(struct encoder *e)
{
	free(e->steps);
	free(e->streams);
	free(e->instrs);
	memset(e, 0, sizeof(*e));
}

static spyre_status reserve(void *array, size_t *capacity, size_t count, size_t size)
{
	if (spyre_array_reserve(array, capacity, count, size))
		return SPYRE_SUCCESS;
	return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory for a program of %zu bytes",
			   count * size);
}

spyre_status encoder_expect(struct encoder *e, size_t bytes)
{
	if (bytes > MAX_INSTR_BYTES)
		bytes = MAX_INSTR_BYTES;
	e->instrs = spyre_array_alloc(bytes);
	if (!e->instrs)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "no memory for a program of %zu bytes", bytes);
	e->capacity_instrs = bytes;
	return SPYRE_SUCCESS;
}

spyre_status encoder_operand(struct encoder *e, enum spyre_operand_kind kind, uint32_t arg,
			     uint16_t *index)
{
	uint32_t i;

	for (i = 0; i < e->num_operands; i++)
		if (e->kind[i].kind == kind && e->kind[i].arg == arg)
			break;
	if (i == SPYRE_MAX_OPERANDS)
		return spyre_error(SPYRE_ERROR_UNSUPPORTED,
				   "%s: more than %u arguments in all (docs/unsupported.md)",
				   e->file, SPYRE_MAX_OPERANDS);
	if (i == e->num_operands)
		e->kind[e->num_operands++] = (struct spyre_bundle_operand){ kind, arg, 0 };
	*index = (uint16_t)i;
	return SPYRE_SUCCESS;
}

static spyre_status add_step(struct encoder *e, const struct spyre_prog_step *step)
{
	spyre_status status;

	if (e->num_steps == SPYRE_MAX_STEPS)
		return spyre_error(SPYRE_ERROR_UNSUPPORTED,
				   "the program has more than %u steps; divide the bundle (docs/unsupported.md)",
				   SPYRE_MAX_STEPS);
	status = reserve(&e->steps, &e->capacity_steps, e->num_steps + 1, sizeof(*e->steps));
	if (!status)
		e->steps[e->num_steps++] = *step;
	return status;
}

spyre_status encoder_loop(struct encoder *e, uint32_t count)
{
	struct spyre_prog_step step = { .kind = SPYRE_STEP_LOOP, .count = count };

	e->iters[e->depth++] = count;
	return add_step(e, &step);
}

spyre_status encoder_end(struct encoder *e)
{
	struct spyre_prog_step step = { .kind = SPYRE_STEP_END };

	e->depth--;
	return add_step(e, &step);
}

spyre_status encoder_phase(struct encoder *e)
{
	struct spyre_prog_step step = { .kind = SPYRE_STEP_PHASE,
					.first_stream = (uint32_t)e->num_streams };

	return add_step(e, &step);
}

spyre_status encoder_stream(struct encoder *e, uint32_t core)
{
	TRY(reserve(&e->streams, &e->capacity_streams, e->num_streams + 1, sizeof(*e->streams)));
	e->streams[e->num_streams++] = (struct spyre_prog_stream){
		.core = core, .offset = (uint32_t)e->instr_bytes,
	};
	e->steps[e->num_steps - 1].num_streams++;
	if (core >= e->num_cores)
		e->num_cores = core + 1;
	return SPYRE_SUCCESS;
}

static spyre_status account(struct encoder *e, const struct spyre_instr *in, uint32_t index,
			    const struct spyre_view *view)
{
	struct spyre_prog_operand *op;
	uint64_t end;

	if (!rows_view_end(e->iters, e->depth, in, index, view, &end) || end > SPYRE_MAX_EXTENT)
		return spyre_error(SPYRE_ERROR_SPAN_LIMIT,
				   "%s: %s %u: accesses from offset %" PRIu64 " on reach beyond the %llu bytes of a segment",
				   e->file, index ? "input" : "output", index ? index - 1 : 0,
				   view->offset, SPYRE_MAX_EXTENT);
	if (view->operand >= SPYRE_MAX_OPERANDS) {
		if (end > SPYRE_LX_BYTES)
			return spyre_error(SPYRE_ERROR_LX_OVERFLOW,
					   "%s: LX is used up to byte %" PRIu64 ", a core has %u",
					   e->file, end, SPYRE_LX_BYTES);
		if (end > e->lx_bytes)
			e->lx_bytes = (uint32_t)(end + SPYRE_STICK_BYTES - 1) &
				      ~(SPYRE_STICK_BYTES - 1);
		return SPYRE_SUCCESS;
	}
	op = &e->operand[view->operand];
	if (end > op->extent)
		op->extent = end;
	op->flags |= spyre_view_access(in, index);
	return SPYRE_SUCCESS;
}

static spyre_status set_rows(struct encoder *e, struct spyre_instr *in,
			     const struct spyre_view *views)
{
	uint64_t end;

	in->imm[0] = e->table_rows ?: 1;
	if (e->table_rows || !e->table_end ||
	    rows_set(e->iters, e->depth, in, views, e->table_end, &end))
		return SPYRE_SUCCESS;
	return spyre_error(SPYRE_ERROR_PARSE,
			   "%s: a row of the table ends at byte %" PRIu64 ", the table at byte %" PRIu64 "; index a tensor of whole rows",
			   e->file, end, e->table_end);
}

spyre_status encoder_instr(struct encoder *e, const struct spyre_instr *from,
			   const struct spyre_view *views)
{
	struct spyre_instr copy = *from, *in = &copy;
	size_t bytes = sizeof(*in) + in->num_views * sizeof(*views);

	if (in->opcode == SPYRE_OP_GATHER || in->opcode == SPYRE_OP_SCATTER)
		TRY(set_rows(e, in, views));
	for (uint32_t i = 0; i < in->num_views; i++)
		TRY(account(e, in, i, &views[i]));
	if (e->instr_bytes + bytes > MAX_INSTR_BYTES)
		return spyre_error(SPYRE_ERROR_UNSUPPORTED,
				   "%s: more than %u bytes of instructions in all (docs/unsupported.md)",
				   e->file, MAX_INSTR_BYTES);
	TRY(reserve(&e->instrs, &e->capacity_instrs, e->instr_bytes + bytes, 1));
	memcpy(e->instrs + e->instr_bytes, in, sizeof(*in));
	memcpy(e->instrs + e->instr_bytes + sizeof(*in), views, in->num_views * sizeof(*views));
	e->instr_bytes += bytes;
	e->streams[e->num_streams - 1].num_instrs++;
	return SPYRE_SUCCESS;
}

static uint8_t *append(uint8_t *at, const void *data, size_t bytes)
{
	if (bytes)
		memcpy(at, data, bytes);
	return at + bytes;
}

uint32_t encoder_lx_kept(const struct encoder *e)
{
	return e->lx_kept < e->lx_bytes ? e->lx_kept : e->lx_bytes;
}

spyre_status encoder_finish(struct encoder *e, void **image, size_t *bytes)
{
	struct spyre_prog_header h = {
		.magic = SPYRE_PROG_MAGIC,
		.version = SPYRE_PROG_VERSION,
		.num_cores = (uint16_t)e->num_cores,
		.num_operands = e->num_operands,
		.num_steps = (uint32_t)e->num_steps,
		.num_streams = (uint32_t)e->num_streams,
		.lx_bytes = e->lx_bytes,
		.instr_bytes = (uint32_t)e->instr_bytes,
		.lx_kept = encoder_lx_kept(e),
	};
	size_t before = sizeof(h) + e->num_operands * sizeof(e->operand[0]) +
			e->num_steps * sizeof(e->steps[0]) +
			e->num_streams * sizeof(e->streams[0]);
	uint8_t *at;

	/* Moves the instructions in place, because they are most of the image. */
	h.size = before + e->instr_bytes;
	at = realloc(e->instrs, h.size);
	if (!at)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "no memory for a program of %" PRIu64 " bytes", h.size);
	e->instrs = NULL;
	memmove(at + before, at, e->instr_bytes);
	*image = at;
	*bytes = h.size;
	at = append(at, &h, sizeof(h));
	at = append(at, e->operand, e->num_operands * sizeof(e->operand[0]));
	at = append(at, e->steps, e->num_steps * sizeof(e->steps[0]));
	append(at, e->streams, e->num_streams * sizeof(e->streams[0]));
	return SPYRE_SUCCESS;
}
