// SPDX-License-Identifier: MIT
/* init_binary.bin: see code_image.h. */
#include "libspyre/sdsc/cache/code_image.h"

#include <stdlib.h>
#include <string.h>

#include "libspyre/sdsc/ir/ir.h"

#define BUNDLE_NAME_BYTES sizeof(((struct spyre_bundle *)0)->name)
#define MAX_SIZE (INT64_C(1) << 40)
#define MAX_POOL (UINT64_C(1) << 37)

_Static_assert(sizeof(struct code_image_header) == 128, "header is 128 bytes");
_Static_assert(sizeof(struct code_image_arg) == 80, "argument is 80 bytes");
_Static_assert(sizeof(struct code_image_operand) == 16, "operand is 16 bytes");
_Static_assert(CODE_IMAGE_NAME_BYTES == IR_NAME_BYTES, "names of files fit");

static size_t align(size_t bytes)
{
	return (bytes + SPYRE_STICK_BYTES - 1) & ~(size_t)(SPYRE_STICK_BYTES - 1);
}

static size_t tables_bytes(const struct code_image_header *h)
{
	return sizeof(*h) + BUNDLE_NAME_BYTES + h->num_args * sizeof(struct code_image_arg) +
	       h->num_operands * sizeof(struct code_image_operand) +
	       (size_t)h->num_files * sizeof(struct code_image_file);
}

struct code_key code_image_sum(const void *data, size_t size)
{
	struct {
		struct code_image_header header;
		struct code_key rest;
	} all;

	memcpy(&all.header, data, sizeof(all.header));
	memset(&all.header.sum, 0, sizeof(all.header.sum));
	all.rest = code_hash((const uint8_t *)data + sizeof(all.header),
			     size - sizeof(all.header));
	return code_hash(&all, sizeof(all));
}

static uint8_t *put(uint8_t *at, const void *data, size_t bytes)
{
	if (bytes)
		memcpy(at, data, bytes);
	return at + bytes;
}

static uint8_t *put_tables(uint8_t *at, const struct spyre_bundle *b,
			   const struct code_files *files)
{
	at = put(at, b->name, sizeof(b->name));
	for (uint32_t i = 0; i < b->num_args; i++) {
		const spyre_arg_info *info = &b->args[i];
		struct code_image_arg arg = { .role = info->role, .format = info->format,
					      .device_rank = info->device_rank };

		memcpy(arg.device_size, info->device_size, sizeof(arg.device_size));
		at = put(at, &arg, sizeof(arg));
	}
	for (uint32_t i = 0; i < b->num_operands; i++) {
		struct code_image_operand operand = { b->operands[i].kind, b->operands[i].arg,
						      b->operands[i].offset };

		at = put(at, &operand, sizeof(operand));
	}
	return put(at, files->list, files->num * sizeof(*files->list));
}

void *code_image_encode(const struct spyre_bundle *b, struct code_key key,
			const struct code_files *files, size_t *size)
{
	struct code_image_header h = {
		.magic = CODE_IMAGE_MAGIC, .version = CODE_IMAGE_VERSION, .key = key,
		.program_version = SPYRE_PROG_VERSION, .num_cores = b->num_cores,
		.lx_bytes = b->lx_bytes, .num_sdscs = b->num_sdscs, .num_args = b->num_args,
		.num_operands = b->num_operands, .num_files = files->num,
		.pool_bytes = b->pool_bytes, .image_bytes = b->image_bytes,
	};
	uint8_t *out;

	h.flags = (b->named_args ? CODE_IMAGE_NAMED_ARGS : 0) |
		  (b->num_symbols ? CODE_IMAGE_SYMBOLS : 0);
	h.image_offset = align(tables_bytes(&h));
	h.size = align(h.image_offset + h.image_bytes);
	out = calloc(1, h.size);
	if (!out)
		return NULL;
	put_tables(out + sizeof(h), b, files);
	memcpy(out + h.image_offset, b->image, b->image_bytes);
	memcpy(out, &h, sizeof(h));
	h.sum = code_image_sum(out, h.size);
	memcpy(out, &h, sizeof(h));
	*size = h.size;
	return out;
}

static const char *check_header(const struct code_image_header *h, const uint8_t *data, size_t size)
{
	static const uint8_t zero[sizeof(h->reserved)];

	if (h->magic != CODE_IMAGE_MAGIC)
		return "is not a compiled bundle";
	if (h->version != CODE_IMAGE_VERSION || h->program_version != SPYRE_PROG_VERSION)
		return "has another encoding";
	if (h->size != size)
		return "is cut short";
	if (h->num_args > SPYRE_MAX_OPERANDS || h->num_operands > SPYRE_MAX_OPERANDS ||
	    h->num_files > SPYRE_MAX_STEPS || h->num_cores > SPYRE_MAX_CORES ||
	    h->lx_bytes > SPYRE_LX_BYTES || h->num_sdscs > SPYRE_MAX_STEPS ||
	    h->pool_bytes > MAX_POOL || h->pool_bytes % SPYRE_STICK_BYTES ||
	    h->flags & ~(CODE_IMAGE_NAMED_ARGS | CODE_IMAGE_SYMBOLS) ||
	    memcmp(h->reserved, zero, sizeof(zero)))
		return "has counts beyond the limits";
	if (h->image_offset != align(tables_bytes(h)) || h->image_offset > size ||
	    h->image_bytes > size - h->image_offset ||
	    h->image_bytes < sizeof(struct spyre_prog_header))
		return "has tables that do not fit";
	if (!code_key_equal(h->sum, code_image_sum(data, size)))
		return "is damaged";
	return NULL;
}

