// SPDX-License-Identifier: MIT
/* init_binary.bin: see code_image.h. */
#include "libspyre/sdsc/cache/code_image.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "libspyre/base/array.h"
#include "libspyre/base/error.h"
#include "libspyre/sdsc/cache/code_order.h"
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

static size_t sources_offset(const struct code_image_header *h)
{
	return align(h->image_offset + h->image_bytes);
}

/* The sum as it is in the file. */
static struct code_key file_sum(const void *data, size_t size)
{
	struct {
		struct code_image_header header;
		struct code_key rest;
	} all;

	memcpy(&all.header, data, sizeof(all.header));
	memset(&all.header.sum, 0, sizeof(all.header.sum));
	all.rest = code_hash((const uint8_t *)data + sizeof(all.header),
			     size - sizeof(all.header));
	all.rest = code_order_key(all.rest);
	return code_order_key(code_hash(&all, sizeof(all)));
}

void code_image_seal(void *data, size_t size)
{
	struct code_key sum = file_sum(data, size);

	memcpy((uint8_t *)data + offsetof(struct code_image_header, sum), &sum, sizeof(sum));
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
					      .device_rank = info->device_rank,
					      .table = b->table[i] };

		memcpy(arg.device_size, info->device_size, sizeof(arg.device_size));
		code_order_arg(&arg);
		at = put(at, &arg, sizeof(arg));
	}
	for (uint32_t i = 0; i < b->num_operands; i++) {
		struct code_image_operand operand = { b->operands[i].kind, b->operands[i].arg,
						      b->operands[i].offset };

		code_order_operand(&operand);
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
		.source_bytes = files->source_bytes,
		.lx_kept = b->num_symbols ? b->lx_asked : 0,
	};
	uint8_t *out;

	h.flags = (b->named_args ? CODE_IMAGE_NAMED_ARGS : 0) |
		  (b->num_symbols ? CODE_IMAGE_SYMBOLS : 0);
	h.image_offset = align(tables_bytes(&h));
	h.size = align(sources_offset(&h) + h.source_bytes);
	out = calloc(1, h.size);
	if (!out)
		return NULL;
	put_tables(out + sizeof(h), b, files);
	memcpy(out + h.image_offset, b->image, b->image_bytes);
	code_order_program(out + h.image_offset, b->image_bytes, false);
	put(out + sources_offset(&h), files->sources, files->source_bytes);
	*size = h.size;
	code_order_header(&h);
	memcpy(out, &h, sizeof(h));
	code_image_seal(out, *size);
	return out;
}

static spyre_status at_most(const char *field, uint64_t value, uint64_t limit)
{
	if (value <= limit)
		return SPYRE_SUCCESS;
	return spyre_error(SPYRE_ERROR_PARSE, "its header has %" PRIu64 " %s, at most %" PRIu64
			   " are possible", value, field, limit);
}

static spyre_status check_counts(const struct code_image_header *h)
{
	static const uint8_t zero[sizeof(h->reserved)];

	TRY(at_most("arguments", h->num_args, SPYRE_MAX_OPERANDS));
	TRY(at_most("operands", h->num_operands, SPYRE_MAX_OPERANDS));
	TRY(at_most("files", h->num_files, SPYRE_MAX_STEPS));
	TRY(at_most("SDSCs", h->num_sdscs, SPYRE_MAX_STEPS));
	TRY(at_most("cores", h->num_cores, SPYRE_MAX_CORES));
	TRY(at_most("bytes of LX", h->lx_bytes, SPYRE_LX_BYTES));
	TRY(at_most("bytes of kept LX", h->lx_kept, SPYRE_LX_BYTES));
	TRY(at_most("bytes of intermediates", h->pool_bytes, MAX_POOL));
	if (h->lx_kept % SPYRE_STICK_BYTES)
		return spyre_error(SPYRE_ERROR_PARSE,
				   "its header has %u bytes of kept LX, which is not a multiple of %u",
				   h->lx_kept, SPYRE_STICK_BYTES);
	if (h->pool_bytes % SPYRE_STICK_BYTES)
		return spyre_error(SPYRE_ERROR_PARSE, "its header has %" PRIu64
				   " bytes of intermediates, which is not a multiple of %u",
				   h->pool_bytes, SPYRE_STICK_BYTES);
	if (h->flags & ~(CODE_IMAGE_NAMED_ARGS | CODE_IMAGE_SYMBOLS))
		return spyre_error(SPYRE_ERROR_PARSE, "its header has unknown flags 0x%x", h->flags);
	if (memcmp(h->reserved, zero, sizeof(zero)))
		return spyre_error(SPYRE_ERROR_PARSE, "reserved bytes of its header are not zero");
	return SPYRE_SUCCESS;
}

