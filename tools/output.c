/* SPDX-License-Identifier: MIT */
/* Files that tools write: see output.h. */
#include "tools/output.h"

#include <stddef.h>
#include <sys/stat.h>

const char *output_refused(const char *path)
{
	struct stat st;

	/* A file that cannot be inspected cannot be replaced either; that error has the reason. */
	if (lstat(path, &st) || S_ISREG(st.st_mode))
		return NULL;
	if (S_ISDIR(st.st_mode))
		return "it is a folder";
	return S_ISLNK(st.st_mode) ? "it is a symbolic link" : "it is not a regular file";
}
