// SPDX-License-Identifier: MIT
/* The cache of compiled bundles: see code_dir.h. */
#include "libspyre/sdsc/cache/code_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libspyre/base/array.h"
#include "libspyre/base/environment.h"
#include "libspyre/base/error.h"
#include "libspyre/base/log.h"
#include "libspyre/sdsc/cache/code_image.h"
#include "libspyre/sdsc/cache/spyrecode.h"
#include "libspyre/sdsc/parse/bundle_file.h"

#define BINARY "init_binary.bin"
#define PLAN "spyrecode.json"

/*
 * A user who may write to the common cache can replace programs in it, so only a
 * directory that no other user can write is accepted.
 */
static spyre_status check_common(void)
{
	const char *common = getenv("SPYRE_KERNEL_CACHE_DIR");
	struct stat st;

	if (!common || !*common || stat(common, &st) || !S_ISDIR(st.st_mode))
		return SPYRE_SUCCESS;
	if (st.st_uid != geteuid() && st.st_uid)
		return spyre_error(SPYRE_ERROR_CONFIGURATION,
				   "cannot use SPYRE_KERNEL_CACHE_DIR=%s: it belongs to user %u, not to user %u or root; set it to a directory of your own",
				   common, st.st_uid, geteuid());
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return spyre_error(SPYRE_ERROR_CONFIGURATION,
				   "cannot use SPYRE_KERNEL_CACHE_DIR=%s: others may write to it (mode %04o); run chmod go-w on it, or set it to a directory of your own",
				   common, (unsigned)st.st_mode & 07777);
	return SPYRE_SUCCESS;
}

spyre_status code_cache_mode(enum code_cache *mode)
{
	uint64_t on;
	spyre_status status = spyre_env_u64("SPYRE_KERNEL_CACHE", 1, 0, 1, &on);

	*mode = on ? CODE_CACHE_ON : CODE_CACHE_OFF;
	return status || !on ? status : check_common();
}

bool code_dir_path(const char *directory, char *path, size_t size)
{
	const char *common = getenv("SPYRE_KERNEL_CACHE_DIR");
	struct code_key key;
	char *real;
	int n;

	if (!common || !*common)
		return snprintf(path, size, "%s/spyreCodeDir", directory) < (int)size;
	real = realpath(directory, NULL);
	if (!real)
		return false;
	key = code_hash(real, strlen(real));
	free(real);
	n = snprintf(path, size, "%s/%016" PRIx64 "%016" PRIx64, common, key.word[1], key.word[0]);
	return n < (int)size && (!mkdir(common, 0755) || errno == EEXIST);
}

/*
 * Reading
 */

/* True if the file belongs to this user, to root or to the owner of the bundle. */
static bool owner_trusted(const struct stat *st, const char *directory)
{
	struct stat bundle;

	return st->st_uid == geteuid() || !st->st_uid ||
	       (!stat(directory, &bundle) && st->st_uid == bundle.st_uid);
}

