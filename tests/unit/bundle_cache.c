// SPDX-License-Identifier: MIT
/* spyreCodeDir: when the compiled bundle is used, and when it is not. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yyjson.h>

#include "bundle_files.h"
#include "libspyre/sdsc/cache/code_dir.h"
#include "libspyre/sdsc/cache/code_image.h"
#include "libspyre/sdsc/load.h"
#include "runtime_check.h"
#include "tests/order.h"

#define BINARY "spyreCodeDir/init_binary.bin"
#define PLAN "spyreCodeDir/spyrecode.json"

static char folder[64];

static void setup(void)
{
	int64_t size[3][2] = { { 64, 128 }, { 64, 128 }, { 64, 128 } };

	/* make check disables the cache; this program tests it. */
	unsetenv("SPYRE_KERNEL_CACHE");
	unsetenv("SPYRE_KERNEL_CACHE_DIR");
	files_make(folder);
	files_build(folder, "add", size, 3, (const int64_t[]){ 4, 2 });
}

static void teardown(void)
{
	files_remove(folder);
}

/* Loads; returns true if the cache was used. The program equals that of a fresh compile. */
static bool load(void)
{
	struct spyre_bundle bundle, fresh;
	bool cached;

	ck_ok(spyre_bundle_load(folder, 32, CODE_CACHE_ON, &bundle, NULL));
	ck_ok(spyre_bundle_load(folder, 32, CODE_CACHE_OFF, &fresh, NULL));
	ck_assert_uint_eq(bundle.image_bytes, fresh.image_bytes);
	ck_assert(!memcmp(bundle.image, fresh.image, fresh.image_bytes));
	ck_assert_str_eq(bundle.name, fresh.name);
	ck_assert_uint_eq(bundle.num_args, fresh.num_args);
	ck_assert_uint_eq(bundle.num_operands, fresh.num_operands);
	ck_assert_uint_eq(bundle.pool_bytes, fresh.pool_bytes);
	ck_assert_uint_eq(bundle.num_sdscs, fresh.num_sdscs);
	ck_assert_uint_eq(bundle.num_cores, fresh.num_cores);
	ck_assert_uint_eq(bundle.lx_bytes, fresh.lx_bytes);
	for (uint32_t i = 0; i < fresh.num_args; i++) {
		ck_assert_uint_eq(bundle.args[i].bytes, fresh.args[i].bytes);
		ck_assert_int_eq(bundle.args[i].role, fresh.args[i].role);
		ck_assert_int_eq(bundle.args[i].format, fresh.args[i].format);
		ck_assert_int_eq(bundle.args[i].device_rank, fresh.args[i].device_rank);
		ck_assert(!memcmp(bundle.args[i].device_size, fresh.args[i].device_size,
				  sizeof(fresh.args[i].device_size)));
	}
	cached = bundle.cached;
	spyre_bundle_fini(&bundle);
	spyre_bundle_fini(&fresh);
	return cached;
}

START_TEST(taken)
{
	ck_assert(!load());
	ck_assert(files_exist(folder, BINARY));
	ck_assert(load());
	ck_assert(load());
}
END_TEST

/* Any change of any file makes the cache stale, even with its times restored. */
START_TEST(stale)
{
	struct timespec times[2] = { { 1000000000, 0 }, { 1000000000, 0 } };
	char path[128];

	snprintf(path, sizeof(path), "%s/sdsc_0.json", folder);
	ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
	ck_assert(!load());
	/* The length and times do not change. */
	files_edit(folder, "sdsc_0.json", "\"opFuncName\": \"add\"", "\"opFuncName\": \"sub\"");
	ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
	ck_assert(!load());
	ck_assert(load());
	files_edit(folder, "bundle.mlir", "return", "return // x");
	files_edit(folder, "bundle.mlir", " // x", "");
	ck_assert(load());
	files_edit(folder, "bundle.mlir", "\t\treturn", "\t\t\treturn");
	ck_assert(!load());
	ck_assert(load());
	files_write(folder, "launch_spec.json", "{\"version\": 1}");
	ck_assert(!load());
	ck_assert(load());
	files_write(folder, "launch_spec.json", "{\"version\": 2}");
	ck_assert(!load());
	ck_assert(load());
	files_write(folder, "symbol_kinds.json", "[]");
	/* Symbols unknown to the cached bundle are refused, not taken from the cache. */
	ck_status(spyre_bundle_load(folder, 32, CODE_CACHE_ON, &(struct spyre_bundle){ 0 }, NULL),
		  SPYRE_ERROR_PARSE);
}
END_TEST