static spyre_status check_header(const struct code_image_header *h, const uint8_t *data,
				 size_t size)
{
	if (h->magic != CODE_IMAGE_MAGIC)
		return spyre_error(SPYRE_ERROR_PARSE,
				   "it is not a compiled bundle: it begins with 0x%08x, not 0x%08x",
				   h->magic, CODE_IMAGE_MAGIC);
	if (h->version != CODE_IMAGE_VERSION || h->program_version != SPYRE_PROG_VERSION)
		return spyre_error(SPYRE_ERROR_UNSUPPORTED,
				   "it has version %u with programs of version %u, this library uses %u and %u",
				   h->version, h->program_version, CODE_IMAGE_VERSION,
				   SPYRE_PROG_VERSION);
	if (h->size != size)
		return spyre_error(SPYRE_ERROR_PARSE,
				   "it has %zu bytes, its header says %" PRIu64, size, h->size);
	TRY(check_counts(h));
	if (h->image_offset != align(tables_bytes(h)) || h->image_offset > size ||
	    h->image_bytes > size - h->image_offset ||
	    h->image_bytes < sizeof(struct spyre_prog_header))
		return spyre_error(SPYRE_ERROR_PARSE,
				   "its header has a program of %" PRIu64 " bytes at %" PRIu64
				   ", which does not fit %zu bytes with tables up to %zu",
				   h->image_bytes, h->image_offset, size, align(tables_bytes(h)));
	if (sources_offset(h) > size || h->source_bytes > size - sources_offset(h) ||
	    (!h->source_bytes && h->flags & CODE_IMAGE_SYMBOLS))
		return spyre_error(SPYRE_ERROR_PARSE,
				   "its header has %" PRIu64 " bytes of files from %zu on, of %zu bytes in all; a bundle with symbols has files",
				   h->source_bytes, sources_offset(h), size);
	if (!code_key_equal(h->sum, code_order_key(file_sum(data, size))))
		return spyre_error(SPYRE_ERROR_PARSE,
				   "it is damaged: its %zu bytes do not match the sum in its header",
				   size);
	return SPYRE_SUCCESS;
}

static spyre_status take_arg(const struct code_image_arg *arg, uint32_t index, spyre_arg_info *info)
{
	if (arg->role < SPYRE_ARG_INPUT || arg->role > SPYRE_ARG_INPUT_OUTPUT || arg->table > 1 ||
	    arg->format >= SPYRE_FORMAT_COUNT || arg->device_rank > SPYRE_MAX_DEVICE_RANK)
		return spyre_error(SPYRE_ERROR_PARSE,
				   "argument %u is invalid: role %u, format %u, device rank %u, table %u",
				   index, arg->role, arg->format, arg->device_rank, arg->table);
	for (uint32_t i = 0; i < SPYRE_MAX_DEVICE_RANK; i++)
		if (arg->device_size[i] < 0 || arg->device_size[i] > MAX_SIZE)
			return spyre_error(SPYRE_ERROR_PARSE,
					   "argument %u has device size %" PRId64
					   " in dimension %u, expected 0 to %" PRId64,
					   index, arg->device_size[i], i, MAX_SIZE);
	info->index = (int)index;
	info->role = (spyre_arg_role)arg->role;
	info->format = (spyre_format)arg->format;
	info->device_rank = arg->device_rank;
	memcpy(info->device_size, arg->device_size, sizeof(info->device_size));
	return SPYRE_SUCCESS;
}

static bool in_pool(const struct code_image_operand *operand, uint64_t extent, uint64_t pool)
{
	return operand->arg <= IR_MAX_MEM && operand->offset % SPYRE_STICK_BYTES == 0 &&
	       operand->offset <= pool && extent <= pool - operand->offset;
}

/*
 * @extent comes from the program, where the verifier proves it. A launch checks
 * addresses against it, so the file's table must not supply it.
 */
static spyre_status take_operand(const struct code_image_operand *operand, uint64_t extent,
				 struct spyre_bundle *b, uint32_t index)
{
	bool valid = operand->kind == SPYRE_OPERAND_POOL ?
			     in_pool(operand, extent, b->pool_bytes) :
			     operand->kind == SPYRE_OPERAND_ARG && !operand->offset &&
			     operand->arg < b->num_args && !b->args[operand->arg].bytes;

	if (!valid)
		return spyre_error(SPYRE_ERROR_PARSE,
				   "operand %u is invalid: kind %u, number %u of %u arguments, %" PRIu64
				   " bytes at %" PRIu64 " of %" PRIu64 " bytes of intermediates",
				   index, operand->kind, operand->arg, b->num_args, extent,
				   operand->offset, b->pool_bytes);
	if (operand->kind == SPYRE_OPERAND_ARG)
		b->args[operand->arg].bytes = extent;
	b->operands[index] = (struct spyre_bundle_operand){
		(enum spyre_operand_kind)operand->kind, operand->arg, operand->offset,
	};
	return SPYRE_SUCCESS;
}