static void *read_binary(const char *path, const char *directory, size_t *size)
{
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int fd = dir < 0 ? -1 : openat(dir, BINARY, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	struct stat st, dir_st;
	char *data = NULL;
	size_t got = 0;

	if (fd >= 0 && !fstat(dir, &dir_st) && !fstat(fd, &st) && S_ISREG(st.st_mode) &&
	    st.st_size > 0 && st.st_size <= CODE_IMAGE_MAX_BYTES &&
	    owner_trusted(&dir_st, directory) && owner_trusted(&st, directory))
		data = spyre_array_alloc((size_t)st.st_size);
	while (data && got < (size_t)st.st_size) {
		ssize_t n = read(fd, data + got, (size_t)st.st_size - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		got += (size_t)n;
	}
	if (fd >= 0)
		close(fd);
	if (dir >= 0)
		close(dir);
	*size = got;
	return data;
}

static bool add_file(struct code_key_state *key, const char *directory, const char *file,
		     bool optional, char **text, size_t *size)
{
	if (bundle_file_load(directory, file, optional, text, size))
		return false;
	code_key_add(key, file, *text, *size);
	return true;
}

/* Computes the key of the present sources, and reads the launch spec. */
static bool key_of_sources(const char *directory, const struct code_files *files,
			   struct code_key *key, struct launch_spec *spec)
{
	struct symbol_kinds kinds = { 0 };
	struct code_key_state state;
	size_t size;
	char *text;
	bool ok;

	code_key_begin(&state);
	ok = add_file(&state, directory, "bundle.mlir", false, &text, &size);
	free(text);
	if (!ok)
		return false;
	ok = add_file(&state, directory, "launch_spec.json", true, &text, &size) &&
	     (!text || !launch_spec_parse(text, size, spec, &kinds));
	symbol_kinds_fini(&kinds);
	free(text);
	if (!ok)
		return false;
	ok = add_file(&state, directory, "symbol_kinds.json", true, &text, &size);
	free(text);
	for (uint32_t i = 0; i < files->num && ok; i++) {
		ok = add_file(&state, directory, files->list[i].name, false, &text, &size);
		free(text);
	}
	*key = state.now;
	return ok;
}

/* Checks that a decoded bundle is that of the present sources, and applies the launch spec. */
static spyre_status check_current(const char *directory, const struct code_files *files,
				  struct code_key key, struct spyre_bundle *bundle)
{
	const struct symbols none = { 0 };
	struct launch_spec *spec = calloc(1, sizeof(*spec));
	struct code_key now;
	spyre_status status;

	if (!spec)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "no memory for %zu bytes of launch_spec.json",
				   sizeof(*spec));
	if (!key_of_sources(directory, files, &now, spec) || !code_key_equal(key, now))
		status = spyre_error(SPYRE_ERROR_FILE, "it is of other sources or another compiler");
	else if (spec->num_symbols)
		status = spyre_error(SPYRE_ERROR_FILE, "it has no symbols, launch_spec.json has %u",
				     spec->num_symbols);
	else
		status = launch_spec_apply(spec, &none, bundle);
	free(spec);
	return status;
}

spyre_status code_dir_read(const char *path, const char *directory, uint32_t max_cores,
			   struct spyre_bundle *bundle)
{
	struct code_files files;
	struct code_key key;
	spyre_status status;
	size_t size;
	void *data = read_binary(path, directory, &size);

	if (!data)
		return spyre_error(SPYRE_ERROR_FILE, "it is missing, or of another user");
	status = code_image_decode(data, size, bundle, &key, &files);
	if (!status && files.sources) {
		free(files.list);
		spyre_bundle_fini(bundle);
		status = spyre_error(SPYRE_ERROR_UNSUPPORTED,
				     "its bundle has symbols and is compiled for each of their values");
	}
	free(data);
	if (status)
		return status;
	status = check_current(directory, &files, key, bundle);
	if (!status)
		status = code_image_check_cores(bundle, max_cores);
	free(files.list);
	if (status)
		spyre_bundle_fini(bundle);
	return status;
}

/*
 * Writing
 */

/* Writes a temporary file and renames it: readers see the old file or the new one. */
static bool write_file(int dir, const char *name, const void *data, size_t size)
{
	static atomic_uint serial;
	const char *at = data;
	char own[96];
	bool ok;
	int fd;

	snprintf(own, sizeof(own), ".%s.%ld.%u", name, (long)getpid(), atomic_fetch_add(&serial, 1));
	fd = openat(dir, own, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	if (fd < 0 && errno == EEXIST) {	/* left by a process that died */
		unlinkat(dir, own, 0);
		fd = openat(dir, own, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	}
	if (fd < 0)
		return false;
	while (size) {
		ssize_t n = write(fd, at, size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		at += n;
		size -= (size_t)n;
	}
	ok = !close(fd) && !size && !renameat(dir, own, dir, name);
	if (!ok) {
		int saved = errno;

		unlinkat(dir, own, 0);
		errno = saved;
	}
	return ok;
}

static bool list_files(const struct bundle_source *source, struct code_files *files)
{
	files->num = source->num_units;
	files->sources = source->files.data;
	files->source_bytes = source->files.bytes;
	files->list = calloc(files->num + 1, sizeof(*files->list));
	for (uint32_t i = 0; i < files->num && files->list; i++)
		strncpy(files->list[i].name, source->units[i].file, CODE_IMAGE_NAME_BYTES - 1);
	return files->list;
}

static spyre_status write_both(int dir, const char *path, const void *binary, size_t binary_size,
			       const char *plan, size_t plan_size)
{
	/* The binary is written last, because a load looks for it first. */
	if (write_file(dir, PLAN, plan, plan_size) &&
	    write_file(dir, BINARY, binary, binary_size))
		return SPYRE_SUCCESS;
	return spyre_error(SPYRE_ERROR_FILE, "%s: cannot write: %s", path, strerror(errno));
}

spyre_status code_dir_write(const char *path, const struct bundle_source *source,
			    const struct spyre_bundle *bundle)
{
	struct code_files files;
	size_t binary_size = 0, plan_size = 0;
	void *binary = NULL;
	char *plan = NULL;
	spyre_status status;
	int dir;

	if (mkdir(path, 0777) && errno != EEXIST)
		return spyre_error(SPYRE_ERROR_FILE, "%s: cannot make it: %s", path,
				   strerror(errno));
	dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return spyre_error(SPYRE_ERROR_FILE, "%s: cannot open it: %s", path,
				   strerror(errno));
	if (list_files(source, &files))
		binary = code_image_encode(bundle, source->key.now, &files, &binary_size);
	if (binary)
		plan = spyrecode_text(bundle, binary_size, &plan_size);
	status = plan ? write_both(dir, path, binary, binary_size, plan, plan_size) :
			spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
				    "%s: no memory for the compiled bundle", path);
	close(dir);
	free(plan);
	free(binary);
	free(files.list);
	return status;
}

void code_dir_store(const char *path, const struct bundle_source *source,
		    const struct spyre_bundle *bundle)
{
	struct spyre_error_state saved;

	spyre_error_save(&saved);
	if (code_dir_write(path, source, bundle))
		spyre_log(SPYRE_LOG_INFO, "the compiled bundle is not kept: %s",
			  spyre_last_error());
	spyre_error_restore(&saved);
}
