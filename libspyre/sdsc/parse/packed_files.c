// SPDX-License-Identifier: MIT
/* Files of a bundle in memory: see packed_files.h. */
#include "libspyre/sdsc/parse/packed_files.h"

#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libspyre/base/array.h"
#include "libspyre/base/error.h"
#include "libspyre/sdsc/ir/ir.h"
#include "libspyre/sdsc/parse/bundle_file.h"

struct entry {
	char name[IR_NAME_BYTES];
	uint64_t bytes;
};

static size_t align(size_t bytes)
{
	return (bytes + 7) & ~(size_t)7;
}

spyre_status packed_files_add(struct packed_files *files, const char *name, const char *text,
			      size_t size)
{
	struct entry entry = { .bytes = htole64(size) };
	uint8_t *at;

	if (!spyre_array_reserve(&files->data, &files->capacity,
				 files->bytes + sizeof(entry) + align(size), 1))
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "%s: no memory for %zu bytes of the file",
				   name, size);
	strncpy(entry.name, name, sizeof(entry.name) - 1);
	at = files->data + files->bytes;
	memset(at, 0, sizeof(entry) + align(size));
	memcpy(at, &entry, sizeof(entry));
	memcpy(at + sizeof(entry), text, size);
	files->bytes += sizeof(entry) + align(size);
	return SPYRE_SUCCESS;
}

void packed_files_fini(struct packed_files *files)
{
	free(files->data);
	memset(files, 0, sizeof(*files));
}

static spyre_status copy_text(const uint8_t *from, const char *name, char **text, size_t size)
{
	*text = malloc(size + BUNDLE_FILE_PADDING);
	if (!*text)
		return spyre_error(SPYRE_ERROR_OUT_OF_HOST_MEMORY, "%s: no memory for %zu bytes of the file",
				   name, size);
	memcpy(*text, from, size);
	memset(*text + size, 0, BUNDLE_FILE_PADDING);
	return SPYRE_SUCCESS;
}

spyre_status packed_files_load(const uint8_t *data, size_t bytes, const char *name, bool optional,
			       char **text, size_t *size)
{
	size_t at = 0;

	*text = NULL;
	*size = 0;
	while (bytes - at >= sizeof(struct entry)) {
		struct entry entry;

		memcpy(&entry, data + at, sizeof(entry));
		at += sizeof(entry);
		entry.bytes = le64toh(entry.bytes);
		if (entry.bytes > IR_MAX_FILE_BYTES || align(entry.bytes) > bytes - at)
			return spyre_error(SPYRE_ERROR_PARSE,
					   "its file at byte %zu has %" PRIu64 " bytes, %zu are left; the limit is %u",
					   at, entry.bytes, bytes - at, IR_MAX_FILE_BYTES);
		if (!strncmp(entry.name, name, sizeof(entry.name))) {
			*size = entry.bytes;
			return copy_text(data + at, name, text, *size);
		}
		at += align(entry.bytes);
	}
	if (optional)
		return SPYRE_SUCCESS;
	return spyre_error(SPYRE_ERROR_PARSE, "it lacks the file %s", name);
}
