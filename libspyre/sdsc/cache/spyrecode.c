// SPDX-License-Identifier: MIT
/*
 * spyrecode.json: the job plans of a compiled bundle in the public form, every
 * number a decimal string. Addresses are those of segment 7: the correction
 * region, where operand addresses and sizes of dimensions are patched in, then the binary.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yyjson.h>

#include "libspyre/sdsc/cache/spyrecode.h"

#define SEGMENT_7 (UINT64_C(7) << 34)
#define CORRECTION "correction"	/* the host buffer of the correction region */
#define FLIT 128u
#define FLIT_WORDS 16u
#define POOL_SYMBOL SPYRE_MAX_OPERANDS	/* after all arguments */
#define SIZE_SYMBOL (2 * SPYRE_MAX_OPERANDS + 1)	/* after the pool and all operands */

struct plan {
	yyjson_mut_doc *doc;
	const struct spyre_bundle *bundle;
	uint64_t correction, binary;
	uint32_t num_flits;
};

static void put_number(struct plan *p, yyjson_mut_val *object, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	yyjson_mut_obj_add_strcpy(p->doc, object, key, text);
}

/* A row of a table: numbers and names, all as strings. */
static void put_cell(struct plan *p, yyjson_mut_val *row, const char *prefix, int64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%s%" PRId64, prefix, value);
	yyjson_mut_arr_add_strcpy(p->doc, row, text);
}

/* Adds {"command": @name, "properties": {…}} to a plan and returns the properties. */
static yyjson_mut_val *add_command(struct plan *p, yyjson_mut_val *list, const char *name)
{
	yyjson_mut_val *command = yyjson_mut_arr_add_obj(p->doc, list);

	yyjson_mut_obj_add_str(p->doc, command, "command", name);
	return yyjson_mut_obj_add_obj(p->doc, command, "properties");
}

/* Input symbols: arguments are -1, -2, …; the pool follows the last possible argument. */
static int64_t base_symbol(const struct spyre_bundle_operand *o)
{
	return -1 - (int64_t)(o->kind == SPYRE_OPERAND_ARG ? o->arg : POOL_SYMBOL);
}

static bool is_used(const struct spyre_bundle *b, uint32_t arg)
{
	for (uint32_t i = 0; i < b->num_operands; i++)
		if (b->operands[i].kind == SPYRE_OPERAND_ARG && b->operands[i].arg == arg)
			return true;
	return false;
}

/* The launch of the public front-end has no tensors for numbers that the bundle skips. */
static uint32_t count_inputs(const struct spyre_bundle *b)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < b->num_args; i++)
		count += is_used(b, i);
	return count;
}

/* Adds word @word of the region: the value of symbol @symbol, that of input @base plus @offset. */
static void put_word(struct plan *p, yyjson_mut_val *defs, yyjson_mut_val *rows, uint32_t word,
		     int64_t symbol, int64_t base, uint64_t offset)
{
	yyjson_mut_val *def = yyjson_mut_arr_add_arr(p->doc, defs);
	yyjson_mut_val *row = yyjson_mut_arr_add_arr(p->doc, rows);

	put_cell(p, def, "V", symbol);
	put_cell(p, def, "", -23);
	put_cell(p, def, "V", base);
	put_cell(p, def, "", (int64_t)offset);
	put_cell(p, def, "", 1);
	put_cell(p, row, "", symbol);
	put_cell(p, row, "", -1);
	put_cell(p, row, "", word / FLIT_WORDS);
	put_cell(p, row, "", word % FLIT_WORDS);
	put_cell(p, row, "", 0);
	put_cell(p, row, "", 63);
}

/*
 * Operand i is word i of the region: value = base address + offset. The values of the bundle's
 * symbols follow; a launch passes them after the addresses, in the order of bundle.mlir.
 */
