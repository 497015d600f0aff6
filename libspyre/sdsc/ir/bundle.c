// SPDX-License-Identifier: MIT
/* A compiled bundle. */
#include "libspyre/sdsc/ir/bundle.h"

#include <stdlib.h>
#include <string.h>

void spyre_bundle_fini(struct spyre_bundle *bundle)
{
	free(bundle->image);
	free(bundle->labels);
	memset(bundle, 0, sizeof(*bundle));
}