static const char *take_arg(const struct code_image_arg *arg, uint32_t index, spyre_arg_info *info)
{
	if (arg->role < SPYRE_ARG_INPUT || arg->role > SPYRE_ARG_INPUT_OUTPUT || arg->reserved ||
	    arg->format >= SPYRE_FORMAT_COUNT || arg->device_rank > SPYRE_MAX_DEVICE_RANK)
		return "has a bad argument";
	for (uint32_t i = 0; i < SPYRE_MAX_DEVICE_RANK; i++)
		if (arg->device_size[i] < 0 || arg->device_size[i] > MAX_SIZE)
			return "has a bad argument";
	info->index = (int)index;
	info->role = (spyre_arg_role)arg->role;
	info->format = (spyre_format)arg->format;
	info->device_rank = arg->device_rank;
	memcpy(info->device_size, arg->device_size, sizeof(info->device_size));
	return NULL;
}

/*
 * @extent comes from the program, where the verifier proves it. A launch checks
 * addresses against it, so the file's table must not supply it.
 */
static const char *take_operand(const struct code_image_operand *operand, uint64_t extent,
				struct spyre_bundle *b, uint32_t index)
{
	if (operand->kind == SPYRE_OPERAND_ARG) {
		if (operand->arg >= b->num_args || operand->offset || b->args[operand->arg].bytes)
			return "has a bad operand";
		b->args[operand->arg].bytes = extent;
	} else if (operand->kind != SPYRE_OPERAND_POOL || operand->arg > IR_MAX_MEM ||
		   operand->offset % SPYRE_STICK_BYTES || operand->offset > b->pool_bytes ||
		   extent > b->pool_bytes - operand->offset) {
		return "has a bad operand";
	}
	b->operands[index] = (struct spyre_bundle_operand){
		(enum spyre_operand_kind)operand->kind, operand->arg, operand->offset,
	};
	return NULL;
}

static const char *take_operands(const uint8_t *table, struct spyre_bundle *b)
{
	const uint8_t *image = b->image;
	struct spyre_prog_header h;
	const char *why = NULL;

	memcpy(&h, image, sizeof(h));
	if (h.magic != SPYRE_PROG_MAGIC || h.version != SPYRE_PROG_VERSION ||
	    h.size != b->image_bytes || h.num_operands != b->num_operands ||
	    h.num_cores != b->num_cores || h.lx_bytes != b->lx_bytes ||
	    (b->image_bytes - sizeof(h)) / sizeof(struct spyre_prog_operand) < h.num_operands)
		return "has a bad program";
	for (uint32_t i = 0; i < b->num_operands && !why; i++) {
		struct spyre_prog_operand of_program;
		struct code_image_operand operand;

		memcpy(&of_program, image + sizeof(h) + i * sizeof(of_program), sizeof(of_program));
		memcpy(&operand, table + i * sizeof(operand), sizeof(operand));
		why = take_operand(&operand, of_program.extent, b, i);
	}
	return why;
}

static const char *take_files(const uint8_t *table, uint32_t num, struct code_files *files)
{
	files->list = malloc((num + 1) * sizeof(*files->list));
	if (!files->list)
		return "finds no memory";
	files->num = num;
	memcpy(files->list, table, num * sizeof(*files->list));
	for (uint32_t i = 0; i < num; i++) {
		const char *name = files->list[i].name;

		if (!memchr(name, '\0', CODE_IMAGE_NAME_BYTES) || !*name || *name == '.' ||
		    strchr(name, '/'))
			return "names a bad file";
	}
	return NULL;
}

static const char *take_tables(const uint8_t *at, const struct code_image_header *h,
			       struct spyre_bundle *b, struct code_files *files)
{
	const uint8_t *operands;
	const char *why = NULL;

	memcpy(b->name, at, sizeof(b->name));
	if (!memchr(b->name, '\0', sizeof(b->name)))
		return "has a bad name";
	at += sizeof(b->name);
	for (uint32_t i = 0; i < h->num_args && !why; i++) {
		struct code_image_arg arg;

		memcpy(&arg, at, sizeof(arg));
		at += sizeof(arg);
		why = take_arg(&arg, i, &b->args[i]);
	}
	operands = at;
	at += h->num_operands * sizeof(struct code_image_operand);
	if (!why)
		why = take_operands(operands, b);
	return why ? why : take_files(at, h->num_files, files);
}

const char *code_image_decode(const void *data, size_t size, struct spyre_bundle *b,
			      struct code_key *key, struct code_files *files)
{
	struct code_image_header h;
	const char *why;

	memset(b, 0, sizeof(*b));
	memset(files, 0, sizeof(*files));
	if (size < sizeof(h))
		return "is cut short";
	memcpy(&h, data, sizeof(h));
	why = check_header(&h, data, size);
	if (why)
		return why;
	*key = h.key;
	b->num_cores = h.num_cores;
	b->lx_bytes = h.lx_bytes;
	b->num_sdscs = h.num_sdscs;
	b->num_args = h.num_args;
	b->num_operands = h.num_operands;
	b->pool_bytes = h.pool_bytes;
	b->named_args = h.flags & CODE_IMAGE_NAMED_ARGS;
	if (h.flags & CODE_IMAGE_SYMBOLS)
		return "is of a bundle with symbols, which is compiled when it is loaded";
	b->image_bytes = h.image_bytes;
	b->image = malloc(h.image_bytes);
	if (!b->image)
		return "finds no memory";
	memcpy(b->image, (const uint8_t *)data + h.image_offset, h.image_bytes);
	why = take_tables((const uint8_t *)data + sizeof(h), &h, b, files);
	if (why) {
		spyre_bundle_fini(b);
		free(files->list);
		memset(files, 0, sizeof(*files));
	}
	return why;
}