static uint8_t *read_binary(size_t *size)
{
	uint8_t *data = malloc(FILES_MAX_TEXT);
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/" BINARY, folder);
	f = fopen(path, "r");
	ck_assert_ptr_nonnull(f);
	*size = fread(data, 1, FILES_MAX_TEXT, f);
	fclose(f);
	return data;
}

static void write_binary(const uint8_t *data, size_t size)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/" BINARY, folder);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_uint_eq(fwrite(data, 1, size, f), size);
	fclose(f);
}

/* Each bit matters: a file changed anywhere is compiled again. */
START_TEST(damaged)
{
	uint8_t *data;
	size_t size;

	ck_assert(!load());
	data = read_binary(&size);
	for (size_t at = 0; at < size; at += at < 512 ? 1 : 97) {
		data[at] ^= 0x40;
		write_binary(data, size);
		data[at] ^= 0x40;
		ck_assert_msg(!load(), "byte %zu of %zu is not checked", at, size);
	}
	for (size_t length = 0; length < size; length += 127) {
		write_binary(data, length);
		ck_assert(!load());
	}
	free(data);
	ck_assert(load());
}
END_TEST

/* An attacker corrects the checksum, but must not affect the tables. */
static void forge(uint8_t *data, size_t size)
{
	code_image_seal(data, size);
	write_binary(data, size);
}

struct forgery {
	size_t at;
	uint32_t word;
};

START_TEST(hostile)
{
	const size_t name = sizeof(struct code_image_header);
	const size_t args = name + sizeof(((struct spyre_bundle *)0)->name);
	const size_t operands = args + 3 * sizeof(struct code_image_arg);
	const size_t files = operands + 3 * sizeof(struct code_image_operand);
	const struct forgery forgeries[] = {
		{ offsetof(struct code_image_header, num_args), 65 },
		{ offsetof(struct code_image_header, num_args), 2 },
		{ offsetof(struct code_image_header, num_operands), 0xffffffff },
		{ offsetof(struct code_image_header, num_operands), 2 },
		{ offsetof(struct code_image_header, num_files), 0xffffffff },
		{ offsetof(struct code_image_header, num_files), 0 },
		{ offsetof(struct code_image_header, num_cores), 33 },
		{ offsetof(struct code_image_header, num_cores), 1 },
		{ offsetof(struct code_image_header, lx_bytes), 0x7fffffff },
		{ offsetof(struct code_image_header, flags), 0x80000000 },
		{ offsetof(struct code_image_header, pool_bytes) + 4, 0x7fffffff },
		{ offsetof(struct code_image_header, pool_bytes), 1 },
		{ offsetof(struct code_image_header, image_offset), 0 },
		{ offsetof(struct code_image_header, image_offset) + 4, 0xffffffff },
		{ offsetof(struct code_image_header, image_bytes), 8 },
		{ offsetof(struct code_image_header, image_bytes) + 4, 0xffffffff },
		{ offsetof(struct code_image_header, lx_kept), 100 },
		{ offsetof(struct code_image_header, lx_kept), (2 << 20) + 128 },
		{ offsetof(struct code_image_header, reserved), 1 },
		{ offsetof(struct code_image_header, program_version), 1 },
		{ name + 124, 0xffffffff },
		{ args + offsetof(struct code_image_arg, role), 0 },
		{ args + offsetof(struct code_image_arg, role), 4 },
		{ args + offsetof(struct code_image_arg, format), 1000 },
		{ args + offsetof(struct code_image_arg, device_rank), 9 },
		{ args + offsetof(struct code_image_arg, table), 9 },
		{ args + offsetof(struct code_image_arg, device_size) + 4, 0x80000000 },
		{ operands + offsetof(struct code_image_operand, kind), 2 },
		{ operands + offsetof(struct code_image_operand, kind), SPYRE_OPERAND_POOL },
		{ operands + offsetof(struct code_image_operand, arg), 3 },
		{ operands + offsetof(struct code_image_operand, arg), 1 },
		{ operands + offsetof(struct code_image_operand, offset), 128 },
		{ files, 0x2f2e2e2e },
		{ files, 0 },
	};
	uint8_t *data, *copy;
	size_t size;

	ck_assert(!load());
	data = read_binary(&size);
	copy = malloc(size);
	for (size_t i = 0; i < sizeof(forgeries) / sizeof(forgeries[0]); i++) {
		memcpy(copy, data, size);
		/* The name must be a terminated string. */
		if (forgeries[i].at == name + 124)
			memset(copy + name, 'x', 124);
		put_le(copy + forgeries[i].at, forgeries[i].word, 4);
		forge(copy, size);
		ck_assert_msg(!load(), "forgery %zu is taken", i);
	}
	free(copy);
	free(data);
}
END_TEST