static spyre_status take_operands(const uint8_t *table, struct spyre_bundle *b)
{
	const uint8_t *image = b->image;
	struct spyre_prog_header h;

	memcpy(&h, image, sizeof(h));
	if (h.magic != SPYRE_PROG_MAGIC || h.version != SPYRE_PROG_VERSION ||
	    h.size != b->image_bytes || h.num_operands != b->num_operands ||
	    h.num_cores != b->num_cores || h.lx_bytes != b->lx_bytes ||
	    (b->image_bytes - sizeof(h)) / sizeof(struct spyre_prog_operand) < h.num_operands)
		return spyre_error(SPYRE_ERROR_PARSE,
				   "its program differs from its header: %" PRIu64 " of %zu bytes, %u of %u operands, %u of %u cores, %u of %u bytes of LX",
				   h.size, b->image_bytes, h.num_operands, b->num_operands,
				   h.num_cores, b->num_cores, h.lx_bytes, b->lx_bytes);
	b->lx_kept = h.lx_kept;
	for (uint32_t i = 0; i < b->num_operands; i++) {
		struct spyre_prog_operand of_program;
		struct code_image_operand operand;

		memcpy(&of_program, image + sizeof(h) + i * sizeof(of_program), sizeof(of_program));
		memcpy(&operand, table + i * sizeof(operand), sizeof(operand));
		code_order_operand(&operand);
		TRY(take_operand(&operand, of_program.extent, b, i));
	}
	return SPYRE_SUCCESS;
}

static spyre_status take_files(const uint8_t *table, uint32_t num, struct code_files *files)
{
	files->list = malloc((num + 1) * sizeof(*files->list));
	if (!files->list)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory for %u names", num);
	files->num = num;
	memcpy(files->list, table, num * sizeof(*files->list));
	for (uint32_t i = 0; i < num; i++) {
		const char *name = files->list[i].name;

		if (!memchr(name, '\0', CODE_IMAGE_NAME_BYTES) || !*name || *name == '.' ||
		    strchr(name, '/'))
			return spyre_error(SPYRE_ERROR_PARSE, "file %u has an invalid name \"%.*s\"",
					   i, (int)CODE_IMAGE_NAME_BYTES, name);
	}
	return SPYRE_SUCCESS;
}

static spyre_status take_tables(const uint8_t *at, const struct code_image_header *h,
				struct spyre_bundle *b, struct code_files *files)
{
	const uint8_t *operands;

	memcpy(b->name, at, sizeof(b->name));
	if (!memchr(b->name, '\0', sizeof(b->name)))
		return spyre_error(SPYRE_ERROR_PARSE, "its name is longer than %zu bytes",
				   sizeof(b->name) - 1);
	at += sizeof(b->name);
	for (uint32_t i = 0; i < h->num_args; i++) {
		struct code_image_arg arg;

		memcpy(&arg, at, sizeof(arg));
		code_order_arg(&arg);
		at += sizeof(arg);
		TRY(take_arg(&arg, i, &b->args[i]));
		b->table[i] = arg.table;
	}
	operands = at;
	at += h->num_operands * sizeof(struct code_image_operand);
	TRY(take_operands(operands, b));
	return take_files(at, h->num_files, files);
}

spyre_status code_image_decode(const void *data, size_t size, struct spyre_bundle *b,
			       struct code_key *key, struct code_files *files)
{
	struct code_image_header h;
	spyre_status status;

	memset(b, 0, sizeof(*b));
	memset(files, 0, sizeof(*files));
	if (size < sizeof(h))
		return spyre_error(SPYRE_ERROR_PARSE, "it has %zu bytes, a header has %zu", size,
				   sizeof(h));
	memcpy(&h, data, sizeof(h));
	code_order_header(&h);
	TRY(check_header(&h, data, size));
	*key = h.key;
	b->num_cores = h.num_cores;
	b->lx_bytes = h.lx_bytes;
	b->num_sdscs = h.num_sdscs;
	b->num_args = h.num_args;
	b->num_operands = h.num_operands;
	b->pool_bytes = h.pool_bytes;
	b->lx_asked = h.lx_kept;
	b->named_args = h.flags & CODE_IMAGE_NAMED_ARGS;
	b->image_bytes = h.image_bytes;
	b->image = spyre_array_alloc(h.image_bytes);
	if (!b->image)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "no memory for a program of %" PRIu64 " bytes", h.image_bytes);
	memcpy(b->image, (const uint8_t *)data + h.image_offset, h.image_bytes);
	code_order_program(b->image, h.image_bytes, true);
	if (h.flags & CODE_IMAGE_SYMBOLS) {
		files->sources = (const uint8_t *)data + sources_offset(&h);
		files->source_bytes = h.source_bytes;
	}
	status = take_tables((const uint8_t *)data + sizeof(h), &h, b, files);
	if (status) {
		spyre_bundle_fini(b);
		free(files->list);
		memset(files, 0, sizeof(*files));
	}
	return status;
}

spyre_status code_image_check_cores(const struct spyre_bundle *bundle, uint32_t max_cores)
{
	if (bundle->num_cores <= max_cores)
		return SPYRE_SUCCESS;
	return spyre_error(SPYRE_ERROR_UNSUPPORTED,
			   "it is compiled for %u cores, the card has %u", bundle->num_cores,
			   max_cores);
}
