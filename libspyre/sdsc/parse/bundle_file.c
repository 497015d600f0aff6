// SPDX-License-Identifier: MIT
/* Files of a bundle directory: see bundle_file.h. */
#include "libspyre/sdsc/parse/bundle_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/ir/ir.h"

static spyre_status file_error(const char *operation, const char *path)
{
	return spyre_error(SPYRE_ERROR_FILE, "cannot %s %s: %s", operation, path, strerror(errno));
}

static spyre_status read_all(int fd, const char *path, char *text, size_t size)
{
	size_t got = 0;

	while (got < size) {
		ssize_t n = read(fd, text + got, size - got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return file_error("read", path);
		if (!n)
			return spyre_error(SPYRE_ERROR_FILE,
					   "cannot read %s: it ends after %zu of %zu bytes; load it when it is complete",
					   path, got, size);
		got += (size_t)n;
	}
	return SPYRE_SUCCESS;
}

spyre_status bundle_file_load(const char *directory, const char *file, bool optional, char **text,
			      size_t *size)
{
	char path[4096];
	spyre_status status;
	struct stat st;
	int fd;

	*text = NULL;
	*size = 0;
	if (snprintf(path, sizeof(path), "%s/%s", directory, file) >= (int)sizeof(path))
		return spyre_error(SPYRE_ERROR_FILE, "cannot open %s: its path has %zu bytes or more",
				   file, sizeof(path));
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 && optional && errno == ENOENT)
		return SPYRE_SUCCESS;
	if (fd < 0)
		return file_error("open", path);
	if (fstat(fd, &st)) {
		status = file_error("stat", path);
	} else if (!S_ISREG(st.st_mode)) {
		status = spyre_error(SPYRE_ERROR_FILE, "cannot read %s: not a regular file", path);
	} else if (st.st_size > IR_MAX_FILE_BYTES) {
		status = spyre_error(SPYRE_ERROR_FILE,
				     "cannot read %s: it has %lld bytes, the limit is %u", path,
				     (long long)st.st_size, IR_MAX_FILE_BYTES);
	} else {
		*size = (size_t)st.st_size;
		*text = malloc(*size + BUNDLE_FILE_PADDING);
		status = *text ? read_all(fd, path, *text, *size) :
				 spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY,
					     "cannot read %s: no memory for %zu bytes", path, *size);
	}
	close(fd);
	if (status) {
		free(*text);
		*text = NULL;
		return status;
	}
	memset(*text + *size, 0, BUNDLE_FILE_PADDING);
	return SPYRE_SUCCESS;
}
