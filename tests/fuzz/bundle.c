// SPDX-License-Identifier: MIT
/*
 * Bundles: whatever the files hold, the compiler gives a program or a named
 * status with a text. An input is one of the two files, mutated; the other
 * one stays as it is.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/bundles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libspyre/sdsc/bundle.h"

/* An input: "mlir" and "json" of one bundle, joined by a zero byte. */
static char work[64];
static unsigned int texts;

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

static void add_bundle(const char *directory)
{
	struct spyre_bundle bundle;
	uint8_t *mlir, *json, *joined;
	size_t mlir_size, json_size;
	char path[4200];

	/* Of one SDSC, and of an operation that is there. */
	if (spyre_bundle_compile(directory, SPYRE_MAX_CORES, &bundle))
		return;
	if (bundle.num_sdscs == 1) {
		snprintf(path, sizeof(path), "%s/bundle.mlir", directory);
		mlir = fuzz_read_file(path, &mlir_size);
		snprintf(path, sizeof(path), "%s/sdsc_0.json", directory);
		json = fuzz_read_file(path, &json_size);
		joined = mlir && json ? malloc(mlir_size + 1 + json_size) : NULL;
		if (joined) {
			memcpy(joined, mlir, mlir_size);
			joined[mlir_size] = 0;
			memcpy(joined + mlir_size + 1, json, json_size);
			fuzz_seed(joined, mlir_size + 1 + json_size);
		}
		free(joined);
		free(mlir);
		free(json);
	}
	spyre_bundle_fini(&bundle);
}

static void remove_work(void)
{
	static const char *const name[] = { "bundle.mlir", "sdsc_0.json" };
	char path[128];

	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%s", work, name[i]);
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

static bool run(const uint8_t *data, size_t size)
{
	const uint8_t *end = memchr(data, 0, size);
	const size_t mlir = end ? (size_t)(end - data) : size;
	struct spyre_bundle bundle;
	spyre_status status;

	if (!write_file("bundle.mlir", data, mlir) ||
	    !write_file("sdsc_0.json", end ? end + 1 : data, end ? size - mlir - 1 : 0))
		fuzz_fail("cannot write to %s", work);
	status = spyre_bundle_compile(work, SPYRE_MAX_CORES, &bundle);
	if (status) {
		check_refusal(status);
		return false;
	}
	spyre_bundle_fini(&bundle);
	return true;
}

static const char *const words[] = {
	"0", "1", "-1", "64", "128", "65535", "65536", "4294967296", "18446744073709551615",
	"9223372036854775807", "-9223372036854775808", "99999999999999999999999", "1e308", "0.5",
	"null", "true", "[]", "{}", "\"\"", "\"x\"", "[", "]", "{", "}", ",", ":", "\"", "\\u0000",
	"[[[[[[[[[[[[[[[[", "{\"a\":{\"a\":{\"a\":", "%", "scf.for", "arith.constant", "value", "=",
	"sdscbundle.sdsc_execute", "\"symbol_ids\"=[-1]", "sdsc_0.json", "../", "mb_", "out_",
	"ReLU", "batchmatmul", "\xff", NULL
};

const struct fuzz_target fuzz_target = { "fuzz-bundle", seeds, run, words };
