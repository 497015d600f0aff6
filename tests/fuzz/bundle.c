// SPDX-License-Identifier: MIT
/*
 * Fuzzes bundles: for any contents of the files, and for other values of its
 * symbols, the compiler returns a program or a named status with a text. An input
 * consists of all files of a bundle of one SDSC, mutated.
 */
#define _GNU_SOURCE	/* asprintf() */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/bundles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libspyre/sdsc/ir/bundle.h"
#include "libspyre/sdsc/load.h"
#include "libspyre/sdsc/lower/compile.h"
#include "libspyre/sdsc/lower/rows.h"
#include "libspyre/sdsc/parse/source.h"

/* The files of an input, joined by zero bytes; the last two are optional. */
static const char *const files[] = {
	"bundle.mlir", "sdsc_0.json", "launch_spec.json", "symbol_kinds.json",
};

#define FILES (sizeof(files) / sizeof(files[0]))

static char work[64];
static unsigned int texts;
static unsigned int params;	/* seeds with the size of a dim as a parameter */

static bool write_file(const char *name, const void *data, size_t size)
{
	char path[128];
	FILE *file;
	bool ok;

	snprintf(path, sizeof(path), "%s/%s", work, name);
	file = fopen(path, "wb");
	ok = file && fwrite(data, 1, size, file) == size;
	return file ? !fclose(file) && ok : false;
}

static bool run(const uint8_t *data, size_t size);

/* launch_spec.json as a front-end would write it for the bundle. */
static void put_spec(FILE *f, const struct spyre_bundle *bundle, const struct bundle_source *source)
{
	static const char *const roles[] = { "", "input", "output", "input_output" };
	const struct ir_stmt *stmt = &source->bundle.stmts[0];

	fprintf(f, "{\"version\": 1, \"kernel_name\": \"k\", \"emitter\": \"x\", \"symbols\": "
		"{\"s0\": {\"min\": 1, \"max\": 3}}, \"args\": [");
	for (uint32_t i = 0; i < bundle->num_args; i++) {
		const spyre_arg_info *arg = &bundle->args[i];

		fprintf(f, "%s{\"arg_index\": %u, \"role\": \"%s\", \"shape\": [\"s0\", 64], "
			"\"dtype\": \"float16\", \"layout\": \"SpyreTensorLayout(device_size=[",
			i ? ", " : "", i, roles[arg->role]);
		for (uint32_t d = 0; d < arg->device_rank; d++)
			fprintf(f, "%s%lld", d ? ", " : "", (long long)arg->device_size[d]);
		fprintf(f, "], stride_map =[64, 1], device_dtype=DataFormats.%s)\"}",
			spyre_format_name(arg->format));
	}
	fprintf(f, "], \"symbol_kinds\": [");
	for (uint32_t i = stmt->num_symbols; i-- > 0;) {
		const struct ir_value *v = &stmt->symbols[i].value;

		fprintf(f, "%s{\"kind\": \"%s\", \"arg_index\": %u, \"offset\": %lld}",
			i + 1 < stmt->num_symbols ? ", " : "",
			v->base == IR_BASE_POOL ? "pool" : "kernel_derived", v->arg,
			(long long)v->constant);
	}
	fprintf(f, "]}");
}

/* Only valid inputs become seeds. */
static bool add_if_right(const void *data, size_t size)
{
	bool right = size < FUZZ_MAX_INPUT && run(data, size);

	if (right)
		fuzz_seed(data, size);
	return right;
}

/* Adds variants with symbolic rows and with a launch spec. */
static void add_more(const uint8_t *mlir, size_t mlir_size, const char *json,
		     const char *directory, const struct spyre_bundle *bundle)
{
	const char *el = strstr(json, "\"el_\": {");
	struct bundle_source source;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	if (!f || bundle_source_open(directory, false, &source))
		return;
	fwrite(mlir, 1, mlir_size + 1, f);
	fwrite(json, 1, strlen(json) + 1, f);
	put_spec(f, bundle, &source);
	fclose(f);
	add_if_right(text, size);
	free(text);
	bundle_source_close(&source);
	f = el ? open_memstream(&text, &size) : NULL;
	if (!f)
		return;
	fwrite(mlir, 1, mlir_size + 1, f);
	fwrite(json, 1, (size_t)(el - json), f);
	fprintf(f, "\"el_\": {\"symbolicDimInfo_\": {\"mb\": \"s0\"}, %s", el + 8);
	fclose(f);
	add_if_right(text, size);
	free(text);
}

/* Replaces the first occurrence of @from in *@text; false if there is none. */
static bool replace(char **text, const char *from, const char *to)
{
	char *at = *text ? strstr(*text, from) : NULL, *edited = NULL;

	if (at && asprintf(&edited, "%.*s%s%s", (int)(at - *text), *text, to,
			   at + strlen(from)) < 0)
		edited = NULL;
	free(*text);
	*text = edited;
	return edited;
}

