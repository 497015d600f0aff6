// SPDX-License-Identifier: MIT
#include "model_build.h"

#include <stdlib.h>
#include <string.h>

#include "tests/order.h"

uint64_t rng_next(uint64_t *state)
{
	uint64_t x = *state;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	*state = x;
	return x * 0x2545f4914f6cdd1dull;
}

uint32_t rng_below(uint64_t *state, uint32_t n)
{
	return (rng_next(state) >> 32) * (uint64_t)n >> 32;
}

void rng_fill(uint64_t *state, void *p, size_t bytes, uint32_t format)
{
	static const uint32_t special[] = {
		0, 0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 1, 0x80000001,
		0x007fffff, 0x00800000, 0x3f800000, 0xbf800000, 0x7f7fffff, 0xff7fffff,
	};
	static const uint16_t special16[] = {
		0, 0x8000, 0x7fff, 0xffff, 1, 0x8001,
		0x3e00, 0xbe00, 0x7ffe, 0xfffe, 0x7c00, 0xfc00,
		0x7f80, 0x7e01, 0x03ff, 0x0400, 0x4000,
	};
	uint8_t *out = p;
	size_t i;

	for (i = 0; i < bytes; i++)
		out[i] = rng_next(state) >> 56;
	if (format == SPYRE_FMT_IEEE_FP32) {
		for (i = 0; i + 4 <= bytes; i += 4) {
			uint32_t roll = rng_below(state, 16);
			uint32_t bits = (uint32_t)get_le(out + i, 4);

			if (!roll)
				bits = special[rng_below(state, 14)];
			else if (roll < 14)
				bits = (bits & 0x807fffff) | (120 + (bits >> 23) % 14) << 23;
			put_le(out + i, bits, 4);
		}
	} else if (bytes >= 2) {
		for (i = 0; i + 2 <= bytes; i += 2) {
			uint32_t roll = rng_below(state, 16);
			uint16_t bits = (uint16_t)get_le(out + i, 2);

			if (!roll)
				bits = special16[rng_below(state, 17)];
			else if (roll < 14)
				bits = (bits & 0x83ff) | 0x3800;
			put_le(out + i, bits, 2);
		}
	}
}

void build_start(struct builder *b, uint32_t cores, uint32_t lx_bytes, uint32_t operands)
{
	memset(b, 0, sizeof(*b));
	b->header.magic = SPYRE_PROG_MAGIC;
	b->header.version = SPYRE_PROG_VERSION;
	b->header.num_cores = cores;
	b->header.lx_bytes = lx_bytes;
	b->header.num_operands = operands;
}

static struct spyre_prog_step *add_step(struct builder *b, uint32_t kind)
{
	struct spyre_prog_step *step = &b->steps[b->header.num_steps++];

	step->kind = kind;
	return step;
}

void build_loop(struct builder *b, uint32_t count)
{
	add_step(b, SPYRE_STEP_LOOP)->count = count;
}

void build_end(struct builder *b)
{
	add_step(b, SPYRE_STEP_END);
}

void build_phase(struct builder *b)
{
	add_step(b, SPYRE_STEP_PHASE)->first_stream = b->header.num_streams;
}

void build_stream(struct builder *b, uint32_t core)
{
	struct spyre_prog_stream *stream = &b->streams[b->header.num_streams++];

	stream->core = core;
	stream->offset = b->header.instr_bytes;
	b->steps[b->header.num_steps - 1].num_streams++;
}

static uint32_t views_of(uint32_t opcode, uint32_t func)
{
	if (opcode == SPYRE_OP_PT || func == SPYRE_FUNC_MULSUM)
		return 3;
	if (opcode != SPYRE_OP_SFU && opcode != SPYRE_OP_INT)
		return 2;
	return 1 + spyre_func_inputs(func);
}

struct spyre_instr *build_instr(struct builder *b, uint32_t opcode, uint32_t func,
				uint32_t dims, uint32_t lanes)
{
	struct spyre_instr *in = (void *)((uint8_t *)b->instrs + b->header.instr_bytes);
	uint32_t i;

	in->opcode = opcode;
	in->func = func;
	in->num_dims = dims;
	in->num_views = views_of(opcode, func);
	in->lanes = lanes;
	for (i = 0; i < dims; i++)
		in->count[i] = 1;
	for (i = 0; i < in->num_views; i++)
		build_view(in, i, 0, 0)->format = SPYRE_FMT_SEN169_FP16;
	b->header.instr_bytes += sizeof(*in) + in->num_views * sizeof(struct spyre_view);
	b->streams[b->header.num_streams - 1].num_instrs++;
	return in;
}

void build_more_views(struct builder *b, struct spyre_instr *in, uint32_t views)
{
	in->num_views += views;
	b->header.instr_bytes += views * sizeof(struct spyre_view);
}

struct spyre_view *build_view(struct spyre_instr *in, uint32_t index, uint32_t operand,
			      uint64_t offset)
{
	struct spyre_view *view = (struct spyre_view *)(in + 1) + index;

	view->operand = operand;
	view->offset = offset;
	return view;
}

void *build_image(struct builder *b, size_t *size)
{
	struct spyre_prog_header *h = &b->header;
	size_t part[5] = {
		sizeof(*h), h->num_operands * sizeof(b->operands[0]),
		h->num_steps * sizeof(b->steps[0]), h->num_streams * sizeof(b->streams[0]),
		h->instr_bytes,
	};
	const void *from[5] = { h, b->operands, b->steps, b->streams, b->instrs };
	uint8_t *image, *p;
	int i;

	*size = part[0] + part[1] + part[2] + part[3] + part[4];
	h->size = *size;
	image = malloc(*size);
	for (p = image, i = 0; i < 5; p += part[i++])
		memcpy(p, from[i], part[i]);
	return image;
}

bool build_settle(void *image, size_t size, uint32_t cores, struct spyre_program *prog,
		  struct spyre_verify_error *err)
{
	struct spyre_prog_header *h = image;
	struct spyre_prog_operand *op = (void *)(h + 1);
	int rounds = 2 * SPYRE_MAX_OPERANDS + 1;

	while (spyre_program_verify(image, size, cores, prog, err)) {
		/* Errors of the table come last and name no instruction. */
		if (!rounds-- || err->instr || err->core)
			return false;
		if (err->stop != SPYRE_STOP_EXTENT && err->stop != SPYRE_STOP_ACCESS)
			return false;
		if (err->view >= h->num_operands)
			return false;
		if (err->stop == SPYRE_STOP_ACCESS)
			op[err->view].flags = err->limit;
		else if (op[err->view].extent == err->value)
			op[err->view].extent = err->limit;
		else
			return false;
	}
	return true;
}
