// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include "tests/fuzz/bundles.h"

#include <ftw.h>
#include <stdio.h>
#include <string.h>

static void (*each_bundle)(const char *directory);

static int visit(const char *path, const struct stat *status, int type, struct FTW *walk)
{
	char directory[4096];

	if (type == FTW_F && !strcmp(path + walk->base, "bundle.mlir")) {
		snprintf(directory, sizeof(directory), "%.*s", walk->base - 1, path);
		each_bundle(directory);
	}
	return 0;
}

void fuzz_each_bundle(const char *source_dir, void (*each)(const char *directory))
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/tests/conformance", source_dir);
	each_bundle = each;
	nftw(path, visit, 16, FTW_PHYS);
}