/* Makes the size of a dim a parameter, as the public front-end does. */
static bool make_param(const struct ir_sdsc *s, uint32_t dim, char **mlir, char **json)
{
	long long max = s->size[dim], slices = s->slices[dim], granularity = slices;
	char type[128], text[512];

	/* The granule is two elements of each core if that divides the size. */
	granularity *= max % (2 * slices) ? 1 : 2;
	snprintf(type, sizeof(type),
		 "!sdscbundle.input_arg<index, granularity=%lld, max_value=%lld>", granularity, max);
	snprintf(text, sizeof(text), ", %%sym_0_1_base: %s) {\n"
		 "%%sym_0_1 = sdscbundle.input_arg_extract value from %%sym_0_1_base : %s -> index\n",
		 type, type);
	if (!replace(mlir, ") {\n", text) ||
	    !replace(mlir, "sdsc_execute (", "sdsc_execute (%sym_0_1, ") ||
	    !replace(mlir, "\"symbol_ids\"=[", "\"symbol_ids\"=[-1000, "))
		return false;
	snprintf(text, sizeof(text), "\"dimToSymbolMapping_\": {\"%s\": [-1000]}, \"N_\": {",
		 s->dim[dim]);
	if (!replace(json, "\"N_\": {", text))
		return false;
	snprintf(text, sizeof(text), "\"el_\": {\"symbolicDimInfo_\": {\"%s\": "
		 "{\"maxSize_\": %lld, \"granularity_\": %lld}},", s->dim[dim], max / slices,
		 granularity / slices);
	return replace(json, "\"el_\": {", text) &&
	       replace(json, "\"dscs_\": [", "\"inputSymbolsAndTags_\": {\"-1000\": \"s0\"}, "
		       "\"symbolDefinitions_\": {}, \"dscs_\": [");
}

/* Adds a variant for each dim of the SDSC. */
static void add_params(const uint8_t *mlir, const char *json, const char *directory)
{
	struct bundle_source source;

	if (bundle_source_open(directory, false, &source))
		return;
	for (uint32_t d = 0; d < source.units[0].sdsc->num_dims; d++) {
		char *own_mlir = strdup((const char *)mlir), *own_json = strdup(json), *text = NULL;
		size_t size;
		FILE *f = open_memstream(&text, &size);

		if (f && make_param(source.units[0].sdsc, d, &own_mlir, &own_json)) {
			fwrite(own_mlir, 1, strlen(own_mlir) + 1, f);
			fputs(own_json, f);
		}
		if (f)
			fclose(f);
		if (text && size && add_if_right(text, size))
			params++;
		free(text);
		free(own_mlir);
		free(own_json);
	}
	bundle_source_close(&source);
}

static void add_bundle(const char *directory)
{
	struct spyre_bundle bundle;
	uint8_t *mlir, *json, *joined;
	size_t mlir_size, json_size;
	char path[4200];

	/* The seeds have one SDSC and a supported operation. */
	if (spyre_bundle_load(directory, SPYRE_MAX_CORES, CODE_CACHE_OFF, &bundle, NULL))
		return;
	if (bundle.num_sdscs == 1) {
		snprintf(path, sizeof(path), "%s/bundle.mlir", directory);
		mlir = fuzz_read_file(path, &mlir_size);
		snprintf(path, sizeof(path), "%s/sdsc_0.json", directory);
		json = fuzz_read_file(path, &json_size);
		joined = mlir && json ? calloc(1, mlir_size + json_size + 2) : NULL;
		if (joined) {
			memcpy(joined, mlir, mlir_size);
			memcpy(joined + mlir_size + 1, json, json_size);
			fuzz_seed(joined, mlir_size + 1 + json_size);
			add_more(joined, mlir_size, (char *)joined + mlir_size + 1, directory,
				 &bundle);
			add_params(joined, (char *)joined + mlir_size + 1, directory);
		}
		free(joined);
		free(mlir);
		free(json);
	}
	spyre_bundle_fini(&bundle);
}

static void remove_work(void)
{
	char path[128];

	for (size_t i = 0; i < FILES; i++) {
		snprintf(path, sizeof(path), "%s/%s", work, files[i]);
		unlink(path);
	}
	rmdir(work);
}

