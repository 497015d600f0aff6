// SPDX-License-Identifier: MIT
/* Builder: bundle.mlir, which derives each core's addresses from the arguments. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "libspyre/runtime/error.h"
#include "libspyre/sdsc/build.h"

#define TYPE "!sdscbundle.input_arg<index>"

/* The first core that has the same address as @core. */
static uint32_t first_core(const struct ir_sdsc *s, const struct ir_tensor *t, uint32_t core)
{
	uint32_t i = 0;

	while (build_offset(s, t, i) != build_offset(s, t, core))
		i++;
	return i;
}

static void put_params(FILE *f, const struct ir_sdsc *s)
{
	fprintf(f, "module {\n\tfunc.func @sdsc_bundle(");
	for (uint32_t i = 0; i < s->num_tensors; i++)
		fprintf(f, "%s%%arg_%u_base_addr: " TYPE, i ? ", " : "", i);
	fprintf(f, ") {\n");
	for (uint32_t i = 0; i < s->num_tensors; i++)
		fprintf(f, "\t\t%%arg_%u = sdscbundle.input_arg_extract value from %%arg_%u_base_addr : "
			TYPE " -> index\n", i, i);
}

static void put_address(FILE *f, uint32_t arg, uint64_t offset)
{
	fprintf(f, "\t\t%%arg_%u_core_offset_%" PRIu64 " = arith.constant %" PRIu64 " : index\n",
		arg, offset, offset);
	fprintf(f, "\t\t%%arg_%u_core_%" PRIu64 " = arith.addi %%arg_%u, %%arg_%u_core_offset_%"
		PRIu64 " : index\n", arg, offset, arg, arg, offset);
}

/* Defines each distinct address, or lists it as an operand; returns their number. */
static uint32_t each_address(FILE *f, const struct ir_sdsc *s, bool operands)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->num_tensors; i++)
		for (uint32_t c = 0; c < s->num_cores; c++) {
			const struct ir_tensor *t = &s->tensor[i];
			uint64_t offset = build_offset(s, t, c);

			if (first_core(s, t, c) != c)
				continue;
			if (operands)
				fprintf(f, "%s%%arg_%u", n ? ", " : "", i);
			if (operands && offset)
				fprintf(f, "_core_%" PRIu64, offset);
			else if (offset)
				put_address(f, i, offset);
			n++;
		}
	return n;
}

spyre_status build_write_mlir(const struct ir_sdsc *s, const char *directory)
{
	spyre_status status;
	uint32_t symbols;
	char *text = NULL;
	size_t size = 0;
	FILE *f;

	f = open_memstream(&text, &size);
	if (!f)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				   "bundle.mlir: no memory to write it");
	put_params(f, s);
	each_address(f, s, false);
	fprintf(f, "\t\tsdscbundle.sdsc_execute (");
	symbols = each_address(f, s, true);
	fprintf(f, ") {sdsc_filename=\"%s\", \"symbol_ids\"=[", s->file);
	for (uint32_t i = 1; i <= symbols; i++)
		fprintf(f, "%s-%u", i > 1 ? ", " : "", i);
	fprintf(f, "]}\n\t\treturn\n\t}\n}\n");
	if (fclose(f))
		status = spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				     "bundle.mlir: no memory to write it");
	else
		status = build_write_file(directory, "bundle.mlir", text, size);
	free(text);
	return status;
}