/* Tables and checksums are valid, but the program would leave its operands. */
START_TEST(hostile_program)
{
	spyre_context *context = open_card();
	struct spyre_bundle bundle;
	spyre_kernel *kernel;
	uint8_t *data;
	size_t size;

	ck_assert(!load());
	data = read_binary(&size);
	/* The last view, at the end of the program. */
	data[get_le(data + offsetof(struct code_image_header, image_offset), 8) +
	     get_le(data + offsetof(struct code_image_header, image_bytes), 8) -
	     sizeof(struct spyre_view) + offsetof(struct spyre_view, offset) + 2] ^= 0xff;
	forge(data, size);
	free(data);
	ck_ok(spyre_bundle_load(folder, 32, CODE_CACHE_ON, &bundle, NULL));
	ck_assert(bundle.cached);
	spyre_bundle_fini(&bundle);
	ck_ok(spyre_kernel_load(context, folder, &kernel));
	ck_assert_str_eq(spyre_last_error(), "");
	ck_ok(spyre_kernel_unload(kernel));
	/* It was compiled again and replaced the forgery. */
	ck_assert(load());
	ck_ok(spyre_context_destroy(context));
}
END_TEST

/* The image says that the bundle has no symbols, launch_spec.json has one. */
START_TEST(hostile_symbols)
{
	const struct bundle_options options = { .max_cores = 32 };
	const size_t flags = offsetof(struct code_image_header, flags);
	struct bundle_source *source;
	struct spyre_counters cost;
	struct spyre_bundle bundle = { 0 };
	uint8_t *data;
	size_t size;

	files_write(folder, "launch_spec.json",
		    "{\"symbols\": {\"s0\": {\"min\": 1, \"max\": 64}}, \"args\": ["
		    "{\"arg_index\": 0, \"role\": \"input\", \"shape\": [\"s0\", 128]},"
		    "{\"arg_index\": 1, \"role\": \"input\"},"
		    "{\"arg_index\": 2, \"role\": \"output\"}]}");
	ck_ok(spyre_bundle_compile(folder, NULL, &options, &bundle, &cost));
	ck_assert_uint_eq(bundle.num_symbols, 1);
	spyre_bundle_fini(&bundle);
	data = read_binary(&size);
	ck_assert(data[flags] & CODE_IMAGE_SYMBOLS);
	data[flags] &= ~CODE_IMAGE_SYMBOLS;
	forge(data, size);
	free(data);
	ck_ok(spyre_bundle_load(folder, 32, CODE_CACHE_ON, &bundle, &source));
	ck_assert(!bundle.cached);
	ck_assert_uint_eq(bundle.num_symbols, 1);
	bundle_source_close(source);
	free(source);
	spyre_bundle_fini(&bundle);
}
END_TEST

START_TEST(switched_off)
{
	spyre_context *context = open_card();
	spyre_kernel *kernel;

	setenv("SPYRE_KERNEL_CACHE", "0", 1);
	ck_ok(spyre_kernel_load(context, folder, &kernel));
	ck_assert(!files_exist(folder, "spyreCodeDir"));
	setenv("SPYRE_KERNEL_CACHE", "2", 1);
	ck_status(spyre_kernel_load(context, folder, &kernel), SPYRE_ERROR_CONFIGURATION);
	ck_mentions("SPYRE_KERNEL_CACHE");
	setenv("SPYRE_KERNEL_CACHE", "1", 1);
	ck_ok(spyre_kernel_load(context, folder, &kernel));
	ck_assert(files_exist(folder, BINARY));
	ck_ok(spyre_context_destroy(context));
}
END_TEST