static void seeds(const char *source_dir)
{
	snprintf(work, sizeof(work), "%s/spyre-fuzz-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	if (!mkdtemp(work))
		fuzz_fail("cannot make the folder %s", work);
	atexit(remove_work);
	fuzz_each_bundle(source_dir, add_bundle);
	if (!params)
		fuzz_fail("no seed has the size of a dimension as a parameter");
}

static void check_refusal(spyre_status status)
{
	const char *text = spyre_last_error();

	if (status <= SPYRE_NOT_READY || status >= SPYRE_STATUS_COUNT)
		fuzz_fail("a refusal with the unknown status %d", status);
	if (!*text)
		fuzz_fail("%s without a text", spyre_status_name(status));
	texts += strlen(text) > 0;
}

/* The verifier may refuse only the amount of work. */
static void verify(const struct spyre_bundle *bundle)
{
	struct spyre_verify_error err = { 0 };
	struct spyre_program program;

	if (spyre_program_verify(bundle->image, bundle->image_bytes, SPYRE_MAX_CORES, &program,
				 &err) && err.stop != SPYRE_STOP_TOO_LONG)
		fuzz_fail("the verifier refuses what was compiled: %s",
			  spyre_stop_name(err.stop));
}

/* Verifies the program, and again for tables of any size. */
static void check_program(struct spyre_bundle *bundle)
{
	uint64_t bytes[SPYRE_MAX_OPERANDS];

	verify(bundle);
	for (uint32_t i = 0; i < SPYRE_MAX_OPERANDS; i++)
		bytes[i] = (uint64_t)fuzz_random(UINT32_MAX) << fuzz_random(32);
	rows_of_launch(bundle->image, bundle, bytes);
	verify(bundle);
}

/* A bundle that verifies for the maxima must verify for other values or be refused by name. */
static void lower_again(const struct bundle_source *source)
{
	int64_t values[BUNDLE_MAX_SYMBOLS];
	struct spyre_bundle bundle;
	spyre_status status;

	for (uint32_t i = 0; i < source->symbols.num; i++) {
		const struct bundle_symbol *s = &source->symbols.symbol[i];
		int64_t range = s->max - s->min;

		values[i] = s->min + fuzz_random(range < 1 << 20 ? (uint32_t)range + 1 : 1 << 20);
		if (fuzz_random(4) && values[i] >= s->granularity)
			values[i] -= values[i] % s->granularity;
	}
	status = spyre_bundle_lower(source, values, SPYRE_MAX_CORES, &bundle);
	if (status) {
		check_refusal(status);
		return;
	}
	check_program(&bundle);
	spyre_bundle_fini(&bundle);
}

static bool write_files(const uint8_t *data, size_t size)
{
	const uint8_t *end = data + size;
	char path[128];
	bool ok = true;

	for (size_t i = 0; i < FILES && ok; i++) {
		const uint8_t *stop = data < end ? memchr(data, 0, (size_t)(end - data)) : NULL;

		if (data >= end && i >= 2) {
			snprintf(path, sizeof(path), "%s/%s", work, files[i]);
			unlink(path);
			continue;
		}
		if (!stop || i == FILES - 1)
			stop = end;
		ok = write_file(files[i], data, data < end ? (size_t)(stop - data) : 0);
		data = stop < end ? stop + 1 : end;
	}
	return ok;
}

static bool run(const uint8_t *data, size_t size)
{
	struct bundle_source source;
	struct spyre_bundle bundle;
	spyre_status status;

	if (!write_files(data, size))
		fuzz_fail("cannot write to %s", work);
	status = bundle_source_open(work, false, &source);
	if (status) {
		check_refusal(status);
		return false;
	}
	status = spyre_bundle_lower(&source, NULL, SPYRE_MAX_CORES, &bundle);
	if (status) {
		check_refusal(status);
	} else {
		check_program(&bundle);
		spyre_bundle_fini(&bundle);
		if (source.symbols.num)
			lower_again(&source);
	}
	bundle_source_close(&source);
	return !status;
}

static const char *const words[] = {
	"0", "1", "-1", "64", "128", "65535", "65536", "4294967296", "18446744073709551615",
	"9223372036854775807", "-9223372036854775808", "99999999999999999999999", "1e308", "0.5",
	"null", "true", "[]", "{}", "\"\"", "\"x\"", "[", "]", "{", "}", ",", ":", "\"", "\\u0000",
	"[[[[[[[[[[[[[[[[", "{\"a\":{\"a\":{\"a\":", "%", "scf.for", "arith.constant", "value", "=",
	"sdscbundle.sdsc_execute", "\"symbol_ids\"=[-1]", "sdsc_0.json", "../", "mb_", "out_",
	"ReLU", "batchmatmul", "\"symbolicDimInfo_\": {\"mb\": \"s0\"},", "\"s0\"",
	"sdscbundle.device_mem_allocate 4096 bytes : index", "bytes", "floordiv", "ceildiv", "mod",
	"affine_map<",
	"granularity=64, max_value=512", "\"granularity_\": 64", "\"dimToSymbolMapping_\": {",
	"\"kernel_slice\"", "\"base_sym_idx\"", "\"pool\"", "\"args\"", "\"symbols\"", "\xff", NULL
};

const struct fuzz_target fuzz_target = {
	.name = "fuzz-bundle", .seeds = seeds, .run = run, .words = words,
};
