// SPDX-License-Identifier: MIT
/* Files of a bundle. */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "libspyre/base/error.h"
#include "libspyre/sdsc/write/write_file.h"

spyre_status build_write_file(const char *directory, const char *file, const char *text,
			      size_t size)
{
	char path[4096], draft[4096];
	bool ok;
	FILE *f;

	if (snprintf(path, sizeof(path), "%s/%s", directory, file) >= (int)sizeof(path) ||
	    snprintf(draft, sizeof(draft), "%s/.%s.new", directory, file) >= (int)sizeof(draft))
		return spyre_error(SPYRE_ERROR_FILE, "%s: path longer than %zu bytes", file,
				   sizeof(path));
	/* The file is renamed when it is complete, so readers never see a part of it. */
	f = fopen(draft, "we");
	if (!f)
		return spyre_error(SPYRE_ERROR_FILE, "%s: cannot create it: %s", draft,
				   strerror(errno));
	ok = fwrite(text, 1, size, f) == size;
	if (fclose(f) || !ok || rename(draft, path)) {
		spyre_status status = spyre_error(SPYRE_ERROR_FILE, "%s: cannot write it: %s", path,
						  strerror(errno));

		unlink(draft);
		return status;
	}
	return SPYRE_SUCCESS;
}