START_TEST(elsewhere)
{
	char cache[80];

	snprintf(cache, sizeof(cache), "%s/cache", folder);
	setenv("SPYRE_KERNEL_CACHE_DIR", cache, 1);
	ck_assert(!load());
	ck_assert(load());
	ck_assert(files_exist(folder, "cache"));
	ck_assert(!files_exist(folder, "spyreCodeDir"));
}
END_TEST

/* A common cache that others may write to is refused, unless it is switched off. */
START_TEST(open_to_others)
{
	static const mode_t modes[] = { 0777, 0775, 01777 };
	spyre_context *context = open_card();
	spyre_kernel *kernel;
	char cache[80];

	snprintf(cache, sizeof(cache), "%s/cache", folder);
	ck_assert_int_eq(mkdir(cache, 0755), 0);
	setenv("SPYRE_KERNEL_CACHE_DIR", cache, 1);
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		ck_assert_int_eq(chmod(cache, modes[i]), 0);
		ck_status(spyre_kernel_load(context, folder, &kernel), SPYRE_ERROR_CONFIGURATION);
		ck_mentions("chmod go-w");
	}
	setenv("SPYRE_KERNEL_CACHE", "0", 1);
	ck_ok(spyre_kernel_load(context, folder, &kernel));
	setenv("SPYRE_KERNEL_CACHE", "1", 1);
	ck_assert_int_eq(chmod(cache, 0755), 0);
	ck_ok(spyre_kernel_load(context, folder, &kernel));
	ck_ok(spyre_context_destroy(context));
}
END_TEST

/* A cache that is read-only or damaged is not an error. */
START_TEST(unwritable)
{
	char path[128], target[128], *text;

	snprintf(path, sizeof(path), "%s/spyreCodeDir", folder);
	files_write(folder, "spyreCodeDir", "in the way");
	ck_assert(!load());
	ck_assert(!load());
	unlink(path);
	/* Symbolic links are not followed. */
	snprintf(target, sizeof(target), "%s/target", folder);
	ck_assert_int_eq(mkdir(target, 0777), 0);
	ck_assert_int_eq(symlink(target, path), 0);
	ck_assert(!load());
	ck_assert(!files_exist(folder, "target/init_binary.bin"));
	unlink(path);
	ck_assert_int_eq(mkdir(path, 0777), 0);
	snprintf(path, sizeof(path), "%s/" BINARY, folder);
	snprintf(target, sizeof(target), "%s/precious", folder);
	files_write(folder, "precious", "text");
	ck_assert_int_eq(symlink(target, path), 0);
	ck_assert(!load());
	/* The link is replaced, not written through. */
	ck_assert(load());
	ck_assert_int_eq(unlink(path), 0);
	text = files_read(folder, "precious");
	ck_assert_str_eq(text, "text");
	free(text);
	ck_assert_int_eq(mkdir(path, 0777), 0);
	ck_assert(!load());
	ck_assert_str_eq(spyre_last_error(), "");
}
END_TEST

static void *load_often(void *unused)
{
	for (int i = 0; i < 50; i++) {
		struct spyre_bundle bundle;

		ck_ok(spyre_bundle_load(folder, 32, i % 3 ? CODE_CACHE_ON : CODE_CACHE_REBUILD,
					&bundle, NULL));
		spyre_bundle_fini(&bundle);
	}
	return NULL;
}

