// SPDX-License-Identifier: MIT
/*
 * Fuzzes compiled bundles (init_binary.bin): for any contents of the file, its
 * tables stay within their limits, and the extents that a launch checks are never
 * smaller than those that the program reaches. The checksum is corrected first, as
 * an attacker would. spyre_kernel_load_image() takes the same bytes exactly if they
 * decode and the program verifies.
 */
#include "tests/fuzz/bundles.h"
#include "tests/fuzz/fuzz.h"
#include "tests/order.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <spyre/spyre.h>

#include "libspyre/sdsc/cache/code_image.h"
#include "libspyre/sdsc/ir/ir.h"
#include "libspyre/sdsc/load.h"
#include "libspyre/sdsc/parse/bundle_file.h"
#include "libspyre/sdsc/parse/packed_files.h"

static void add_image(const struct spyre_bundle *bundle, const struct code_files *files)
{
	const struct code_key key = { { 1, 2 } };
	size_t size;
	void *data = code_image_encode(bundle, key, files, &size);

	if (data && size < FUZZ_MAX_INPUT)
		fuzz_seed(data, size);
	free(data);
}

/* Adds an image with the files of a bundle of one SDSC, whose rows get a symbol. */
static void add_symbolic(const char *directory, struct spyre_bundle *bundle,
			 struct code_files *files)
{
	static const char added[] = "\"symbolicDimInfo_\": {\"mb\": \"s0\"}, ";
	struct packed_files packed = { 0 };
	char *mlir, *json, *edited = NULL, *el = NULL;
	size_t size;

	if (bundle_file_load(directory, "bundle.mlir", false, &mlir, &size) ||
	    packed_files_add(&packed, "bundle.mlir", mlir, size) ||
	    bundle_file_load(directory, "sdsc_0.json", false, &json, &size))
		fuzz_fail("cannot read %s", directory);
	el = strstr(json, "\"el_\": {");
	edited = el ? malloc(size + sizeof(added)) : NULL;
	if (edited) {
		size_t head = (size_t)(el - json) + 8;

		memcpy(edited, json, head);
		memcpy(edited + head, added, sizeof(added) - 1);
		memcpy(edited + head + sizeof(added) - 1, json + head, size - head);
		if (packed_files_add(&packed, "sdsc_0.json", edited, size + sizeof(added) - 1))
			fuzz_fail("no memory");
		files->sources = packed.data;
		files->source_bytes = packed.bytes;
		bundle->num_symbols = 1;
		add_image(bundle, files);
	}
	packed_files_fini(&packed);
	free(edited);
	free(json);
	free(mlir);
}

static void add_bundle(const char *directory)
{
	struct code_image_file names[2] = { { "sdsc_0.json" }, { "sdsc_1.json" } };
	struct code_files files = { .list = names, .num = 2 };
	struct spyre_bundle bundle;

	if (spyre_bundle_load(directory, SPYRE_MAX_CORES, CODE_CACHE_OFF, &bundle, NULL))
		return;
	add_image(&bundle, &files);
	if (bundle.num_sdscs == 1)
		add_symbolic(directory, &bundle, &files);
	spyre_bundle_fini(&bundle);
}

static void seeds(const char *source_dir)
{
	fuzz_each_bundle(source_dir, add_bundle);
}

static void check_operand(const struct spyre_bundle *bundle, uint32_t index, uint64_t extent)
{
	const struct spyre_bundle_operand *o = &bundle->operands[index];

	if (o->kind == SPYRE_OPERAND_ARG) {
		if (o->arg >= bundle->num_args || bundle->args[o->arg].bytes < extent)
			fuzz_fail("operand %u reaches %llu bytes of argument %u", index,
				  (unsigned long long)extent, o->arg);
	} else if (o->kind != SPYRE_OPERAND_POOL || o->offset > bundle->pool_bytes ||
		   bundle->pool_bytes - o->offset < extent) {
		fuzz_fail("operand %u reaches %llu bytes of the pool", index,
			  (unsigned long long)extent);
	}
}

/* Checks the tables; returns true if the program verifies. */
static bool check(const struct spyre_bundle *bundle, const struct code_files *files)
{
	struct spyre_verify_error why;
	struct spyre_program program;

	if (bundle->num_args > SPYRE_MAX_OPERANDS || bundle->num_operands > SPYRE_MAX_OPERANDS ||
	    strlen(bundle->name) >= sizeof(bundle->name))
		fuzz_fail("tables beyond their limits");
	for (uint32_t i = 0; i < files->num; i++)
		if (strlen(files->list[i].name) >= CODE_IMAGE_NAME_BYTES ||
		    strchr(files->list[i].name, '/'))
			fuzz_fail("a file outside the bundle");
	if (spyre_program_verify(bundle->image, bundle->image_bytes, SPYRE_MAX_CORES, &program,
				 &why))
		return false;
	for (uint32_t i = 0; i < bundle->num_operands; i++)
		check_operand(bundle, i, program.operands[i].extent);
	return true;
}

/* The context of an embedded card with 32 cores, created at the first call. */
static spyre_context *card(void)
{
	static spyre_context *context;

	if (context)
		return context;
	setenv("SPYRE_BACKEND", "embedded", 1);
	if (spyre_context_create(0, 0, &context))
		fuzz_fail("no embedded card: %s", spyre_last_error());
	return context;
}

/* @compiled: the image has the files of a bundle, which may be invalid. */
static void check_load(const void *data, size_t size, bool whole, bool compiled)
{
	spyre_kernel_info info = { .struct_size = sizeof(info) };
	spyre_kernel *kernel;
	spyre_status status = spyre_kernel_load_image(card(), data, size, &kernel);

	if (!status != !!kernel)
		fuzz_fail("%s with%s a kernel", spyre_status_name(status), kernel ? "" : "out");
	/* A hostile image may ask for more intermediates than the card has. */
	if (status == SPYRE_ERROR_OUT_OF_DEVICE_MEMORY && whole)
		return;
	if (!status != whole && !compiled)
		fuzz_fail("an image that is %s gives %s", whole ? "valid" : "invalid",
			  spyre_status_name(status));
	if (status)
		return;
	if (spyre_kernel_get_info(kernel, &info) || info.num_args > SPYRE_MAX_OPERANDS ||
	    !memchr(info.name, '\0', sizeof(info.name)))
		fuzz_fail("a kernel without information");
	if (spyre_kernel_unload(kernel))
		fuzz_fail("cannot unload: %s", spyre_last_error());
}

static bool run(const uint8_t *data, size_t size)
{
	struct spyre_bundle bundle;
	struct code_files files;
	struct code_key key;
	bool decoded, whole = false, compiled = false;
	uint8_t *copy = malloc(size + 1);

	if (!copy)
		fuzz_fail("no memory");
	memcpy(copy, data, size);
	if (size >= sizeof(struct code_image_header)) {
		put_le(copy + offsetof(struct code_image_header, magic), CODE_IMAGE_MAGIC, 4);
		put_le(copy + offsetof(struct code_image_header, size), size, 8);
		code_image_seal(copy, size);
	}
	decoded = !code_image_decode(copy, size, &bundle, &key, &files);
	if (decoded) {
		whole = check(&bundle, &files);
		compiled = files.sources;
		spyre_bundle_fini(&bundle);
		free(files.list);
	}
	check_load(copy, size, whole, compiled);
	free(copy);
	return decoded;
}

const struct fuzz_target fuzz_target = { .name = "fuzz-code", .seeds = seeds, .run = run };
