// SPDX-License-Identifier: MIT
/* Bundles in temporary folders: see bundle_files.h. */
#define _GNU_SOURCE
#include "bundle_files.h"

#include <check.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void files_make(char folder[64])
{
	strcpy(folder, "/tmp/spyre-bundle-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *walk)
{
	return remove(path);
}

void files_remove(const char *folder)
{
	nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

void files_build(const char *folder, const char *op, int64_t (*size)[2], uint32_t count,
		 const int64_t *slices)
{
	spyre_sdsc_operand operands[4] = { 0 };

	for (uint32_t i = 0; i < count; i++) {
		operands[i].rank = 2;
		memcpy(operands[i].size, size[i], sizeof(size[i]));
		ck_assert_int_eq(spyre_layout_init(&operands[i].layout, 2, size[i],
						   SPYRE_FORMAT_IEEE_FP16), SPYRE_SUCCESS);
	}
	ck_assert_msg(build_bundle(op, operands, count, 1, slices, folder) == SPYRE_SUCCESS, "%s",
		      spyre_last_error());
}

void files_write(const char *folder, const char *file, const char *text)
{
	char path[1024];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(text, f), 0);
	ck_assert_int_eq(fclose(f), 0);
}

char *files_read(const char *folder, const char *file)
{
	char path[1024], *text = calloc(1, FILES_MAX_TEXT);
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	f = fopen(path, "r");
	ck_assert_msg(f && text, "%s cannot be read", path);
	ck_assert_uint_lt(fread(text, 1, FILES_MAX_TEXT, f), FILES_MAX_TEXT);
	fclose(f);
	return text;
}

void files_edit(const char *folder, const char *file, const char *from, const char *to)
{
	char *text = files_read(folder, file), *at = strstr(text, from);
	char *edited = calloc(1, strlen(text) + strlen(to) + 1);

	ck_assert_msg(at, "%s/%s has no %s", folder, file, from);
	memcpy(edited, text, (size_t)(at - text));
	strcat(edited, to);
	strcat(edited, at + strlen(from));
	files_write(folder, file, edited);
	free(edited);
	free(text);
}

void files_size_param(const char *folder, const char *dim, int64_t granularity, int64_t max,
		      int64_t slices)
{
	char type[128], text[512];

	snprintf(type, sizeof(type),
		 "!sdscbundle.input_arg<index, granularity=%lld, max_value=%lld>",
		 (long long)granularity, (long long)max);
	snprintf(text, sizeof(text), ", %%sym_0_1_base: %s) {\n"
		 "%%sym_0_1 = sdscbundle.input_arg_extract value from %%sym_0_1_base : %s -> index\n",
		 type, type);
	files_edit(folder, "bundle.mlir", ") {\n", text);
	files_edit(folder, "bundle.mlir", "sdsc_execute (", "sdsc_execute (%sym_0_1, ");
	files_edit(folder, "bundle.mlir", "\"symbol_ids\"=[", "\"symbol_ids\"=[-1000, ");
	snprintf(text, sizeof(text), "\"dimToSymbolMapping_\": {\"%s\": [-1000]}, \"N_\": {", dim);
	files_edit(folder, "sdsc_0.json", "\"N_\": {", text);
	snprintf(text, sizeof(text), "\"el_\": {\"symbolicDimInfo_\": {\"%s\": "
		 "{\"maxSize_\": %lld, \"granularity_\": %lld}},", dim, (long long)(max / slices),
		 (long long)(granularity / slices));
	files_edit(folder, "sdsc_0.json", "\"el_\": {", text);
	files_edit(folder, "sdsc_0.json", "\"dscs_\": [", "\"inputSymbolsAndTags_\": "
		   "{\"-1000\": \"s0\"}, \"symbolDefinitions_\": {}, \"dscs_\": [");
}

bool files_exist(const char *folder, const char *file)
{
	char path[1024];

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	return !access(path, F_OK);
}

void files_copy(const char *folder, const char *name)
{
	static const char *const files[] = { "bundle.mlir", "sdsc_0.json", "sdsc_1.json",
					     "launch_spec.json" };
	const char *root = getenv("SPYRE_SRCDIR");
	char from[512], *text;

	snprintf(from, sizeof(from), "%s/tests/conformance/bundles/%s", root ? root : ".", name);
	for (int i = 0; i < 4; i++) {
		if (!files_exist(from, files[i]))
			continue;
		text = files_read(from, files[i]);
		files_write(folder, files[i], text);
		free(text);
	}
}
