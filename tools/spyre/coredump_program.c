// SPDX-License-Identifier: MIT
/*
 * Prints the program image of a coredump, one line per instruction, up to the end
 * of the data. docs/isa.md describes the encoding and its offsets.
 */
#include <inttypes.h>
#include <string.h>

#include "coredump.h"

#define HEADER_BYTES 64u
#define ENTRY_BYTES 16u		/* operands, steps, streams */
#define HEAD_BYTES 64u		/* instruction header */
#define VIEW_BYTES 96u
#define MAX_LINES 256u

struct image {
	const uint8_t *data;
	uint64_t bytes;
	uint32_t num_operands, num_steps, num_streams;
	uint64_t steps, streams, instrs;	/* offsets */
	uint32_t lines;
};

/* Returns a field of @size bytes; 0 beyond the end of the image. */
static uint64_t field(const struct image *image, uint64_t offset, unsigned int size)
{
	uint64_t value = 0;

	if (offset > image->bytes || image->bytes - offset < size)
		return 0;
	while (size--)
		value = value << 8 | image->data[offset + size];
	return value;
}

static const char *opcode_name(unsigned int opcode)
{
	static const char *const names[] = {
		NULL, "MOVE", "SFU", "REDUCE", "PT", "RESTICK", "TOPK",
	};

	return opcode && opcode < sizeof(names) / sizeof(names[0]) ? names[opcode] : "unknown";
}

/* Prints the instruction at @at; returns the offset of the next one. */
static uint64_t print_instr(struct image *image, uint64_t at, FILE *out)
{
	unsigned int dims = field(image, at + 4, 1), views = field(image, at + 5, 1), i;
	uint64_t operand;

	fprintf(out, "        %-7s func %-3u", opcode_name(field(image, at, 2)),
		(unsigned int)field(image, at + 2, 2));
	for (i = 0; i < dims && i < 6; i++)
		fprintf(out, "%s%u", i ? "x" : " [", (unsigned int)field(image, at + 8 + 4 * i, 4));
	fprintf(out, "%sx%u lanes", dims ? "] " : " ", (unsigned int)field(image, at + 32, 4));
	for (i = 0; i < views && i < 6; i++) {
		operand = field(image, at + HEAD_BYTES + i * VIEW_BYTES, 2);
		if (operand == 0xffff)
			fputs(" LX", out);
		else if (operand & 0x8000)
			fprintf(out, " LX of core %u", (unsigned int)operand & 0x7fff);
		else
			fprintf(out, " operand %u", (unsigned int)operand);
		fprintf(out, "+0x%" PRIx64, field(image, at + HEAD_BYTES + i * VIEW_BYTES + 8, 8));
	}
	fputc('\n', out);
	image->lines++;
	return at + HEAD_BYTES + views * (uint64_t)VIEW_BYTES;
}

static void print_stream(struct image *image, uint32_t stream, FILE *out)
{
	uint64_t entry = image->streams + (uint64_t)stream * ENTRY_BYTES, at;
	uint32_t count = field(image, entry + 4, 4), i;

	if (stream >= image->num_streams)
		return;
	fprintf(out, "      core %u: %u instructions\n", (unsigned int)field(image, entry, 4), count);
	image->lines++;
	at = image->instrs + field(image, entry + 8, 4);
	for (i = 0; i < count && image->lines < MAX_LINES; i++) {
		if (at > image->bytes || image->bytes - at < HEAD_BYTES) {
			fputs("        missing from the file\n", out);
			image->lines++;
			return;
		}
		at = print_instr(image, at, out);
	}
}

static void print_step(struct image *image, uint32_t step, FILE *out)
{
	uint64_t entry = image->steps + (uint64_t)step * ENTRY_BYTES;
	uint32_t kind = field(image, entry, 4), first, count, i;

	image->lines++;
	if (kind == 2) {
		fprintf(out, "    step %u: loop, %u times\n", step,
			(unsigned int)field(image, entry + 4, 4));
	} else if (kind == 3) {
		fprintf(out, "    step %u: end of the loop\n", step);
	} else if (kind == 1) {
		first = field(image, entry + 8, 4);
		count = field(image, entry + 12, 4);
		fprintf(out, "    step %u: phase of %u cores\n", step, count);
		for (i = 0; i < count && i < 32 && image->lines < MAX_LINES; i++)
			print_stream(image, first + i, out);
	} else {
		fprintf(out, "    step %u: unknown kind %u\n", step, kind);
	}
}

void coredump_print_program(const struct coredump_section *program, FILE *out)
{
	struct image image = { .data = program->data, .bytes = program->bytes };
	uint32_t i;

	fprintf(out, "program of control block %u: %" PRIu64 " bytes", program->index,
		(uint64_t)program->whole);
	if (program->bytes < program->whole)
		fprintf(out, ", the first %" PRIu64 " here", (uint64_t)program->bytes);
	fputc('\n', out);
	if (program->bytes < HEADER_BYTES || field(&image, 0, 4) != 0x47505953) {
		fputs("    not a program image\n", out);
		return;
	}
	image.num_operands = field(&image, 16, 4);
	image.num_steps = field(&image, 20, 4);
	image.num_streams = field(&image, 24, 4);
	image.steps = HEADER_BYTES + (uint64_t)image.num_operands * ENTRY_BYTES;
	image.streams = image.steps + (uint64_t)image.num_steps * ENTRY_BYTES;
	image.instrs = image.streams + (uint64_t)image.num_streams * ENTRY_BYTES;
	fprintf(out, "    version %u, %u cores, %u operands, %u steps, %u streams, LX %u bytes, "
		"instructions %u bytes\n", (unsigned int)field(&image, 4, 2),
		(unsigned int)field(&image, 6, 2), image.num_operands, image.num_steps,
		image.num_streams, (unsigned int)field(&image, 28, 4),
		(unsigned int)field(&image, 32, 4));
	for (i = 0; i < image.num_steps && image.lines < MAX_LINES; i++)
		print_step(&image, i, out);
	if (image.lines >= MAX_LINES)
		fputs("    output is limited to 256 lines; --program FILE saves the whole "
		      "program\n",
		      out);
}
