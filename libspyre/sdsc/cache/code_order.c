// SPDX-License-Identifier: MIT
/* The byte order of init_binary.bin: see code_order.h. */
#include "libspyre/sdsc/cache/code_order.h"

#include <stddef.h>
#include <string.h>

#include "model/program.h"

/* Adjacent fields of the same width. */
struct run {
	uint8_t count, bytes;
};

/* The runs of a structure end with one of no fields. */
static const struct run file_header[] = {
	{ 2, 4 }, { 5, 8 }, { 8, 4 }, { 4, 8 }, { 1, 4 }, { 12, 1 }, { 0, 0 },
};
static const struct run file_arg[] = { { 4, 4 }, { SPYRE_MAX_DEVICE_RANK, 8 }, { 0, 0 } };
static const struct run file_operand[] = { { 2, 4 }, { 1, 8 }, { 0, 0 } };
static const struct run header[] = { { 1, 4 }, { 2, 2 }, { 1, 8 }, { 12, 4 }, { 0, 0 } };
static const struct run operand[] = { { 1, 8 }, { 2, 4 }, { 0, 0 } };
static const struct run step_or_stream[] = { { 4, 4 }, { 0, 0 } };
static const struct run instr[] = {
	{ 2, 2 }, { 4, 1 }, { SPYRE_MAX_DIMS + 2, 4 }, { 1, 8 }, { 4, 4 }, { 0, 0 },
};
static const struct run view[] = {
	{ 1, 2 }, { 2, 1 }, { 1, 4 }, { 1 + SPYRE_MAX_DIMS + SPYRE_MAX_LOOPS, 8 }, { 0, 0 },
};

static void reverse(uint8_t *p, unsigned int bytes)
{
	for (unsigned int i = 0; i < bytes / 2; i++) {
		uint8_t byte = p[i];

		p[i] = p[bytes - 1 - i];
		p[bytes - 1 - i] = byte;
	}
}

static void order(void *structure, const struct run *runs)
{
	uint8_t *p = structure;

	if (!SPYRE_BIG_ENDIAN)
		return;
	for (; runs->count; runs++)
		for (unsigned int i = 0; i < runs->count; i++, p += runs->bytes)
			reverse(p, runs->bytes);
}

struct code_key code_order_key(struct code_key key)
{
	static const struct run words[] = { { 2, 8 }, { 0, 0 } };

	order(&key, words);
	return key;
}

void code_order_header(struct code_image_header *h)
{
	order(h, file_header);
}

void code_order_arg(struct code_image_arg *arg)
{
	order(arg, file_arg);
}

void code_order_operand(struct code_image_operand *op)
{
	order(op, file_operand);
}

/* Converts up to @count structures of @bytes from @at on; returns the end of the last one. */
static uint8_t *order_array(uint8_t *at, const uint8_t *end, uint32_t count, size_t bytes,
			    const struct run *runs)
{
	for (; count && (size_t)(end - at) >= bytes; count--, at += bytes)
		order(at, runs);
	return at;
}

void code_order_program(uint8_t *image, size_t bytes, bool to_host)
{
	const size_t num_views = offsetof(struct spyre_instr, num_views);
	uint8_t *at = image, *end = image + bytes;
	struct spyre_prog_header counts;

	if (!SPYRE_BIG_ENDIAN || bytes < sizeof(counts))
		return;
	if (to_host)
		order(image, header);
	memcpy(&counts, image, sizeof(counts));
	if (!to_host)
		order(image, header);
	at += sizeof(counts);
	at = order_array(at, end, counts.num_operands, sizeof(struct spyre_prog_operand), operand);
	at = order_array(at, end, counts.num_steps, sizeof(struct spyre_prog_step), step_or_stream);
	at = order_array(at, end, counts.num_streams, sizeof(struct spyre_prog_stream),
			 step_or_stream);
	/* The streams' instructions follow each other without gaps. */
	while ((size_t)(end - at) >= sizeof(struct spyre_instr)) {
		order(at, instr);
		at = order_array(at + sizeof(struct spyre_instr), end, at[num_views],
				 sizeof(struct spyre_view), view);
	}
}