static void put_correction(struct plan *p, yyjson_mut_val *vdci)
{
	const struct spyre_bundle *b = p->bundle;
	yyjson_mut_val *inputs, *ssi, *rows, *defs;

	yyjson_mut_obj_add_str(p->doc, vdci, "dsName_", "ProgCorrectionFlit");
	put_number(p, vdci, "dataformat_", 8);
	inputs = yyjson_mut_obj_add_arr(p->doc, vdci, "inputSym_");
	for (uint32_t i = 0; i < b->num_args; i++)
		if (is_used(b, i))
			put_cell(p, inputs, "", -1 - (int64_t)i);
	for (uint32_t k = 0; k < b->num_symbols; k++)
		for (uint32_t i = 0; i < b->num_symbols; i++)
			if (b->symbols[i].input == k)
				put_cell(p, inputs, "", -1 - (int64_t)(SIZE_SYMBOL + i));
	defs = yyjson_mut_obj_add_arr(p->doc, vdci, "variableDefs_");
	ssi = yyjson_mut_obj_add_obj(p->doc, vdci, "ssi_");
	rows = yyjson_mut_obj_add_arr(p->doc, ssi, "value_and_locs_");
	for (uint32_t i = 0; i < b->num_operands; i++)
		put_word(p, defs, rows, i, -1 - (int64_t)(POOL_SYMBOL + 1 + i),
			 base_symbol(&b->operands[i]), b->operands[i].offset);
	for (uint32_t i = 0; i < b->num_symbols; i++)
		put_word(p, defs, rows, b->num_operands + i,
			 -1 - (int64_t)(SIZE_SYMBOL + BUNDLE_MAX_SYMBOLS + i),
			 -1 - (int64_t)(SIZE_SYMBOL + i), 0);
}

static void put_host_compute(struct plan *p, yyjson_mut_val *list)
{
	static const char zeros[2 * FLIT + 1] = { [0 ... 2 * FLIT - 1] = '0' };
	yyjson_mut_val *c = add_command(p, list, "ComputeOnHost"), *shape, *hcm, *constants;

	shape = yyjson_mut_obj_add_arr(p->doc, c, "ishape");
	put_cell(p, shape, "", count_inputs(p->bundle) + p->bundle->num_symbols);
	shape = yyjson_mut_obj_add_arr(p->doc, c, "oshape");
	put_cell(p, shape, "", (int64_t)(p->correction / sizeof(uint64_t)));
	put_number(p, c, "size", p->correction);
	/* No buffer of another command: the input is the launch's addresses. */
	yyjson_mut_obj_add_str(p->doc, c, "ihandle", "");
	yyjson_mut_obj_add_str(p->doc, c, "ohandle", CORRECTION);
	hcm = yyjson_mut_obj_add_obj(p->doc, c, "hcm");
	put_correction(p, yyjson_mut_obj_add_obj(p->doc, hcm, "vdci"));
	constants = yyjson_mut_obj_add_arr(p->doc, hcm, "senConstants");
	for (uint32_t i = 0; i < p->num_flits; i++)
		yyjson_mut_obj_add_str(p->doc, yyjson_mut_arr_add_obj(p->doc, constants),
				       "senconst_", zeros);
	c = add_command(p, list, "DataTransfer");
	yyjson_mut_obj_add_str(p->doc, c, "dirn", "false");
	put_number(p, c, "size", p->correction);
	put_number(p, c, "dev_ptr", SEGMENT_7);
	yyjson_mut_obj_add_str(p->doc, c, "host_handle", CORRECTION);
}

static void put_plans(struct plan *p, yyjson_mut_val *root)
{
	yyjson_mut_val *list = yyjson_mut_obj_add_arr(p->doc, root, "JobPreparationPlan"), *c;

	put_number(p, add_command(p, list, "Allocate"), "size", p->correction + p->binary);
	c = add_command(p, list, "InitTransfer");
	yyjson_mut_obj_add_str(p->doc, c, "init_bin_file", "init_binary.bin");
	put_number(p, c, "size", p->binary);
	put_number(p, c, "dev_ptr", SEGMENT_7 + p->correction);
	list = yyjson_mut_obj_add_arr(p->doc, root, "JobExecPlan");
	if (p->bundle->num_operands)
		put_host_compute(p, list);
	c = add_command(p, list, "ComputeOnDevice");
	put_number(p, c, "job_bin_ptr", SEGMENT_7 + p->correction);
	yyjson_mut_obj_add_strcpy(p->doc, c, "name", p->bundle->name);
}

char *spyrecode_text(const struct spyre_bundle *bundle, size_t binary, size_t *size)
{
	struct plan p = { .doc = yyjson_mut_doc_new(NULL), .bundle = bundle, .binary = binary };
	yyjson_mut_val *root;
	char *text;

	if (!p.doc)
		return NULL;
	p.num_flits = (bundle->num_operands + bundle->num_symbols + FLIT_WORDS - 1) / FLIT_WORDS;
	p.correction = p.num_flits ? FLIT * (1 + p.num_flits) : 0;
	root = yyjson_mut_obj(p.doc);
	yyjson_mut_doc_set_root(p.doc, root);
	put_plans(&p, root);
	/* Names come from the bundle's files and may be invalid UTF-8. */
	text = yyjson_mut_write(p.doc, YYJSON_WRITE_PRETTY | YYJSON_WRITE_ALLOW_INVALID_UNICODE,
				size);
	yyjson_mut_doc_free(p.doc);
	return text;
}