START_TEST(together)
{
	pthread_t threads[4];

	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(pthread_create(&threads[i], NULL, load_often, NULL), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	ck_assert(load());
}
END_TEST

static const char *text_of(yyjson_val *object, const char *key)
{
	const char *text = yyjson_get_str(yyjson_obj_get(object, key));

	ck_assert_msg(text, "%s is not a string", key);
	return text;
}

static uint64_t number(yyjson_val *object, const char *key)
{
	return strtoull(text_of(object, key), NULL, 10);
}

/* The properties of a command. */
static yyjson_val *command(yyjson_val *list, size_t index, const char *name)
{
	yyjson_val *at = yyjson_arr_get(list, index), *properties;

	ck_assert_str_eq(text_of(at, "command"), name);
	properties = yyjson_obj_get(at, "properties");
	ck_assert_msg(yyjson_is_obj(properties), "command %zu has no properties", index);
	return properties;
}

/* Compiles ahead of time; the plans have their public form. */
START_TEST(compile)
{
	spyre_kernel_info info = { .struct_size = sizeof(info) };
	yyjson_val *root, *plan, *c;
	uint64_t binary, start;
	const char *handle;
	struct stat st;
	yyjson_doc *doc;
	char path[128];

	ck_ok(spyre_kernel_compile(folder, NULL, 0, &info));
	ck_assert_uint_eq(info.num_args, 3);
	ck_assert_uint_eq(info.num_cores, 8);
	ck_assert_uint_gt(info.cycles, 0);
	ck_assert(load());
	snprintf(path, sizeof(path), "%s/" BINARY, folder);
	ck_assert_int_eq(stat(path, &st), 0);
	snprintf(path, sizeof(path), "%s/" PLAN, folder);
	doc = yyjson_read_file(path, 0, NULL, NULL);
	ck_assert_ptr_nonnull(doc);
	root = yyjson_doc_get_root(doc);
	plan = yyjson_obj_get(root, "JobPreparationPlan");
	c = command(plan, 1, "InitTransfer");
	binary = number(c, "size");
	start = number(c, "dev_ptr");
	ck_assert_uint_eq(binary, (uint64_t)st.st_size);
	ck_assert_str_eq(yyjson_get_str(yyjson_obj_get(c, "init_bin_file")), "init_binary.bin");
	ck_assert_uint_eq(start >> 34, 7);
	ck_assert_uint_eq(number(command(plan, 0, "Allocate"), "size"),
			  binary + (start - (7ull << 34)));
	plan = yyjson_obj_get(root, "JobExecPlan");
	c = command(plan, 0, "ComputeOnHost");
	ck_assert_uint_eq(number(c, "size"), start - (7ull << 34));
	/* No input buffer; the output is the one that is transferred. */
	ck_assert_str_eq(text_of(c, "ihandle"), "");
	ck_assert_str_eq(yyjson_get_str(yyjson_arr_get_first(yyjson_obj_get(c, "ishape"))), "3");
	handle = text_of(c, "ohandle");
	ck_assert_str_ne(handle, "");
	c = command(plan, 1, "DataTransfer");
	ck_assert_str_eq(text_of(c, "host_handle"), handle);
	ck_assert_str_eq(text_of(c, "dirn"), "false");
	ck_assert_uint_eq(number(c, "dev_ptr"), 7ull << 34);
	ck_assert_uint_eq(number(command(plan, 2, "ComputeOnDevice"), "job_bin_ptr"), start);
	yyjson_doc_free(doc);

	snprintf(path, sizeof(path), "%s/out", folder);
	ck_ok(spyre_kernel_compile(folder, path, 8, NULL));
	ck_assert(files_exist(folder, "out/init_binary.bin"));
	ck_status(spyre_kernel_compile(folder, NULL, 4, NULL), SPYRE_ERROR_UNSUPPORTED);
	ck_status(spyre_kernel_compile(folder, NULL, 33, NULL), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_kernel_compile(NULL, NULL, 0, NULL), SPYRE_ERROR_INVALID_ARGUMENT);
	ck_status(spyre_kernel_compile(folder, "/proc/nothing", 0, NULL), SPYRE_ERROR_FILE);
	ck_mentions("/proc/nothing");
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("cache");

	tcase_add_checked_fixture(tests, setup, teardown);
	tcase_add_test(tests, taken);
	tcase_add_test(tests, stale);
	tcase_add_test(tests, damaged);
	tcase_add_test(tests, hostile);
	tcase_add_test(tests, hostile_program);
	tcase_add_test(tests, hostile_symbols);
	tcase_add_test(tests, switched_off);
	tcase_add_test(tests, elsewhere);
	tcase_add_test(tests, open_to_others);
	tcase_add_test(tests, unwritable);
	tcase_add_test(tests, together);
	tcase_add_test(tests, compile);
	return run_suite("bundle_cache", tests);
}
